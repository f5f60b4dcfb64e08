use serde_json::json;

use super::*;
use crate::event::{Failure, Started};
use crate::view::expand::expand;
use crate::view::samples::{self, chain, command, done, entered, failed, finished, issued, started};

#[test]
fn the_chain_leads_from_the_outcome_to_the_start() {
    let segments = samples::failing_loop();
    let answer = explain(&segments).expect("a chain");
    assert_eq!(
        answer["headline"],
        "failed because step `load` failed in iteration 1 at attempt 2 in tools/http@0.1.0: timeout: no answer"
    );
    assert_eq!((&answer["status"], &answer["failed_steps"]), (&json!("failed"), &json!(["load"])));
    let links = answer["chain"].as_array().expect("a list");
    assert_eq!(
        (&links[0]["event_type"], &links[0]["error"]["code"]),
        (&json!("playbook.failed"), &json!("step_failed"))
    );
    assert_eq!(links.last().expect("links")["event_type"], "workflow.initialized");
    let blamed = links.iter().find(|link| link["event_type"] == "command.failed").expect("the failed command");
    assert_eq!(blamed["command"], "load#1[1]~2");
    assert_eq!(blamed["digest"], "cd".repeat(32));
    assert_eq!(blamed["decided_by"], format!("{:064x}", 5));
    let arc = links.iter().find(|link| link["step"] == "load" && !link["arc"].is_null()).expect("the arc");
    assert_eq!(arc["arc"], json!({"from": "start", "index": 0}));
    let events = expand(&segments);
    for link in links {
        let event = events.iter().find(|event| event["event_id"] == link["event_id"]).expect("an event that is shown");
        assert_eq!(event["event_type"], link["event_type"]);
    }
}

#[test]
fn the_iteration_that_failed_is_blamed_though_others_ended_later() {
    let failing = Event::Failing {
        step: "a".to_owned(),
        error: Failure { code: "timeout".to_owned(), message: "no answer".to_owned(), retryable: true },
    };
    let mut segments = chain(vec![
        vec![started(), entered("a", None), issued("a#1[0]"), issued("a#1[1]")],
        vec![failed("a#1[0]")],
        vec![failed("b#1"), done("a#1[1]", json!(1))],
        vec![failing, finished(Ending::Failed, None, &["a"])],
    ]);
    // The second iteration follows from its command, not from the first one's failure.
    let line = String::from_utf8(segments[2].events.clone()).expect("text").replace("\"by\":6", "\"by\":4");
    segments[2].events = line.into_bytes();
    let answer = explain(&segments).expect("a chain");
    assert_eq!(
        answer["headline"],
        "failed because step `a` failed in iteration 0 in tools/http@0.1.0: timeout: no answer"
    );
    assert_eq!(answer["blamed"]["command"], "a#1[0]");
    let links = answer["chain"].as_array().expect("a list");
    assert!(links.iter().all(|link| link["event_type"] != "command.failed"), "only what led to the outcome is there");
}

#[test]
fn what_made_it_fail_is_told_though_others_ended_later() {
    let error = Failure { code: "timeout".to_owned(), message: "no answer".to_owned(), retryable: true };
    let failing = Event::Failing { step: "a".to_owned(), error };
    let answer = explain(&chain(vec![
        vec![started(), entered("a", None), issued("a#1"), failed("a#1"), failing],
        vec![done("b#1", json!(1)), finished(Ending::Failed, None, &["a"])],
    ]));
    let answer = answer.expect("a chain");
    let types: Vec<_> = answer["chain"].as_array().expect("a list").iter().map(|link| &link["event_type"]).collect();
    assert_eq!(types[..3], ["playbook.failed", "execution.failing", "command.failed"]);
    assert_eq!(answer["blamed"]["command"], "a#1");
}

