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
