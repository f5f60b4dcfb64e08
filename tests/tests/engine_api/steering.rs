//! People and workers take part: cancel, resume, retry, forget, and results from outside.

use noetl_tests::Api;
use serde_json::{Value, json};

use crate::support::{
    asks, playbook, register, rows, run, server, server_with, start, texts, until, until_parked, until_status,
};
use crate::upstream::Upstream;

/// Tools may reach the test's own server.
const LOCAL: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];

async fn steer(api: &Api, id: &str, verb: &str, body: Value) -> noetl_tests::Answer {
    api.post(&format!("/api/executions/{id}/{verb}"), body).await
}

#[tokio::test]
async fn a_cancelled_execution_ends_with_its_children_and_only_once() {
    let server = server().await;
    let admin = server.admin();
    let parent = json!([{"step": "start", "tool": {"kind": "playbook", "path": "demo/asks", "return_result": true}}]);
    register(&admin, &asks("demo/asks")).await.is(201);
    register(&admin, &playbook("demo/parent", parent)).await.is(201);
    let id = start(&admin, "demo/parent").await;
    let query = format!("/api/executions?consistency=strong&parent={id}");
    let child = loop {
        let children = admin.get(&query).await.is(200).json();
        if let Some(child) = texts(&children["executions"], "execution_id").first() {
            break (*child).to_owned();
        }
    };
    until_parked(&admin, &child, "ask").await;
    steer(&admin, &id, "cancel", json!({"reason": "wrong day"})).await.is(200);
    until_status(&admin, &id, "CANCELLED").await;
    until_status(&admin, &child, "CANCELLED").await;
    let why = admin.get(&format!("/api/executions/{id}/why")).await.is(200).json();
    assert!(why["headline"].as_str().is_some_and(|text| text.contains("wrong day")), "{why}");
    let status = admin.get(&format!("/api/executions/{id}/status")).await.is(200).json();
    assert_eq!(status["is_cancelled"], true);
    steer(&admin, &id, "resume", json!({"step": "ask"})).await.problem(409, "execution_state");
}

#[tokio::test]
async fn a_parked_step_goes_on_with_what_a_person_says() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let id = start(&admin, "demo/asks").await;
    until_parked(&admin, &id, "ask").await;
    let why = admin.get(&format!("/api/executions/{id}/why")).await.is(200).json();
    assert_eq!(why["waiting"]["parked"][0]["message"], "is 7 right?", "{why}");
    admin.delete(&format!("/api/executions/{id}")).await.problem(409, "execution_state");
    steer(&admin, &id, "resume", json!({"step": "start", "value": 1})).await.problem(409, "execution_state");
    steer(&admin, &id, "resume", json!({"value": 1})).await.problem(400, "invalid_body");
    steer(&admin, &id, "resume", json!({"step": "ask", "value": {"answer": "yes"}})).await.is(200);
    let ended = until_status(&admin, &id, "COMPLETED").await;
    assert_eq!(ended["output"], "yes");
    steer(&admin, &id, "resume", json!({"step": "ask", "value": 2})).await.problem(409, "execution_state");

    admin.delete(&format!("/api/executions/{id}")).await.is(200);
    admin.get(&format!("/api/executions/{id}")).await.problem(404, "execution_not_found");
    let left = admin.get("/api/executions?consistency=strong").await.is(200).json();
    assert_eq!(left["executions"], json!([]));
}

#[tokio::test]
async fn a_failed_execution_is_tried_again_from_where_it_failed() {
    let upstream = Upstream::start().await;
    let server = server_with(&LOCAL).await;
    let admin = server.admin();
    let rules = json!([{"when": "{{ output.data.body.number < 3 }}", "then": {"do": "fail"}}]);
    let workflow = json!([
        {"step": "start", "tool": {"kind": "http", "url": format!("{}/first", upstream.url)},
         "next": {"arcs": [{"step": "flaky"}]}},
        {"step": "flaky", "tool": {"kind": "http", "url": format!("{}/second", upstream.url),
         "spec": {"policy": {"rules": rules}}}, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.body.number }} then {{ flaky.body.number }}"}},
    ]);
    register(&admin, &playbook("demo/flaky", workflow)).await.is(201);
    let failed = run(&admin, "demo/flaky", json!({})).await;
    assert_eq!((&failed["status"], upstream.requests()), (&json!("failed"), 2), "{failed}");
    let id = failed["execution_id"].as_str().expect("an id");

    let retried = steer(&admin, id, "retry", json!({})).await.is(202).json();
    assert_eq!(retried["retry_of"], id);
    let again = retried["execution_id"].as_str().expect("an id");
    assert_ne!(again, id);
    let ended = until(&admin, again, |shown| shown["status"] != "RUNNING").await;
    assert_eq!((&ended["status"], &ended["output"]), (&json!("COMPLETED"), &json!("1 then 3")), "{ended}");
    assert_eq!(upstream.requests(), 3, "the step that had succeeded was not run again");
    steer(&admin, id, "retry", json!({"step": "nowhere"})).await.problem(409, "execution_state");
    admin.delete(&format!("/api/executions/{id}")).await.is(200);
}

