//! What the tests of the wallet share.

use std::path::Path;
use std::process::{Command, Stdio};

use noetl_tests::{Api, Server, noetl_bin};
use serde_json::{Value, json};

/// Long enough to be found by chance nowhere.
pub const SECRET: &str = "correct-horse-battery-staple-7";

pub fn bearer(name: &str, token: &str) -> Value {
    json!({"name": name, "type": "bearer", "data": {"token": token}, "hosts": ["api.example.com"], "tags": ["demo"],
           "description": "for tests"})
}

/// A client with a token of the administrator's that may be shown values.
pub async fn with_reveal(server: &Server, tenant: Option<&str>) -> Api {
    let body = json!({"name": "reveals", "tenant": tenant, "rights": ["credential:reveal"]});
    let made = server.admin().post("/api/tokens", body).await.is(201).json();
    assert_eq!(made["rights"], json!(["credential:reveal"]));
    server.with_token(made["secret"].as_str().expect("a secret"))
}

/// A server that may reach this machine, and is ready.
pub async fn reaching() -> Server {
    let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    while server.nobody().get("/ready").await.status != 200 {}
    server
}

/// Keeps a credential that may go to these hosts.
pub async fn keep(api: &Api, name: &str, kind: &str, data: Value, hosts: &[&str]) {
    let body = json!({"name": name, "type": kind, "data": data, "hosts": hosts});
    api.post("/api/credentials", body).await.is(201);
}

/// Runs a workflow of these steps to its end.
pub async fn run_steps(api: &Api, path: &str, workflow: Value) -> Value {
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": path, "path": path}, "workflow": workflow,
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
    api.post("/api/execute?wait=300", json!({"path": path})).await.is(200).json()
}

/// Runs one step that completes; its result.
pub async fn step(api: &Api, path: &str, tool: Value) -> Value {
    let ended = run_steps(api, path, json!([{"step": "start", "tool": tool}])).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    ended["output"].clone()
}

/// Runs one step that fails; the code of its failure and whether it says that trying again may help.
pub async fn failing(api: &Api, path: &str, mut tool: Value) -> (String, String) {
    let set = json!({"code": "{{ output.error.code }}", "again": "{{ output.error.retryable }}"});
    tool["name"] = json!("tried");
    tool["spec"] = json!({"policy": {"rules": [{"else": {"then": {"do": "continue", "set": set}}}]}});
    let told = json!({"name": "told", "kind": "noop", "result": "{{ code }} {{ again }}"});
    let ended = run_steps(api, path, json!([{"step": "start", "tool": [tool, told]}])).await;
    let told = ended["output"]["told"].as_str().unwrap_or_else(|| panic!("{ended}")).to_lowercase();
    let (code, again) = told.split_once(' ').expect("two words");
    (code.to_owned(), again.to_owned())
}

/// The command, on the folder of a server.
pub fn noetl(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(noetl_bin());
    command.args(arguments).arg("--data").arg(server.data()).env_remove("NOETL_TOKEN").env_remove("NOETL_SERVER");
    command.stdin(Stdio::null());
    command
}

/// Files below a folder that have this text in them.
pub fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(text.len()).any(|window| window == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}
