//! Chains for the tests of this folder.

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

use super::segment::Segment;
use crate::event::{
    Adopted, AdoptedStep, Data, Ending, Event, Failure, Finished, Items, LoopMode, Parent, Recorded, Reference,
    Reported, Started,
};
use crate::ids::CommandId;

pub const EXECUTION: u64 = 7_001;
pub const START_MS: u64 = 1_700_000_000_000;

/// Every list of events is a segment; each event follows from the one before it, a second later.
pub fn chain(parts: Vec<Vec<Event>>) -> Vec<Segment> {
    let mut id = 0;
    let mut segments = Vec::new();
    for (version, part) in (1u64..).zip(parts) {
        let mut events = Vec::new();
        let mut time_ms = START_MS;
        for event in part {
            id += 1;
            time_ms = START_MS + id * 1_000;
            let recorded = Recorded { id, at: time_ms, cause: id - 1, event };
            events.extend(serde_json::to_vec(&recorded).expect("events are JSON"));
            events.push(b'\n');
        }
        let decided_by = format!("{version:064x}");
        let tenant = "main".to_owned();
        segments.push(Segment {
            execution: EXECUTION,
            tenant,
            version,
            position: version * 10,
            time_ms,
            decided_by,
            events,
        });
    }
    segments
}

pub fn started() -> Event {
    Event::Started(Box::new(Started {
        tenant: "main".to_owned(),
        path: "acme/orders".to_owned(),
        version: 3,
        digest: "ab".repeat(32),
        workload: object(json!({"limit": 10})),
        parent: Some(Parent { execution: "7000".to_owned(), command: command("call#1") }),
        root: "7000".to_owned(),
        pool: None,
        env: Map::new(),
        seal: Some("never shown".to_owned()),
        lenient: false,
        trace: None,
        requested_by: "alice".to_owned(),
        returns: None,
    }))
}

pub fn command(text: &str) -> CommandId {
    text.parse().expect("a command")
}

pub fn object(value: Json) -> Map<String, Json> {
    value.as_object().cloned().expect("an object")
}

pub fn entered(step: &str, from: Option<&str>) -> Event {
    Event::Entered { step: step.to_owned(), run: 1, from: from.map(str::to_owned), arc: from.map(|_| 0) }
}

pub fn issued(text: &str) -> Event {
    Event::Issued { command: command(text), tools: vec!["http".to_owned()], item: None }
}

pub fn done(text: &str, value: Json) -> Event {
    Event::Reported(Box::new(Reported {
        command: command(text),
        data: Data { value, ..Data::default() },
        error: None,
        hard: false,
        set: Map::new(),
        plugin: Some("tools/http@0.1.0".to_owned()),
        digest: Some("cd".repeat(32)),
        calls: 1,
        took: 12,
        execution: None,
    }))
}

pub fn failed(text: &str) -> Event {
    let Event::Reported(mut reported) = done(text, Json::Null) else { unreachable!("a report is a report") };
    reported.error = Some(Failure { code: "timeout".to_owned(), message: "no answer".to_owned(), retryable: true });
    Event::Reported(reported)
}

pub fn finished(status: Ending, error: Option<Failure>, failed_steps: &[&str]) -> Event {
    let failed_steps = failed_steps.iter().map(|step| (*step).to_owned()).collect();
    Event::Finished(Box::new(Finished { status, output: Data::default(), error, returned: None, failed_steps }))
}

