//! A server with a folder of scripts, and calls of the tools on it.

use std::path::{Path, PathBuf};

use noetl_tests::{Answer, Api, Server};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

pub struct Desk {
    pub server: Server,
    pub admin: Api,
    place: TempDir,
}

impl Desk {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub async fn start_with(environment: &[(&str, &str)]) -> Self {
        let place = TempDir::new().expect("a folder");
        let scripts = place.path().join("scripts");
        std::fs::create_dir(&scripts).expect("a folder");
        let folder = scripts.display().to_string();
        let mut all = vec![("NOETL_FILES_FOLDER", folder.as_str()), ("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];
        all.extend(environment);
        let server = Server::start_with(&all);
        let admin = server.admin();
        while server.nobody().get("/ready").await.status != 200 {}
        Self { server, admin, place }
    }

    /// The folder that scripts are read from.
    pub fn scripts(&self) -> PathBuf {
        self.place.path().join("scripts")
    }

    /// A folder that no step can read.
    pub fn outside(&self) -> &Path {
        self.place.path()
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Answer {
        self.admin.post(&format!("/api/plugins/tools/{tool}:call"), arguments).await
    }

    /// The value of Python code.
    pub async fn python(&self, code: &str, input: Value) -> Value {
        self.call("python", json!({"code": code, "input": input})).await.is(200).json()
    }

    /// How a call of the tool ended: `ok`, the code of the code's own failure, or the class of the fault.
    pub async fn class(&self, tool: &str, code: &str) -> String {
        class_of(&self.call(tool, json!({ "code": code })).await)
    }

    /// Registers a playbook of these steps and runs it to its end.
    pub async fn run(&self, name: &str, workflow: Value) -> Value {
        let path = format!("tests/{name}");
        let document = json!({
            "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
            "workflow": workflow,
        });
        let register = self.admin.request(Method::POST, "/api/catalog/register");
        let register = register.header("content-type", "text/yaml").body(document.to_string());
        self.admin.send(register).await.is(201);
        self.admin.post("/api/execute?wait=300", json!({ "path": path })).await.is(200).json()
    }
}

/// The class that an answer of a tool tells.
pub fn class_of(answer: &Answer) -> String {
    let said = answer.json();
    let code = if answer.status == 200 { &said["_failure"]["code"] } else { &said["code"] };
    code.as_str().unwrap_or("ok").to_owned()
}
