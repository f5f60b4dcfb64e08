//! One execution, followed by its events to its end.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Map, Value as Json, json};

use crate::Api;

pub(super) struct Run {
    pub execution: String,
    /// `COMPLETED`, `FAILED`, `CANCELLED`; `RUNNING` when the time was over before it ended.
    pub status: String,
    /// Why it failed, or what it waits for.
    pub why: String,
    pub events: Vec<Json>,
}

impl Run {
    pub async fn of(api: &Api, path: &str, payload: &Map<String, Json>, limit: Duration) -> Result<Self, String> {
        let started = api.post("/api/execute", json!({"path": path, "payload": payload})).await;
        if started.status != 202 && started.status != 200 {
            let why = format!("it cannot be started: {}", started.text());
            return Ok(Self { execution: String::new(), status: "REFUSED".to_owned(), why, events: Vec::new() });
        }
        let execution = started.json()["execution_id"].as_str().ok_or("a start without an id")?.to_owned();
        let mut run = Self { execution, status: "RUNNING".to_owned(), why: String::new(), events: Vec::new() };
        let ended = tokio::time::timeout(limit, run.follow(api)).await;
        match ended {
            Ok(followed) => followed?,
            Err(_) => {
                run.why = format!("it did not end within {} s; {}", limit.as_secs(), run.reason(api).await);
                let reason = json!({"reason": "the compatibility run gave it up"});
                api.post(&format!("/api/executions/{}/cancel", run.execution), reason).await;
            }
        }
        Ok(run)
    }

    async fn follow(&mut self, api: &Api) -> Result<(), String> {
        let request = api.request(Method::GET, &format!("/api/executions/{}/events", self.execution));
        let response = request.header("accept", "text/event-stream").send().await.map_err(|error| error.to_string())?;
        let mut pieces = response.bytes_stream();
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| error.to_string())?);
            while let Some(end) = bytes.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = bytes.drain(..end + 2).collect();
                self.take(&String::from_utf8_lossy(&event));
            }
        }
        if self.status == "FAILED" && self.why.is_empty() {
            self.why = self.reason(api).await;
        }
        Ok(())
    }

    fn take(&mut self, event: &str) {
        let data = event.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim_start);
        let Some(event) = data.and_then(|data| serde_json::from_str::<Json>(data).ok()) else { return };
        let status = match event["event_type"].as_str() {
            Some("playbook.completed") => Some("COMPLETED"),
            Some("playbook.failed") => Some("FAILED"),
            Some("execution.cancelled") => Some("CANCELLED"),
            _ => None,
        };
        if let Some(status) = status {
            self.status = status.to_owned();
            self.why = event["error"]["message"].as_str().unwrap_or_default().to_owned();
        }
        self.events.push(event);
    }

    async fn reason(&self, api: &Api) -> String {
        let answer = api.get(&format!("/api/executions/{}/why", self.execution)).await;
        answer.text().chars().take(600).collect()
    }

    /// Events of a type, of one step or of all.
    pub fn of_type<'a>(&'a self, kind: &'a str, step: Option<&'a str>) -> impl DoubleEndedIterator<Item = &'a Json> {
        let is_of = move |event: &&Json| step.is_none_or(|step| event["node_name"] == step);
        self.events.iter().filter(move |event| event["event_type"] == kind).filter(is_of)
    }

    /// The last result of a step, or of one of its iterations. Of a large one it is what is kept at hand.
    pub fn output(&self, step: &str, iteration: Option<u64>) -> Option<&Json> {
        let is_wanted = |event: &&Json| {
            matches!(event["event_type"].as_str(), Some("call.done" | "call.error" | "step.resumed"))
                && event["node_name"] == step
                && (iteration.is_none() || event["meta"]["iteration_index"].as_u64() == iteration)
        };
        let result = &self.events.iter().rev().find(is_wanted)?["result"];
        result.pointer("/context/data").or_else(|| result.get("extracted"))
    }
}