/// A loop of three with a lost worker and a failure, that ends the execution.
pub fn failing_loop() -> Vec<Segment> {
    let opened = Event::LoopOpened {
        step: "load".to_owned(),
        run: 1,
        mode: LoopMode::Parallel,
        total: Some(2),
        in_flight: Some(2),
        items: Items::Count(2),
    };
    let closed = Event::LoopClosed { step: "load".to_owned(), run: 1, total: 2, succeeded: 1, failed: 1 };
    chain(vec![
        vec![started(), entered("start", None), issued("start#1")],
        vec![
            done("start#1", json!({"n": 2})),
            Event::Set { step: "start".to_owned(), values: object(json!({"n": 2})) },
            Event::Skipped { step: "other".to_owned(), from: Some("start".to_owned()) },
            entered("load", Some("start")),
            opened,
            issued("load#1[0]"),
            issued("load#1[1]"),
        ],
        vec![done("load#1[0]", json!(1))],
        vec![Event::Lost { command: command("load#1[1]") }, issued("load#1[1]~2")],
        vec![
            failed("load#1[1]~2"),
            closed,
            finished(
                Ending::Failed,
                Some(Failure { code: "step_failed".to_owned(), message: "load".to_owned(), retryable: false }),
                &["load"],
            ),
        ],
    ])
}

/// Any event at all; steps and runs repeat so that rows are touched more than once.
pub fn any_event() -> impl Strategy<Value = Event> {
    let step = prop_oneof![Just("a".to_owned()), Just("b c/é".to_owned()), Just("d#1".to_owned())];
    (0u32..20, step, 1u32..3, proptest::option::of(0u32..3), 1u32..3, any::<bool>()).prop_map(
        |(kind, step, run, iteration, attempt, flag)| {
            let command = CommandId { step: step.clone(), run, iteration, attempt };
            let reference = Reference { sha256: "ef".repeat(32), size: 9_000 };
            let data = Data {
                value: json!({"x": run}),
                reference: flag.then(|| reference.clone()),
                chunks: if flag { vec![reference.clone()] } else { Vec::new() },
            };
            match kind {
                0 => started(),
                1 => Event::Adopted(Box::new(Adopted {
                    execution: "1".to_owned(),
                    step: step.clone(),
                    steps: vec![AdoptedStep { step, run, data: flag.then_some(data) }],
                    context: object(json!({"x": 1})),
                })),
                2 => Event::Entered { step, run, from: flag.then(|| "a".to_owned()), arc: flag.then_some(1) },
                3 => Event::Issued { command, tools: vec!["noop".to_owned()], item: flag.then_some(data) },
                4 | 5 => {
                    let Event::Reported(mut reported) = (if flag { done("a#1", json!(1)) } else { failed("a#1") })
                    else {
                        unreachable!("a report is a report")
                    };
                    (reported.command, reported.data) = (command, data);
                    if attempt == 2 {
                        reported.set = object(json!({"x": 2}));
                    }
                    Event::Reported(reported)
                }
                6 => Event::Lost { command },
                7 => Event::LoopOpened {
                    step,
                    run,
                    mode: LoopMode::Sequential,
                    total: iteration,
                    in_flight: None,
                    items: Items::Cursor,
                },
                8 => Event::LoopSpilled { step, run, chunk: reference, count: 2 },
                9 => Event::LoopClosed { step, run, total: 3, succeeded: 2, failed: 1 },
                10 => Event::Set { step, values: object(json!({"y": [run]})) },
                11 => Event::Skipped { step, from: None },
                12 => Event::ChildStarted { command, execution: "9".to_owned(), path: "p".to_owned(), label: None },
                13 => Event::Parked { step, run, message: None, until: flag.then_some(START_MS) },
                14 => Event::Resumed { step, run, data, requested_by: "bob".to_owned() },
                15 => Event::CancelRequested { reason: "no".to_owned(), requested_by: "bob".to_owned() },
                16 => Event::Arrived { step, from: "a".to_owned(), arc: run },
                17 => Event::Claimed { step, run, count: 2, items: Items::Count(2) },
                18 => Event::Failing {
                    step,
                    error: Failure { code: "bad".to_owned(), message: "m".to_owned(), retryable: flag },
                },
                _ => finished(if flag { Ending::Completed } else { Ending::Cancelled }, None, &["a"]),
            }
        },
    )
}

/// Chains of any events, cut anyhow; they are chains to a reader, though no engine would write them.
pub fn any_chain() -> impl Strategy<Value = Vec<Segment>> {
    let part = proptest::collection::vec(any_event(), 1..5);
    proptest::collection::vec(part, 1..8).prop_map(chain)
}
