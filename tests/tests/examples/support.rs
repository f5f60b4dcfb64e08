//! A server that examples run on, and the command beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use noetl_tests::{Api, Ran, Server, noetl_bin, run};
use serde_json::{Value, json};

/// Nothing here takes this long; a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(120);

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests is a folder of the project").join("examples")
}

/// The text of an example.
pub fn text(file: &str) -> String {
    let file = examples().join(file);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A server whose components are ready, and its administrator.
pub struct Desk {
    pub server: Server,
    pub admin: Api,
}

impl Desk {
    pub async fn start() -> Self {
        // The API and the database of the tests are on this machine.
        let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
        let nobody = server.nobody();
        while nobody.get("/ready").await.status != 200 {}
        Self { admin: server.admin(), server }
    }

    /// The command as an author types it.
    pub fn noetl(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(noetl_bin());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("NOETL_") {
                command.env_remove(name);
            }
        }
        run(command.env("NOETL_DATA", self.server.data()).stdin(Stdio::null()).args(arguments))
    }

    /// Registers a file or folder below `examples/`; none of them may have as much as a warning, but for credentials that
    /// their user has yet to make.
    #[track_caller]
    pub fn register(&self, name: &str) {
        let registered = self.noetl(&["register", &examples().join(name).display().to_string(), "--json"]).ok().json();
        let all = registered["registered"].as_array().expect("a list").clone();
        assert!(!all.is_empty(), "{name} has no playbook");
        for one in all {
            let warnings = one["warnings"].as_array().expect("a list");
            let is_ours = |warning: &&Value| {
                !warning["message"].as_str().is_some_and(|text| text.starts_with("there is no credential"))
            };
            assert_eq!(warnings.iter().filter(is_ours).collect::<Vec<_>>(), Vec::<&Value>::new(), "{name}");
        }
    }

    /// Runs a playbook to its end and answers with what it came to.
    pub async fn result(&self, path: &str, payload: Value) -> Value {
        let body = json!({"path": path, "payload": payload});
        let ended = self.admin.post("/api/execute?wait=60", body).await.is(200).json();
        assert_eq!(ended["status"], "completed", "{path}: {ended}");
        ended["output"].clone()
    }

    /// Starts a playbook and answers with the id.
    pub async fn begin(&self, path: &str, payload: Value) -> String {
        let started = self.admin.post("/api/execute", json!({"path": path, "payload": payload})).await.is(202).json();
        started["execution_id"].as_str().expect("an id").to_owned()
    }

    /// The execution as soon as it is as wanted.
    pub async fn until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let path = format!("/api/executions/{id}?consistency=strong");
                let shown = self.admin.get(&path).await.is(200).json();
                if wanted(&shown) {
                    return shown;
                }
            }
        };
        tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("execution {id} never was as wanted"))
    }
}
