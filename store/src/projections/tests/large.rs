//! A million executions: how fast rows are written, and that every list answers at once.
//!
//! It takes a minute or so and half a gigabyte of disk, so it runs when asked:
//! `cargo test -p noetl-store --release million -- --ignored --nocapture`.

use std::time::{Duration, Instant};

use super::*;

const EXECUTIONS: u64 = 1_000_000;
const LIMIT: Duration = Duration::from_millis(50);

/// The children of one execution.
const FAN_OUT: std::ops::Range<u64> = 800_000..900_000;

/// Thousands of playbooks: of a tenant with most of the executions and nineteen others, in ten folders. Nothing of the
/// last folder was run lately.
fn path(of: u64) -> String {
    let (folder, number) = match of {
        0..1000 => (9, of % 28),
        _ if FAN_OUT.contains(&of) => (1, of % 5),
        _ => (of / 200 % 9, of / 1800 % 28),
    };
    format!("fixtures/folder_{folder}/playbook_{number}")
}

fn tenant(of: u64) -> String {
    format!("tenant_{}", if of.is_multiple_of(10) { of / 10 % 20 } else { 0 })
}

fn of_execution(of: u64) -> Vec<Change> {
    let status = match of {
        0..200 => "FAILED",
        _ if of > EXECUTIONS - 5000 => "RUNNING",
        _ => "COMPLETED",
    };
    // A hundred children each for some, and one with a hundred thousand.
    let parent = if FAN_OUT.contains(&of) { Some(0) } else { (of % 4 == 1).then_some(of / 400) };
    let parent = parent.map(|parent| (1 << 40) + parent);
    let id = (1 << 40) + of;
    let execution = ExecutionRow {
        status: Some(status.to_owned()),
        parent,
        ended_ms: Some(2000 + of),
        ..started(id, &tenant(of), &path(of))
    };
    let done = Some("COMPLETED".to_owned());
    let steps = ["fetch", "store"].into_iter().flat_map(|name| {
        let (entered_ms, ended_ms) = (Some(1000 + of), Some(1200 + of));
        let (status, tool) = (done.clone(), Some("http".to_owned()));
        let plugin = Some("tools/http@0.1.0".to_owned());
        [
            Change::Step(StepRow { status: status.clone(), entered_ms, ended_ms, ..step(id, name, 1, 1) }),
            Change::Command(CommandRow {
                issued_ms: entered_ms,
                ended_ms,
                status,
                tool,
                plugin,
                ..command(id, name, None, 1, 1)
            }),
        ]
    });
    [Change::Execution(execution)].into_iter().chain(steps).collect()
}

fn queries() -> Vec<ListQuery> {
    let paths = [
        None,
        Some(PathFilter::Is("fixtures/folder_1/playbook_1".to_owned())),
        Some(PathFilter::Is("fixtures/folder_9/playbook_1".to_owned())),
        Some(PathFilter::StartsWith("fixtures/".to_owned())),
        Some(PathFilter::StartsWith("fixtures/folder_9/".to_owned())),
        Some(PathFilter::StartsWith("nothing".to_owned())),
    ];
    let tenants = [None, Some("tenant_0"), Some("tenant_7"), Some("nobody")];
    let statuses = [None, Some("RUNNING"), Some("COMPLETED"), Some("FAILED"), Some("never")];
    let parents = [None, Some(1 << 40), Some((1 << 40) + 1000)];
    let times = [(None, None), (Some(500_000), Some(500_100)), (None, Some(1100)), (Some(999_000), None)];
    let mut queries = Vec::new();
    for path in &paths {
        for tenant in tenants {
            for status in statuses {
                for parent in parents {
                    for (since, until) in times {
                        queries.push(ListQuery {
                            tenant: tenant.map(str::to_owned),
                            path: path.clone(),
                            status: status.map(str::to_owned),
                            parent,
                            since_ms: since,
                            until_ms: until,
                            ..ListQuery::default()
                        });
                    }
                }
            }
        }
    }
    queries
}

#[test]
#[ignore = "takes a minute; run it alone with --ignored"]
fn a_million_executions_are_listed_at_once_whatever_is_asked_for() {
    let place = Place::new();
    let projections = place.open();
    let (mut writing, mut rows) = (Duration::ZERO, 0);
    for first in (0..EXECUTIONS).step_by(2000) {
        let changes: Vec<Change> = (first..first + 2000).flat_map(of_execution).collect();
        let begin = Instant::now();
        rows += projections.apply(changes, &[], first + 1).expect("applied").rows;
        writing += begin.elapsed();
    }
    let rate = rows as f64 / writing.as_secs_f64();
    let size = std::fs::metadata(place.file()).expect("there").len() >> 20;
    eprintln!("{rows} rows in {writing:.2?}: {rate:.0} rows/s, {size} MiB");

    drop(projections);
    let projections = place.open();
    let mut times: Vec<_> = queries()
        .into_iter()
        .map(|query| {
            // The best of three: what is measured is the work, not what else the machine does.
            let timed = (0..3).map(|_| {
                let begin = Instant::now();
                let found = projections.executions(&query).expect("readable").rows.len();
                (begin.elapsed(), found)
            });
            let (time, found) = timed.min().expect("three");
            (time, found, query)
        })
        .collect();
    times.sort_by_key(|(time, ..)| *time);
    let (slowest, found, query) = times.last().expect("some");
    let median = times[times.len() / 2].0;
    eprintln!("{} lists: median {median:.2?}, slowest {slowest:.2?} with {found} rows for {query:?}", times.len());
    let begin = Instant::now();
    let counts = projections.counts_by_status(None).expect("readable");
    let counting = begin.elapsed();
    eprintln!("counts in {counting:.2?}: {counts:?}");
    assert!(*slowest < LIMIT && counting < LIMIT);
    assert_eq!(counts.iter().map(|(_, number)| number).sum::<u64>(), EXECUTIONS);
    assert!(times.iter().filter(|(_, found, _)| *found == 50).count() > 100, "the lists are not empty");
}
