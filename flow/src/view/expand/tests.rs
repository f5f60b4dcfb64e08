use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::event::{Event, Items, Reference};
use crate::view::samples::{self, any_chain, any_event, chain};

fn types(segments: &[Segment]) -> Vec<String> {
    let text = |event: &Json| event["event_type"].as_str().expect("a type").to_owned();
    expand(segments).iter().map(text).collect()
}

#[test]
fn a_loop_that_fails_reads_as_people_know_it() {
    let report = ["command.claimed", "command.started"];
    let expected: Vec<&str> = ["playbook.initialized", "workflow.initialized", "step.enter", "command.issued"]
        .into_iter()
        .chain(report)
        .chain(["call.done", "command.completed", "step.exit", "ctx.updated", "step.skipped", "step.enter"])
        .chain(["loop.started", "command.issued", "command.issued"])
        .chain(report)
        .chain(["call.done", "command.completed", "loop.item", "command.lost", "command.issued"])
        .chain(report)
        .chain(["call.error", "command.failed", "loop.item", "loop.done", "step.exit", "playbook.failed"])
        .collect();
    assert_eq!(types(&samples::failing_loop()), expected);
}

#[test]
fn an_event_has_the_shape_that_is_promised() {
    let segments = chain(vec![vec![samples::started()], vec![samples::failed("a b#2[3]~2")]]);
    let events = expand(&segments);
    assert_eq!(events[0]["parent_execution_id"], "7000");
    assert_eq!(events[0]["prev_event_id"], Json::Null);
    let error = json!({"code": "timeout", "message": "no answer", "retryable": true});
    assert_eq!(
        events[4],
        json!({
            "event_id": "21", "execution_id": "7001", "event_type": "call.error", "node_name": "a b",
            "node_type": "http", "status": "FAILED", "created_at": "2023-11-14T22:13:22.000Z", "prev_event_id": "20",
            "parent_event_id": "20", "parent_execution_id": null, "tenant_id": "main", "organization_id": "default",
            "stream_version": 2, "result": {"status": "error", "context": {"data": null}}, "error": error,
            "meta": {
                "command_id": "a b#2[3]~2", "run": 2, "iteration_index": 3, "attempt": 2, "duration_ms": 12, "calls": 1,
                "plugin": "tools/http@0.1.0", "digest": "cd".repeat(32), "decided_by": format!("{:064x}", 2),
            },
        })
    );
}

#[test]
fn what_is_not_inline_is_an_address_with_its_digest() {
    let Event::Reported(mut reported) = samples::done("a b#2[3]", json!({"rows": 5})) else {
        unreachable!("a report is a report")
    };
    reported.data.reference = Some(Reference { sha256: "ef".repeat(32), size: 9_000 });
    let events = expand(&chain(vec![vec![Event::Reported(reported)]]));
    assert_eq!(
        events[2]["result"],
        json!({
            "status": "success",
            "reference": {
                "kind": "result_ref", "ref": "noetl://main/default/results/7001/a%20b/2/3/1", "sha256": "ef".repeat(32),
                "bytes": 9000, "media_type": "application/json",
            },
            "extracted": {"rows": 5},
        })
    );
}

#[test]
fn what_a_newer_version_wrote_is_passed_over_in_its_place() {
    let mut segments = chain(vec![vec![samples::started()]]);
    segments[0].events.extend(b"{\"id\":2,\"at\":5,\"by\":1,\"e\":{\"dreamt\":{}}}\nnonsense\n");
    segments[0].events.extend(br#"{"id":3,"at":6,"by":2,"e":{"set":{"step":"a","values":{}}}}"#);
    let events = expand(&segments);
    assert_eq!(types(&segments)[2..], ["event.unknown", "ctx.updated"]);
    assert_eq!(events[2]["meta"]["event"], json!({"dreamt": {}}));
    assert_eq!(events[3]["prev_event_id"], events[2]["event_id"]);
}

#[test]
fn the_outline_is_the_expansion_in_short() {
    let segments = samples::failing_loop();
    let events = crate::view::segment::follow(&segments, &Upcasters::current()).expect("a chain");
    let outlines: Vec<_> =
        events.iter().flat_map(outline).map(|(id, kind)| (id.to_string(), kind.to_owned())).collect();
    let text = |event: &Json, name: &str| event[name].as_str().expect("text").to_owned();
    let shown: Vec<_> =
        expand(&segments).iter().map(|event| (text(event, "event_id"), text(event, "event_type"))).collect();
    assert_eq!(outlines, shown);
}

#[test]
fn the_claim_of_a_cursor_does_not_end_its_step() {
    let claimed = Event::Claimed { step: "a".to_owned(), run: 1, count: 2, items: Items::Cursor };
    let segments =
        chain(vec![vec![samples::done("a#1", json!([1, 2])), claimed], vec![samples::done("a#1", json!(1))]]);
    let types = types(&segments);
    assert_eq!(types[3..5], ["command.completed", "loop.claimed"]);
    assert_eq!(types.last().expect("one"), "step.exit");
}

#[test]
fn a_command_that_nobody_took_was_not_claimed() {
    let Event::Reported(mut reported) = samples::failed("a#1") else { unreachable!("a report is a report") };
    reported.calls = 0;
    assert_eq!(types(&chain(vec![vec![Event::Reported(reported)]])), ["call.error", "command.failed", "step.exit"]);
}

proptest! {
    #[test]
    fn a_part_reads_the_same_with_and_without_the_rest(segments in any_chain(), cut in 0usize..8) {
        let cut = cut.min(segments.len());
        let mut parts = expand(&segments[..cut]);
        parts.extend(expand(&segments[cut..]));
        prop_assert_eq!(parts, expand(&segments));
    }

    #[test]
    fn the_chain_has_one_root_and_no_gap(segments in any_chain()) {
        let events = expand(&segments);
        let mut before = Json::Null;
        let mut seen = BTreeSet::new();
        let mut highest = 0;
        for event in &events {
            prop_assert_eq!(&event["prev_event_id"], &before);
            let id: u64 = event["event_id"].as_str().expect("text").parse().expect("a number");
            prop_assert!(id > highest, "ids grow");
            highest = id;
            let cause = &event["parent_event_id"];
            let known = cause.as_str().is_none_or(|cause| seen.contains(cause));
            prop_assert!(cause.is_null() == before.is_null() && known);
            seen.insert(event["event_id"].as_str().expect("text").to_owned());
            before = event["event_id"].clone();
        }
    }

    #[test]
    fn every_event_becomes_one_to_eight_of_its_own(event in any_event()) {
        let events = expand(&chain(vec![vec![event]]));
        prop_assert!((1..=8).contains(&events.len()));
        let last = events.last().expect("one");
        prop_assert_eq!(&last["event_id"], "15");
        for event in &events {
            let id: u64 = event["event_id"].as_str().expect("text").parse().expect("a number");
            prop_assert_eq!(compact_id(id), 1);
        }
    }
}
