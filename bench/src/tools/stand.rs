//! A server that may reach this machine, and playbooks on it whose answers are known.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{self, Server};

/// Steps of a loop.
pub const REPEATED: u64 = 200;
/// Steps of a loop that run at a time: as many as the server's pool runs.
pub const IN_FLIGHT: usize = 64;

const ENVIRONMENT: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];

pub struct Stand {
    pub server: Server,
    client: Client,
    /// Goes after the server that uses it.
    _folder: TempDir,
}

/// A playbook that is registered, and what it has to come to.
pub struct Playbook {
    path: String,
    /// Where in the output the answer is, as a JSON pointer.
    at: &'static str,
    pub answer: Value,
}

impl Stand {
    pub async fn start() -> Result<Self> {
        let folder = server::folder()?;
        // The first start compiles what is embedded; what is measured is a server that need not.
        let first = Server::start_with(folder.path(), &ENVIRONMENT)?;
        first.ready().await?;
        drop(first);
        let server = Server::start_with(folder.path(), &ENVIRONMENT)?;
        server.ready().await?;
        Ok(Self { server, client: server::client()?, _folder: folder })
    }

    /// A playbook of one step.
    pub async fn step(&self, name: &str, tool: &Value, at: &'static str, answer: Value) -> Result<Playbook> {
        self.playbook(name, &json!([{"step": "start", "tool": tool}]), at, answer).await
    }

    /// A parallel loop of the step, and how many of its iterations succeeded.
    pub async fn repeated(&self, name: &str, tool: &Value) -> Result<Playbook> {
        let each = json!({"in": REPEATED, "iterator": "n", "spec": {"mode": "parallel", "max_in_flight": IN_FLIGHT}});
        let workflow = json!([
            {"step": "start", "loop": each, "tool": tool, "next": {"arcs": [{"step": "end"}]}},
            {"step": "end", "tool": {"kind": "noop", "result": "{{ start.stats.success }}"}},
        ]);
        self.playbook(&format!("{name}-repeated"), &workflow, "", json!(REPEATED)).await
    }

    pub async fn playbook(&self, name: &str, workflow: &Value, at: &'static str, answer: Value) -> Result<Playbook> {
        let path = format!("bench/{name}");
        let document = json!({
            "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
            "workflow": workflow,
        });
        let request = self.post("/api/catalog/register").header("content-type", "text/yaml");
        self.must(request.body(document.to_string())).await.with_context(|| format!("register {path}"))?;
        Ok(Playbook { path, at, answer })
    }

    pub async fn credential(&self, credential: &Value) -> Result<()> {
        self.must(self.post("/api/credentials").json(credential)).await.context("keep a credential")
    }

    /// Runs a playbook to its end and checks its answer; milliseconds from the request to the answer.
    pub async fn run(&self, playbook: &Playbook) -> Result<f64> {
        let request = self.post("/api/execute?wait=600").json(&json!({"path": playbook.path}));
        let asked = Instant::now();
        let answer = request.send().await?;
        let text = answer.text().await?;
        let took = asked.elapsed().as_secs_f64() * 1e3;
        let ended: Value = serde_json::from_str(&text).with_context(|| format!("the server answered {text}"))?;
        let is_right = ended["status"] == "completed" && ended["output"].pointer(playbook.at) == Some(&playbook.answer);
        ensure!(is_right, "{} came to {text} instead of {} at `{}`", playbook.path, playbook.answer, playbook.at);
        Ok(took)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.server.url)).bearer_auth(&self.server.token)
    }

    async fn must(&self, request: RequestBuilder) -> Result<()> {
        let answer = request.send().await?;
        let status = answer.status();
        if !status.is_success() {
            bail!("the server refused: {status} {}", answer.text().await?);
        }
        Ok(())
    }
}
