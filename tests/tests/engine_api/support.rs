//! What the tests of this suite share: texts of playbooks, starting them, and reading a stream of events.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use noetl_tests::{Answer, Api, Server};
use reqwest::Method;
use serde_json::{Value, json};

/// Nothing here takes this long; a test that waits for it has failed.
const LONG: Duration = Duration::from_secs(60);

/// A server whose components are ready.
pub async fn server() -> Server {
    server_with(&[]).await
}

pub async fn server_with(environment: &[(&str, &str)]) -> Server {
    let server = Server::start_with(environment);
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    server
}

/// A playbook with this path and workflow, given as JSON, which is YAML.
pub fn playbook(path: &str, workflow: Value) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
        "workload": {"name": "world"}, "workflow": workflow,
    });
    document.to_string()
}

/// One step that says hello.
pub fn hello(path: &str) -> String {
    playbook(path, json!([{"step": "start", "tool": {"kind": "noop", "result": {"hello": "{{ name }}"}}}]))
}

/// Waits for a person, then says what the person said.
pub fn asks(path: &str) -> String {
    playbook(
        path,
        json!([
            {"step": "start", "tool": {"kind": "noop", "result": 7}, "next": {"arcs": [{"step": "ask"}]}},
            {"step": "ask", "tool": {"kind": "park", "message": "is {{ start }} right?"},
             "next": {"arcs": [{"step": "end"}]}},
            {"step": "end", "tool": {"kind": "noop", "result": "{{ ask.answer }}"}},
        ]),
    )
}

/// Does one thing, then fails.
pub fn fails(path: &str) -> String {
    let rules = json!([{"else": {"do": "fail"}}]);
    playbook(
        path,
        json!([
            {"step": "start", "tool": {"kind": "noop", "result": 1}, "next": {"arcs": [{"step": "bad"}]}},
            {"step": "bad", "tool": {"kind": "noop", "spec": {"policy": {"rules": rules}}}},
        ]),
    )
}

pub async fn register(api: &Api, text: &str) -> Answer {
    register_at(api, text, "").await
}

/// `query` is empty or begins with `?`.
pub async fn register_at(api: &Api, text: &str, query: &str) -> Answer {
    let request = api.request(Method::POST, &format!("/api/catalog/register{query}"));
    api.send(request.header("content-type", "text/yaml").body(text.to_owned())).await
}

/// Starts a playbook and answers with the id.
pub async fn start(api: &Api, path: &str) -> String {
    let started = api.post("/api/execute", json!({"path": path})).await.is(202).json();
    started["execution_id"].as_str().expect("an id").to_owned()
}

/// Runs a playbook to its end.
pub async fn run(api: &Api, path: &str, payload: Value) -> Value {
    api.post("/api/execute?wait=60", json!({"path": path, "payload": payload})).await.is(200).json()
}

/// The execution as soon as it is as wanted.
pub async fn until(api: &Api, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let shown = api.get(&format!("/api/executions/{id}?consistency=strong")).await.is(200).json();
            if wanted(&shown) {
                return shown;
            }
        }
    };
    tokio::time::timeout(LONG, looking).await.unwrap_or_else(|_| panic!("execution {id} never was as wanted"))
}

pub async fn until_status(api: &Api, id: &str, status: &str) -> Value {
    until(api, id, |shown| shown["status"] == status).await
}

/// The execution as soon as the step waits for somebody.
pub async fn until_parked(api: &Api, id: &str, step: &str) -> Value {
    until(api, id, |shown| rows(&shown["steps"]).any(|row| row["step"] == step && row["status"] == "PARKED")).await
}

pub fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().unwrap_or_else(|| panic!("{list} is not a list")).iter()
}

/// The texts of one member of each row.
pub fn texts<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    rows(list).map(|row| row[member].as_str().unwrap_or_default()).collect()
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub id: String,
    pub kind: String,
    pub data: Value,
}

/// A stream of server-sent events.
pub struct Stream {
    pieces: BoxStream<'static, Vec<u8>>,
    text: String,
}

impl Stream {
    pub async fn open(api: &Api, id: &str, last: Option<&str>) -> Self {
        let response = Self::ask(api, id, last).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let pieces = response.bytes_stream().map(|piece| piece.expect("readable").to_vec()).boxed();
        Self { pieces, text: String::new() }
    }

    pub async fn ask(api: &Api, id: &str, last: Option<&str>) -> reqwest::Response {
        let request = api.request(Method::GET, &format!("/api/executions/{id}/events"));
        let request = request.header("accept", "text/event-stream");
        let request = last.iter().fold(request, |request, last| request.header("last-event-id", *last));
        request.send().await.expect("an answer")
    }

    /// The next event; none at the end of the stream.
    pub async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                    line.trim_start().to_owned()
                };
                let (id, kind, data) = (field("id:"), field("event:"), field("data:"));
                self.text = rest.to_owned();
                if !data.is_empty() {
                    let data = serde_json::from_str(&data).expect("data is JSON");
                    return Some(Told { id, kind, data });
                }
                continue;
            }
            let piece = tokio::time::timeout(LONG, self.pieces.next()).await.expect("the stream goes on")?;
            self.text.push_str(&String::from_utf8_lossy(&piece));
        }
    }

    /// All events up to the first of this kind.
    pub async fn up_to(&mut self, kind: &str) -> Vec<Told> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|told: &Told| told.kind != kind) {
            seen.push(self.next().await.unwrap_or_else(|| panic!("no {kind} came, only {seen:?}")));
        }
        seen
    }

    pub async fn rest(mut self) -> Vec<Told> {
        let mut seen = Vec::new();
        while let Some(told) = self.next().await {
            seen.push(told);
        }
        seen
    }
}
