//! An event without its place, and the forms of results and errors.

use serde_json::{Map, Value as Json, json};

use super::ORGANIZATION;
use crate::event::{Data, Failure, Reference};
use crate::ids::CommandId;

/// An event before it has its place.
pub struct Draft {
    pub kind: &'static str,
    pub node: String,
    pub node_type: String,
    pub status: &'static str,
    pub result: Option<Outcome>,
    pub error: Option<Json>,
    pub parent_execution: Option<String>,
    pub meta: Map<String, Json>,
}

impl Draft {
    pub fn new(kind: &'static str, node: &str, node_type: &str, status: &'static str) -> Self {
        Self {
            kind,
            node: node.to_owned(),
            node_type: node_type.to_owned(),
            status,
            result: None,
            error: None,
            parent_execution: None,
            meta: Map::new(),
        }
    }

    pub fn meta(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.meta.insert(name.to_owned(), value.into());
        self
    }

    /// Absent values have no key.
    pub fn maybe(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.meta(name, value),
            None => self,
        }
    }

    pub fn command(self, command: &CommandId) -> Self {
        self.meta("command_id", command.to_string())
            .meta("run", command.run)
            .maybe("iteration_index", command.iteration)
            .meta("attempt", command.attempt)
    }

    pub fn result(mut self, result: Outcome) -> Self {
        self.result = Some(result);
        self
    }

    pub fn error(mut self, error: Option<&Failure>) -> Self {
        self.error = error.map(failure);
        self
    }
}

/// An error as it is shown everywhere.
pub fn failure(error: &Failure) -> Json {
    json!({"code": error.code, "message": error.message, "retryable": error.retryable})
}

/// The `result` of an event.
pub struct Outcome {
    ok: bool,
    data: Option<Data>,
    /// For the address of what is not inline: step, run, iteration.
    coordinate: Option<(String, u32, Option<u32>)>,
}

impl Outcome {
    pub fn status(ok: bool) -> Self {
        Self { ok, data: None, coordinate: None }
    }

    pub fn data(ok: bool, data: &Data, step: &str, run: u32, iteration: Option<u32>) -> Self {
        Self { ok, data: Some(data.clone()), coordinate: Some((step.to_owned(), run, iteration)) }
    }

    pub fn render(self, tenant: &str, execution: &str) -> Json {
        let mut result = Map::new();
        result.insert("status".to_owned(), if self.ok { "success" } else { "error" }.into());
        let (Some(data), Some((step, run, iteration))) = (self.data, self.coordinate) else { return result.into() };
        let urn = urn(tenant, execution, &step, run, iteration);
        match &data.reference {
            Some(whole) => {
                result.insert("reference".to_owned(), reference(whole, &urn));
                result.insert("extracted".to_owned(), data.value);
            }
            None => {
                result.insert("context".to_owned(), json!({"data": data.value}));
            }
        }
        if !data.chunks.is_empty() {
            result.insert("chunks".to_owned(), data.chunks.iter().map(|chunk| reference(chunk, &urn)).collect());
        }
        result.into()
    }
}

fn reference(payload: &Reference, urn: &str) -> Json {
    json!({
        "kind": "result_ref",
        "ref": urn,
        "sha256": payload.sha256,
        "bytes": payload.size,
        "media_type": "application/json",
    })
}

/// The address of a result, which anybody can compute: a retry has the same one.
fn urn(tenant: &str, execution: &str, step: &str, run: u32, iteration: Option<u32>) -> String {
    let mut name = String::with_capacity(step.len());
    for byte in step.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("noetl://{tenant}/{ORGANIZATION}/results/{execution}/{name}/{run}/{}/1", iteration.unwrap_or(0))
}
