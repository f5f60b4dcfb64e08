//! Restarts, crashes and damage.

use std::time::Duration;

use bytes::Bytes;

use super::*;

fn apply_each(projections: &Projections, batches: std::ops::RangeInclusive<u64>) {
    for of in batches {
        projections.apply(batch(of), &[], of).expect("applied");
    }
}

fn batch(of: u64) -> Vec<Change> {
    let status = if of.is_multiple_of(3) { "COMPLETED" } else { "RUNNING" };
    vec![
        Change::Execution(started(of, "acme", &format!("p/{}", of % 4))),
        Change::Step(StepRow { entered_ms: Some(of), ..step(of, "s", 1, 1) }),
        Change::Command(command(of, "s", None, 1, 1)),
        Change::Execution(became(of.max(2) - 1, "acme", status, of + 1)),
    ]
}

#[test]
fn what_was_applied_is_there_after_a_restart_and_the_cursor_with_it() {
    let place = Place::new();
    let projections = place.open();
    apply_each(&projections, 1..=20);
    let before = contents(&projections);
    drop(projections);
    let projections = place.open();
    assert_eq!((projections.cursor(), contents(&projections)), (20, before));
    assert_eq!(projections.apply(batch(20), &[], 20).expect("known"), Applied { rows: 0, stale: 4 });
}

#[test]
fn whatever_moment_a_kill_hits_the_rows_are_those_of_the_cursor() {
    let place = Place::new();
    let projections = place.open();
    let mut states = vec![contents(&projections)];
    for of in 1..=12 {
        projections.apply(batch(of), &[], of).expect("applied");
        states.push(contents(&projections));
        // A killed process leaves the files as they are, a write-ahead file that is not folded in, and possibly not
        // all of its last write.
        let (left, killed) = (Place::new(), |suffix: &str| format!("{}{suffix}", place.file().display()));
        std::fs::copy(killed(""), left.file()).expect("copied");
        let wal = std::fs::read(killed("-wal")).expect("not folded in yet");
        let torn = wal.len() - (of as usize * 997) % wal.len();
        std::fs::write(format!("{}-wal", left.file().display()), &wal[..torn]).expect("copied");
        let found = left.open();
        assert!(found.cursor() <= of);
        assert_eq!(contents(&found), states[found.cursor() as usize], "killed after {of}");
        // It goes on from there to the same end.
        apply_each(&found, found.cursor() + 1..=of);
        assert_eq!(contents(&found), states[of as usize]);
    }
}

#[test]
fn a_batch_that_fails_leaves_nothing_and_can_be_applied_later() {
    let place = Place::new();
    let projections = place.open();
    projections.apply(batch(1), &[], 1).expect("applied");
    let before = contents(&projections);
    let other = Connection::open(place.file()).expect("opens");
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON steps BEGIN SELECT raise(ABORT, 'full'); END";
    other.execute_batch(refuse).expect("made");
    let changes = || vec![Change::Execution(started(9, "new", "new/path")), Change::Step(step(9, "s", 1, 1))];
    let error = projections.apply(changes(), &[], 2).expect_err("refused");
    assert!(error.to_string().contains("full"), "{error}");
    assert_eq!((projections.cursor(), contents(&projections)), (1, before));
    other.execute_batch("DROP TRIGGER refuse").expect("dropped");
    projections.apply(changes(), &[], 2).expect("applied");
    let row = projections.execution(Some("new"), 9).expect("readable").expect("there");
    assert_eq!((row.path.as_deref(), row.status.as_deref()), (Some("new/path"), Some("RUNNING")));
}

