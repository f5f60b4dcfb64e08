//! Polls of a stream: bounded, settled as asked, and not lost in a crash.

use noetl_tests::{Api, Nats, Server};
use serde_json::{Value, json};

use crate::support::{at, call, envelope, run, server_with};

async fn publish(api: &Api, nats: &Nats, count: u64) {
    let publish = json!({"operation": "js_publish", "subject": "orders.new", "data": {"n": "{{ n }}"}});
    let mut tool = at(nats, "nats", publish);
    tool["input"] = json!({"n": "{{ iter.n }}"});
    let numbers: Vec<u64> = (0..count).collect();
    let ended =
        run(api, "poll/publish", json!([{"step": "start", "loop": {"in": numbers, "iterator": "n"}, "tool": tool}]))
            .await;
    assert_eq!(ended["status"], "completed", "{ended}");
}

fn poll(nats: &Nats, more: Value) -> Value {
    let mut tool = at(nats, "subscription", json!({"stream": "ORDERS", "consumer": "worker", "timeout_ms": 500}));
    tool.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    tool
}

async fn stand() -> (Nats, Server) {
    let nats = Nats::start().await;
    nats.make_stream("ORDERS", &["orders.>"], "worker").await.expect("a stream");
    (nats, server_with(&[]).await)
}

#[tokio::test]
async fn a_poll_takes_a_batch_and_settles_it_as_it_is_asked_to() {
    let (nats, server) = stand().await;
    let api = server.admin();
    publish(&api, &nats, 6).await;
    let auto = call(&api, "poll/auto", poll(&nats, json!({"batch": 2, "ack": "auto"}))).await;
    assert_eq!((&auto["count"], &auto["acked"], &auto["ack_mode"]), (&json!(2), &json!(2), &json!("auto")));
    assert_eq!((&auto["source"], &auto["operation"], &auto["ack_ids"]), (&json!("nats"), &json!("poll"), &json!([])));
    let success = call(&api, "poll/success", poll(&nats, json!({"batch": 2}))).await;
    assert_eq!((&success["count"], &success["acked"]), (&json!(2), &json!(2)));
    let manual = call(&api, "poll/manual", poll(&nats, json!({"ack": "manual"}))).await;
    assert_eq!((&manual["count"], &manual["acked"]), (&json!(2), &json!(0)));
    let ids = manual["ack_ids"].as_array().expect("a list").clone();
    let nack = at(&nats, "subscription", json!({"operation": "nack", "ack_ids": [ids[0]]}));
    assert_eq!(call(&api, "poll/nack", nack).await["count"], 1);
    let term = at(&nats, "subscription", json!({"operation": "term", "ack_ids": [ids[1]]}));
    call(&api, "poll/term", term).await;
    let again = call(&api, "poll/again", poll(&nats, json!({"ack": "manual"}))).await;
    assert_eq!(again["count"], 1, "one comes again, one never does");
    assert_eq!(again["messages"][0]["metadata"]["deliveries"], 2);
    let ack = at(&nats, "subscription", json!({"operation": "ack", "messages": again["messages"]}));
    assert_eq!(call(&api, "poll/ack", ack).await["acked"], 1);
    let empty = call(&api, "poll/empty", poll(&nats, json!({}))).await;
    assert_eq!((&empty["count"], &empty["messages"]), (&json!(0), &json!([])));
}

#[tokio::test]
async fn messages_are_gone_through_one_by_one() {
    let (nats, server) = stand().await;
    let api = server.admin();
    publish(&api, &nats, 5).await;
    let workflow = json!([
        {"step": "start", "tool": poll(&nats, json!({})), "next": {"arcs": [{"step": "each"}]}},
        {"step": "each", "loop": {"in": "{{ start.messages }}", "iterator": "message"},
         "tool": {"kind": "noop", "result": "{{ message.data.n }}"}},
    ]);
    let ended = run(&api, "poll/loop", workflow).await;
    assert_eq!(ended["output"]["count"], 5, "{ended}");
}

