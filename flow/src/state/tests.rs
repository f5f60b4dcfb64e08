//! What a fold refuses, and what a checkpoint is.

use serde_json::json;

use super::*;
use crate::event::{Event, Finished, Recorded};

fn recorded(id: u64, event: serde_json::Value) -> Recorded {
    serde_json::from_value(json!({ "id": id, "at": 1, "e": event })).expect("an event")
}

fn started() -> State {
    let event = json!({ "started": { "tenant": "t", "path": "p", "version": 1, "digest": "d", "workload": {"a": 1},
        "root": "1", "lenient": false, "requested_by": "me" } });
    State::begin(recorded(1, event)).expect("it begins")
}

#[test]
fn a_chain_begins_with_its_first_event() {
    assert!(State::begin(recorded(1, json!({ "entered": { "step": "a", "run": 1 } }))).is_err());
    let mut state = None;
    assert!(fold_lines(&mut state, b"{}").is_err());
    assert!(fold_lines(&mut state, b"\n\n").is_ok());
    assert_eq!(state, None);
}

#[test]
fn an_event_that_cannot_follow_is_refused() {
    let entered = json!({ "entered": { "step": "a", "run": 1 } });
    let bad = [
        (3, entered.clone()),
        (1, entered),
        (2, json!({ "issued": { "command": "a#1" } })),
        (2, json!({ "issued": { "command": "a#1[0]" } })),
        (2, json!({ "reported": { "command": "a#1", "data": { "value": 1 } } })),
        (2, json!({ "lost": { "command": "a#1" } })),
        (2, json!({ "loop_closed": { "step": "a", "run": 1, "total": 0, "succeeded": 0, "failed": 0 } })),
        (2, json!({ "resumed": { "step": "a", "run": 1, "data": { "value": 1 }, "requested_by": "me" } })),
    ];
    for (id, event) in bad {
        let mut state = started();
        assert!(fold(&mut state, recorded(id, event.clone())).is_err(), "{id} {event}");
    }
}

#[test]
fn nothing_follows_the_end() {
    let mut state = started();
    let finished = Finished {
        status: crate::event::Ending::Completed,
        output: Data::default(),
        error: None,
        returned: None,
        failed_steps: Vec::new(),
    };
    let end = |id| Recorded { id, at: 2, cause: 1, event: Event::Finished(Box::new(finished.clone())) };
    assert_eq!(fold(&mut state, end(2)), Ok(()));
    assert!(fold(&mut state, end(3)).is_err(), "an execution ends once");
}

#[test]
fn a_checkpoint_of_another_fold_is_refused() {
    let bytes = checkpoint(&started());
    assert_eq!(restore(&bytes), Ok(started()));
    let other = String::from_utf8(bytes).expect("JSON").replace(&format!("\"fold\":{FOLD_VERSION}"), "\"fold\":999");
    let refused = restore(other.as_bytes()).expect_err("refused");
    assert!(refused.0.contains("fold 999"), "{refused}");
    assert!(restore(b"").is_err());
}

#[test]
fn the_checksum_is_of_what_is_known_and_not_of_how_it_is_kept() {
    let mut one = started();
    let other = started();
    one.workload.value();
    assert_eq!(checksum(&one), checksum(&other), "templates' forms do not count");
    one.variables.insert("x".to_owned(), Held::new(json!(1)));
    assert_ne!(checksum(&one), checksum(&other));
}
