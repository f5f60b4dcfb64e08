//! What the tests of this suite share.

use noetl_tests::{Api, Server};
use serde_json::{Value, json};

/// A server that may reach this machine.
pub async fn server() -> Server {
    server_with(&[]).await
}

pub async fn server_with(more: &[(&str, &str)]) -> Server {
    let mut environment = vec![("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];
    environment.extend(more);
    let server = Server::start_with(&environment);
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    server
}

/// Registers a playbook; `workflow` is JSON, which is YAML.
pub async fn register(api: &Api, path: &str, workflow: Value) {
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": path, "path": path}, "workflow": workflow,
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
}

/// Runs a workflow to its end.
pub async fn run(api: &Api, path: &str, workflow: Value) -> Value {
    register(api, path, workflow).await;
    api.post("/api/execute?wait=60", json!({"path": path})).await.is(200).json()
}

/// Runs one tool; answers with the result of the step.
pub async fn call(api: &Api, path: &str, tool: Value) -> Value {
    let ended = run(api, path, json!([{"step": "start", "tool": tool}])).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended["output"].clone()
}

/// Runs one tool that fails; answers with the code of the failure.
pub async fn failure(api: &Api, path: &str, tool: Value) -> String {
    let ended = run(api, path, json!([{"step": "start", "tool": tool}])).await;
    assert_eq!(ended["status"], "failed", "{ended}");
    // The execution's error names its step; the code of the tool's own failure is seen by rules.
    let seen = run(
        api,
        &format!("{path}-seen"),
        json!([{"step": "start", "tool": [with_rule(tool), {"name": "told", "kind": "noop", "result": "{{ code }}"}]}]),
    )
    .await;
    seen["output"]["told"].as_str().unwrap_or_else(|| panic!("{seen}")).to_owned()
}

fn with_rule(mut tool: Value) -> Value {
    tool["name"] = json!("tried");
    let set = json!({"code": "{{ output.error.code }}"});
    tool["spec"] = json!({"policy": {"rules": [{"else": {"then": {"do": "continue", "set": set}}}]}});
    tool
}