#[tokio::test]
async fn other_sources_are_refused_by_name() {
    let (nats, server) = stand().await;
    for source in ["kafka", "pubsub"] {
        let tool = poll(&nats, json!({"source": source, "ack": "manual"}));
        let seen = envelope(&server.admin(), &format!("poll/{source}"), tool).await;
        assert_eq!(seen["error"]["code"], "invalid_input");
        assert!(seen["error"]["message"].as_str().is_some_and(|text| text.contains(source)), "{seen}");
    }
}

#[tokio::test]
async fn a_batch_that_was_acknowledged_is_not_lost_with_the_server() {
    let (nats, mut server) = stand().await;
    let api = server.admin();
    publish(&api, &nats, 3).await;
    // The poll is acknowledged, and then the step waits before it asks once more: what came of it is not recorded yet.
    let rule = json!({"when": "{{ output.data.count > 0 }}",
                      "then": {"do": "retry", "attempts": 2, "delay": 5, "set": {"ctx.first": "{{ output.data.count }}"}}});
    let polled = poll(&nats, json!({"name": "poll", "spec": {"policy": {"rules": [rule]}}}));
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "crash", "path": "poll/crash"},
        "workflow": [{"step": "start", "tool": [polled], "next": {"arcs": [{"step": "end"}]}},
                     {"step": "end", "tool": {"kind": "noop", "result": "{{ first }}"}}],
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
    // Asked for a second time it is the same execution.
    let wanted = json!({"path": "poll/crash", "dedup": {"key": "one", "window_secs": 86_400}});
    api.post("/api/execute", wanted.clone()).await.is(202);
    while nats.acknowledged("ORDERS", "worker").await.expect("a consumer") < 3 {}
    let folder = server.folder();
    server.kill();
    drop(server);
    let server = Server::start_on(folder, &[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let api = server.admin();
    let ended = api.post("/api/execute?wait=300", wanted).await.is(200).json();
    assert_eq!(ended["output"], 3, "{ended}");
    let rest = call(&api, "poll/rest", poll(&nats, json!({}))).await;
    assert_eq!(rest["count"], 0, "they were acknowledged");
}

#[tokio::test]
async fn messages_that_later_tools_fail_on_are_not_acknowledged_before_them() {
    let (nats, server) = stand().await;
    let api = server.admin();
    publish(&api, &nats, 2).await;
    let consume = |ack: Value| {
        let options = json!({"name": "came", "operation": "js_consume", "stream": "ORDERS", "consumer": "worker",
                             "timeout_ms": 500, "ack": ack});
        at(&nats, "nats", options)
    };
    let document = |tool: Value| {
        let workflow = json!([{"step": "start", "tool": [tool, {"name": "then", "kind": "noop"}]}]);
        let metadata = json!({"name": "early", "path": "poll/early"});
        json!({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": metadata, "workflow": workflow})
    };
    let by_path =
        json!({"name": "came", "kind": "wasm", "plugin": "tools/subscription", "input": {"stream": "ORDERS"}});
    for tool in [consume(json!(true)), by_path] {
        let content = json!({"content": document(tool).to_string()});
        let refused = api.post("/api/catalog/register", content).await.problem(422, "invalid_playbook");
        assert!(refused["problems"].to_string().contains("the tools after it may still fail"), "{refused}");
    }
    // What a template says is known when it is called.
    let tools = json!([consume(json!("{{ 1 == 1 }}")), {"name": "then", "kind": "noop"}]);
    let ended = run(&api, "poll/told", json!([{"step": "start", "tool": tools}])).await;
    assert_eq!(ended["error"]["code"], "invalid_input", "{ended}");
    let ack = at(&nats, "subscription", json!({"name": "ack", "operation": "ack", "ack_ids": "{{ came.ack_ids }}"}));
    let tools = json!([consume(json!(false)), {"name": "then", "kind": "noop"}, ack]);
    let ended = run(&api, "poll/later", json!([{"step": "start", "tool": tools}])).await;
    assert_eq!(ended["output"]["ack"]["acked"], 2, "{ended}");
}