#[test]
fn a_file_that_is_damaged_marked_or_of_another_log_is_replaced() {
    let place = Place::new();
    let fill = || {
        let projections = place.open();
        assert_eq!(projections.cursor(), 0);
        projections.apply(batch(1), &[], 5).expect("applied");
        projections.put_outbox_state(b"state").expect("kept");
        drop(projections);
    };
    fill();
    std::fs::write(place.file(), vec![7; 10_000]).expect("written");
    fill();
    std::fs::write(format!("{}-damaged", place.file().display()), b"").expect("written");
    fill();
    let projections = Projections::open(place.file(), 4).expect("opens");
    assert_eq!((projections.cursor(), contents(&projections)), (0, Vec::new()));
    assert_eq!(projections.outbox_state().expect("readable"), None);
}

#[test]
fn damage_that_is_met_while_running_is_healed_by_a_restart() {
    let place = Place::new();
    let projections = place.open();
    apply_each(&projections, 1..=400);
    drop(projections);
    let mut bytes = std::fs::read(place.file()).expect("read");
    // The first half stays, so that it opens.
    let half = bytes.len() / 2;
    bytes[half..].fill(0xAA);
    std::fs::write(place.file(), bytes).expect("written");
    let projections = place.open();
    let error = projections.executions(&ListQuery::default()).expect_err("damaged");
    assert!(matches!(error, ProjectionError::Database(_)), "{error}");
    drop(projections);
    let projections = place.open();
    assert_eq!((projections.cursor(), contents(&projections)), (0, Vec::new()));
}

#[test]
fn rows_made_again_from_the_start_in_other_batches_are_the_same() {
    let (one, other) = (Place::new(), Place::new());
    let (one, other) = (one.open(), other.open());
    apply_each(&one, 1..=50);
    for group in (1..=50).collect::<Vec<u64>>().chunks(7) {
        let changes = group.iter().flat_map(|of| batch(*of)).collect();
        other.apply(changes, &[], group[group.len() - 1]).expect("applied");
    }
    assert_eq!(contents(&one), contents(&other));
    assert_eq!(one.counts_by_status(None).expect("readable"), other.counts_by_status(None).expect("readable"));
}

#[tokio::test]
async fn whoever_waits_for_a_position_goes_on_when_the_rows_are_there() {
    let place = Place::new();
    let projections = place.open();
    let waiter = tokio::spawn({
        let projections = projections.clone();
        async move {
            projections.wait_for(2).await;
            projections.execution(None, 2).expect("readable").is_some()
        }
    });
    projections.apply(batch(1), &[], 1).expect("applied");
    tokio::task::yield_now().await;
    assert!(!waiter.is_finished());
    projections.apply(batch(2), &[], 3).expect("applied");
    assert!(tokio::time::timeout(Duration::from_secs(10), waiter).await.expect("in time").expect("no panic"));
    projections.wait_for(3).await;
}

#[test]
fn checkpoints_outbox_and_schedules_are_kept() {
    let place = Place::new();
    let projections = place.open();
    let checkpoint = |execution, version| Checkpoint {
        execution,
        version,
        fold_position: version * 100,
        bytes: Bytes::from(format!("{execution}/{version}")),
    };
    projections.put_checkpoints(&[checkpoint(1, 4), checkpoint(2, 1)]).expect("kept");
    projections.put_checkpoints(&[checkpoint(1, 3), checkpoint(2, 2)]).expect("kept");
    assert_eq!(projections.outbox_state().expect("readable"), None);
    projections.put_outbox_state(b"one").expect("kept");
    projections.put_outbox_state(b"two").expect("kept");
    projections.put_schedule_last_ms("acme", "a/b", 17).expect("kept");
    projections.put_schedule_last_ms("acme", "a/b", 19).expect("kept");
    drop(projections);
    let projections = place.open();
    let found = |execution| projections.checkpoint(execution).expect("readable");
    assert_eq!((found(1), found(2), found(3)), (Some(checkpoint(1, 4)), Some(checkpoint(2, 2)), None));
    assert_eq!(projections.outbox_state().expect("readable"), Some(Bytes::from_static(b"two")));
    let last = |tenant| projections.schedule_last_ms(tenant, "a/b").expect("readable");
    assert_eq!((last("acme"), last("other")), (Some(19), None));
}
