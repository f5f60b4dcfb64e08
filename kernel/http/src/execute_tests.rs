//! What a request to start something may look like, and what it is answered.

use noetl_dispatch::engine::ExecutionId;
use serde_json::json;

use super::*;

fn read(body: Value) -> Result<Execute, Problem> {
    let body: ExecuteBody = input::part(body)?;
    request(body, Tenant::main(), "me".to_owned(), None)
}

fn refused_field(body: Value) -> Value {
    read(body.clone()).expect_err(&body.to_string()).document("r")["field"].clone()
}

#[test]
fn a_playbook_is_named_by_its_path_or_its_catalog_id() {
    let by_path = read(json!({"path": "a/b", "version": "3", "workload": {"x": 1}})).expect("valid");
    assert_eq!((by_path.path.as_str(), by_path.version), ("a/b", Some(3)));
    assert_eq!(by_path.payload, r#"{"x":1}"#);
    let by_id = read(json!({"catalog_id": "a/b@2"})).expect("valid");
    assert_eq!((by_id.path.as_str(), by_id.version, by_id.payload.as_str()), ("a/b", Some(2), "{}"));
    assert_eq!(read(json!({"path": "a", "version": "latest"})).expect("valid").version, None);
}

#[test]
fn what_is_wrong_is_named() {
    for (body, field) in [
        (json!({}), "path"),
        (json!({"path": "a", "catalog_id": "a@1"}), "catalog_id"),
        (json!({"catalog_id": "a@1", "version": 2}), "version"),
        (json!({"catalog_id": "a"}), "catalog_id"),
        (json!({"path": "a", "version": 0}), "version"),
        (json!({"path": "a", "payload": [1]}), "payload"),
        (json!({"path": "a", "paylod": {}}), "paylod"),
        (json!({"path": "a", "dedup": {"key": ""}}), "dedup.key"),
        (json!({"path": "a", "dedup": {"key": "k", "window_secs": 0}}), "dedup.window_secs"),
        (json!({"path": "a", "trace": {"traceparent": "00-1-2-3"}}), "trace.traceparent"),
        (json!({"path": "a", "payload": {"x": "y".repeat(MOST_PAYLOAD)}}), "payload"),
    ] {
        assert_eq!(refused_field(body.clone()), field, "{:.200}", body.to_string());
    }
}

#[test]
fn a_key_has_a_window() {
    let dedup = read(json!({"path": "a", "dedup": {"key": "k"}})).expect("valid").dedup.expect("a key");
    assert_eq!((dedup.key.as_str(), dedup.window), ("k", Duration::from_secs(300)));
}

#[test]
fn the_trace_of_the_body_goes_before_that_of_the_request() {
    let one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let other = "00-00000000000000000000000000000001-0000000000000001-00";
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", HeaderValue::from_static(other));
    assert_eq!(traceparent(&headers).as_deref(), Some(other));
    let body: ExecuteBody = input::part(json!({"path": "a", "trace": {"traceparent": one}})).expect("valid");
    let made = request(body, Tenant::main(), String::new(), traceparent(&headers)).expect("valid");
    assert_eq!(made.trace.as_deref(), Some(one));
    for wrong in ["", "00", "00-xyz", &one.to_uppercase(), &format!("{one}-")] {
        assert!(!is_traceparent(wrong), "{wrong}");
    }
}

#[test]
fn waiting_has_a_bound() {
    assert_eq!(wait_time(None).expect("valid"), None);
    assert_eq!(wait_time(Some(Wait::Seconds(0))).expect("valid"), None);
    assert_eq!(wait_time(Some(Wait::Usual)).expect("valid"), Some(Duration::from_secs(60)));
    assert_eq!(wait_time(Some(Wait::Seconds(5))).expect("valid"), Some(Duration::from_secs(5)));
    assert_eq!(wait_time(Some(Wait::Seconds(601))).expect_err("too long").code(), "invalid_parameter");
    assert_eq!(batch_item(json!({"path": "a", "wait": true})).expect_err("refused").code(), "invalid_body");
    assert!(batch_item(json!({"path": "a", "wait": false})).is_ok());
}

#[test]
fn a_batch_is_counted_and_each_item_answered() {
    let started = |id, duplicate| Started { execution: ExecutionId(id), duplicate };
    let problem = Problem::of(404, "playbook_not_found", "there is no playbook");
    let view = BatchView::of(vec![Ok(started(7, false)), Err(problem), Ok(started(7, true))]);
    let view = serde_json::to_value(view).expect("plain data");
    assert_eq!(
        (&view["count"], &view["started"], &view["duplicates"], &view["failed"]),
        (&json!(3), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!(view["results"][0], json!({"index": 0, "status": "started", "execution_id": "7", "error": null}));
    assert_eq!(view["results"][1]["error"]["code"], "playbook_not_found");
    assert_eq!(view["results"][2]["status"], "duplicate");
}

#[test]
fn what_was_waited_for_is_told_in_words_of_its_own() {
    let started = Started { execution: ExecutionId(7), duplicate: false };
    let outcome = Outcome { output: json!({"n": 1}), ..Outcome::default() };
    let waited = serde_json::to_value(Waited::of(started, "completed".to_owned(), outcome)).expect("plain data");
    assert_eq!(waited, json!({"execution_id": "7", "status": "completed", "output": {"n": 1}, "error": null}));
}
