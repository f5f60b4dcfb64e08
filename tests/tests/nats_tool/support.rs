//! What the tests of this suite share.

use noetl_tests::{Api, Nats, Server};
use serde_json::{Value, json};

/// A server that may reach this machine.
pub async fn server_with(more: &[(&str, &str)]) -> Server {
    let mut environment = vec![("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];
    environment.extend(more);
    let server = Server::start_with(&environment);
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    server
}

/// Runs a workflow to its end; JSON is YAML.
pub async fn run(api: &Api, path: &str, workflow: Value) -> Value {
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": path, "path": path}, "workflow": workflow,
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
    api.post("/api/execute?wait=60", json!({"path": path})).await.is(200).json()
}

/// Runs one tool; answers with the result of the step.
pub async fn call(api: &Api, path: &str, tool: Value) -> Value {
    let ended = run(api, path, json!([{"step": "start", "tool": tool}])).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended["output"].clone()
}

/// Runs one tool in a pipeline; answers with the envelope that rules see.
pub async fn envelope(api: &Api, path: &str, mut tool: Value) -> Value {
    tool["name"] = json!("tried");
    tool["spec"] =
        json!({"policy": {"rules": [{"else": {"then": {"do": "continue", "set": {"seen": "{{ output }}"}}}}]}});
    let workflow = json!([{"step": "start", "tool": [tool, {"name": "told", "kind": "noop", "result": "{{ seen }}"}]}]);
    let ended = run(api, path, workflow).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended["output"]["told"].clone()
}

/// A tool with the login of a server.
pub fn at(nats: &Nats, kind: &str, options: Value) -> Value {
    let mut tool = json!({"kind": kind, "url": nats.url(), "user": nats.user, "password": nats.password});
    tool.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
    tool
}