#[tokio::test]
async fn a_worker_is_heard_once_however_often_it_says_it() {
    let upstream = Upstream::start().await;
    let server = server_with(&LOCAL).await;
    let admin = server.admin();
    let workflow = json!([
        {"step": "start", "tool": {"kind": "http", "url": format!("{}/hold", upstream.url)},
         "next": {"arcs": [{"step": "ask"}]}},
        {"step": "ask", "tool": {"kind": "park"}, "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.from }}"}},
    ]);
    register(&admin, &playbook("demo/work", workflow)).await.is(201);
    let id = start(&admin, "demo/work").await;
    until(&admin, &id, |_| upstream.requests() == 1).await;

    let event = |kind: &str| {
        let payload = json!({"command_id": "start#1", "result": {"from": "worker"}});
        json!({"execution_id": id, "event_type": kind, "worker_id": "w1", "payload": payload})
    };
    let claimed = admin.post("/api/events", event("command.claimed")).await.is(200).json();
    assert_eq!(claimed["outcome"], "noted");
    let heard = admin.post("/api/events", event("call.done")).await.is(200).json();
    assert_eq!((&heard["status"], &heard["outcome"]), (&json!("ok"), &json!("recorded")));
    let again = admin.post("/api/events", event("call.done")).await.is(200).json();
    assert_eq!(again["outcome"], "duplicate");
    until_parked(&admin, &id, "ask").await;
    // The server's own worker comes too late with what it got.
    upstream.release();
    let payload = json!({"command_id": "start#1", "result": {"from": "somebody else"}});
    let events = json!([{"event_type": "command.completed", "payload": payload}, {"event_type": "command.completed"}]);
    let batch = json!({"execution_id": id, "events": events, "idempotency_key": "k"});
    let answer = admin.post("/api/events/batch", batch).await.is(200).json();
    assert_eq!(
        (&answer["status"], &answer["duplicates"], &answer["failed"]),
        (&json!("partial"), &json!(1), &json!(1))
    );
    assert_eq!(answer["results"][1]["error"]["field"], "payload.command_id");

    steer(&admin, &id, "resume", json!({"step": "ask"})).await.is(200);
    assert_eq!(until_status(&admin, &id, "COMPLETED").await["output"], "worker");
    let done = admin.get(&format!("/api/executions/{id}/events?limit=1000")).await.is(200).json();
    let ends = rows(&done["events"]).filter(|event| event["meta"]["command_id"] == "start#1");
    assert_eq!(ends.filter(|event| event["event_type"] == "call.done").count(), 1);
    let unknown = json!({"execution_id": "77", "event_type": "call.done", "payload": {"command_id": "a#1"}});
    admin.post("/api/events", unknown).await.problem(404, "execution_not_found");
}

#[tokio::test]
async fn a_wait_ends_when_the_server_stops_and_the_execution_is_there_afterwards() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let waiting = {
        let admin = admin.clone();
        let body = json!({"path": "demo/asks", "dedup": {"key": "mine", "window_secs": 3600}});
        tokio::spawn(async move { (admin.post("/api/execute?wait=600", body.clone()).await, body) })
    };
    let query = "/api/executions?consistency=strong&status=running";
    let id = loop {
        let running = admin.get(query).await.is(200).json();
        if let Some(id) = texts(&running["executions"], "execution_id").first() {
            break (*id).to_owned();
        }
    };
    until_parked(&admin, &id, "ask").await;
    let (data, said) = tokio::task::spawn_blocking(move || server.stop()).await.expect("it stops");
    assert!(!said.contains("dropped"), "{said}");
    let (waited, body) = waiting.await.expect("it was answered");
    waited.problem(503, "not_ready");

    let again = noetl_tests::Server::start_on(data, &[]);
    let admin = again.admin();
    let found = admin.post("/api/execute", body).await.is(202).json();
    assert_eq!((&found["status"], &found["execution_id"]), (&json!("duplicate"), &json!(id)));
    steer(&admin, &id, "resume", json!({"step": "ask", "value": {"answer": 42}})).await.is(200);
    assert_eq!(until_status(&admin, &id, "COMPLETED").await["output"], 42);
}