#[test]
fn every_kind_of_end_has_its_sentence() {
    let sentence = |events: Vec<Event>| {
        let mut all = vec![started()];
        all.extend(events);
        explain(&chain(vec![all])).expect("a chain")["headline"].as_str().expect("text").to_owned()
    };
    let cancel = Event::CancelRequested { reason: "too late".to_owned(), requested_by: "bob".to_owned() };
    let stalled = Failure { code: "stalled".to_owned(), message: "no arc matched".to_owned(), retryable: false };
    assert_eq!(sentence(vec![finished(Ending::Completed, None, &[])]), "completed, and every step that ran succeeded");
    assert_eq!(sentence(vec![finished(Ending::Completed, None, &["a", "b"])]), "completed, although `a`, `b` failed");
    assert_eq!(sentence(vec![cancel, finished(Ending::Cancelled, None, &[])]), "cancelled by bob: too late");
    assert_eq!(sentence(vec![finished(Ending::Failed, Some(stalled), &[])]), "failed: stalled: no arc matched");
}

#[test]
fn an_execution_that_runs_says_what_it_waits_for() {
    let parked = Event::Parked { step: "ask".to_owned(), run: 1, message: Some("ok?".to_owned()), until: Some(0) };
    let child = Event::ChildStarted {
        command: command("sub#1"),
        execution: "9".to_owned(),
        path: "acme/child".to_owned(),
        label: None,
    };
    let segments = chain(vec![
        vec![started(), issued("a#1"), issued("b#1"), issued("b#1~2"), issued("sub#1")],
        vec![child, parked, done("a#1", json!(1)), Event::Lost { command: command("b#1") }],
    ]);
    let answer = explain(&segments).expect("a chain");
    assert_eq!(answer["status"], "running");
    assert_eq!(answer["headline"], "running: waits for 1 command, 1 child execution, 1 parked step");
    let waiting = &answer["waiting"];
    assert_eq!(waiting["commands"][0]["command"], "b#1~2");
    assert_eq!(waiting["commands"].as_array().map(Vec::len), Some(2));
    assert_eq!(waiting["children"][0]["execution_id"], "9");
    assert_eq!(waiting["parked"][0]["message"], "ok?");
    assert_eq!(waiting["timers"], json!([{"at": "1970-01-01T00:00:00.000Z", "step": "ask", "run": 1}]));
}

#[test]
fn a_child_that_a_pipeline_started_is_told_with_its_step() {
    let child = |execution: &str| Event::ChildStarted {
        command: command("load#1"),
        execution: execution.to_owned(),
        path: "acme/child".to_owned(),
        label: Some("each".to_owned()),
    };
    let begun = vec![started(), entered("load", None), issued("load#1"), child("8"), child("9")];
    let answer = explain(&chain(vec![begun.clone()])).expect("a chain");
    let waited =
        json!({"command": "load#1", "step": "load", "label": "each", "execution_id": "9", "path": "acme/child"});
    assert_eq!(answer["waiting"]["children"], json!([waited]), "the last of them");
    assert_eq!(answer["headline"], "running: waits for 1 child execution");
    let error = Failure { code: "child_failed".to_owned(), message: "it failed".to_owned(), retryable: false };
    let failing = Event::Failing { step: "load".to_owned(), error };
    let ended = vec![failed("load#1"), failing, finished(Ending::Failed, None, &["load"])];
    let answer = explain(&chain(vec![begun, ended])).expect("a chain");
    assert_eq!((&answer["blamed"]["step"], &answer["blamed"]["child_execution_id"]), (&json!("load"), &json!("9")));
}

#[test]
fn what_is_over_is_not_waited_for() {
    let parked = Event::Parked { step: "ask".to_owned(), run: 1, message: None, until: None };
    let resumed =
        Event::Resumed { step: "ask".to_owned(), run: 1, data: Default::default(), requested_by: "bob".to_owned() };
    let answer = explain(&chain(vec![vec![started(), parked, resumed]])).expect("a chain");
    assert_eq!(answer["waiting"], json!({"commands": [], "children": [], "parked": [], "timers": []}));
    assert_eq!(answer["headline"], "running: waits for nothing but the next decision");
}

#[test]
fn a_cause_that_is_not_earlier_ends_the_walk() {
    let Event::Started(start) = started() else { unreachable!("a start is a start") };
    let start: Box<Started> = start;
    let mut segments = chain(vec![vec![Event::Started(start), issued("a#1")]]);
    let text = String::from_utf8(segments[0].events.clone()).expect("text").replace("\"by\":1", "\"by\":2");
    segments[0].events = text.into_bytes();
    assert_eq!(explain(&segments).expect("a chain")["chain"].as_array().map(Vec::len), Some(1));
}
