//! What came of calling a tool or running a playbook, as the rules see it.
//!
//! A failure is a value like any other: rules decide what to make of it. Some tools answer with a failure: HTTP tools
//! answer whatever the server said, and a status of 400 and above is an error of the kinds below; programs answer with what
//! they wrote, whatever their exit code is. A tool that has something to say beside its failure, such as what a script
//! printed before it broke, answers with the field `_failure` (`code`, `message`, `retryable`) among its own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::held::Held;
use super::turn::{Answered, Called, Executed, Failed};
use super::{Partial, digits};
use crate::event::{Data, Failure, Reference};
use crate::extract::is_mark;
use crate::response;
use crate::template::{Value, envelope_value, payload_address};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// What is kept of it: the output, or what is known of the failure.
    pub data: Held,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Whether `data` is the tool's own.
    pub answered: bool,
    /// Whether the tool broke off, so that `data` is what is left of it and nothing to set variables from.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broke: bool,
    /// A failure of what was run, and not to run it: that of a playbook of which a step was wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ran: bool,
    #[serde(default)]
    pub duration_ms: u64,
    /// Where the whole of `data` is, if it is an extract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Partial>,
}

/// What is wanted of a playbook that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wanted {
    Output,
    Step(String),
}

/// How it is told that a playbook was not waited for any longer. One that ended by itself does not say this.
const LATE: &str = "child_timeout";

/// What an execution tells whoever started it.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    output: Data,
    error: Option<Failure>,
    steps: std::collections::BTreeMap<String, Data>,
}

impl Outcome {
    pub(super) fn success(data: Json) -> Self {
        Self { data: data.into(), failure: None, answered: true, broke: false, ran: false, duration_ms: 0, load: None }
    }

    pub(super) fn failure(code: &str, message: String, retryable: bool) -> Self {
        let failure = Failure { code: code.to_owned(), message, retryable };
        Self { failure: Some(failure.clone()), answered: false, ..Self::success(told(&failure)) }
    }

    pub(super) fn called(kind: &str, called: Called) -> Self {
        let mut outcome = match called.outcome {
            Ok(answered) => answer(kind, answered),
            Err(Failed { unknown: true, message, .. }) => Self::failure("outcome_unknown", message, false),
            Err(Failed { code, message, retryable, .. }) => {
                let state = sqlstate(&message).filter(|_| DATABASES.contains(&kind)).map(str::to_owned);
                let mut outcome = Self::failure(&code, message, retryable);
                if let Some(state) = state {
                    outcome.add("pg", json!({"code": state, "sqlstate": state}));
                }
                outcome
            }
        };
        outcome.duration_ms = called.duration_ms;
        outcome
    }

    pub(super) fn executed(executed: &Executed, path: &str, wanted: Wanted) -> Self {
        let execution = executed.execution.to_string();
        if executed.status == "started" {
            return Self::success(json!({"status": "started", "execution_id": execution, "path": path, "async": true}));
        }
        let mut answer: Answer = match serde_json::from_str(&executed.body) {
            Ok(answer) => answer,
            Err(error) => {
                return Self::failure(
                    "invalid_output",
                    format!("the answer of `{path}` cannot be read: {error}"),
                    false,
                );
            }
        };
        if executed.status != "completed" {
            let late = answer.error.as_ref().is_some_and(|error| error.code == LATE);
            let why = answer.error.map_or("it gave no reason".to_owned(), |error| error.message);
            let code = match executed.status.as_str() {
                _ if late => "timeout",
                "cancelled" => "child_cancelled",
                _ => "child_failed",
            };
            // A playbook that could not be started has no execution.
            let message = match executed.execution {
                0 => format!("`{path}`: {why}"),
                _ => format!("execution {execution} of `{path}` {}: {why}", executed.status),
            };
            let ran = executed.execution != 0 && matches!(wanted, Wanted::Step(_));
            let mut outcome = Self { ran, ..Self::failure(code, message, false) };
            if executed.execution != 0 {
                outcome.add("execution_id", execution.into());
            }
            return outcome;
        }
        let (mut fields, data) = match wanted {
            Wanted::Output => (Map::new(), answer.output),
            Wanted::Step(step) => {
                let ended = [("execution_id", execution), ("status", executed.status.clone())];
                let ended = ended.map(|(name, text)| (name.to_owned(), Json::String(text)));
                (Map::from_iter(ended), answer.steps.remove(&step).unwrap_or_default())
            }
        };
        let load = match data.reference {
            Some(reference) => Some(Partial::Payload(reference)),
            None => Some(data.chunks).filter(|chunks| !chunks.is_empty()).map(Partial::Chunks),
        };
        let data = match data.value {
            value if fields.is_empty() => value,
            value => {
                lay_over(&mut fields, value);
                Json::Object(fields)
            }
        };
        Self { load, ..Self::success(data) }
    }

    /// Whether the work could not be done at all: the tool gave no answer, or could not be called. Running out of time is
    /// an end like others.
    pub(super) fn is_hard(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| !self.answered && !self.ran && failure.code != "timeout")
    }

    /// Puts the whole of the data in the place of its extract.
    pub(super) fn complete(&mut self, whole: Json) {
        self.load = None;
        let data = match self.data.json() {
            Json::Object(fields) if fields.contains_key("execution_id") => {
                let mut fields = fields.clone();
                // Nothing is missing any more.
                fields.retain(|name, _| !is_mark(name));
                lay_over(&mut fields, whole);
                Json::Object(fields)
            }
            _ => whole,
        };
        self.data = data.into();
    }

    /// A field of a failure, beside those that all have.
    fn add(&mut self, name: &str, value: Json) {
        let mut data = self.data.json().clone();
        data[name] = value;
        self.data = data.into();
    }

    /// The HTTP answer it is, if it is one.
    fn response(&self) -> Option<&Map<String, Json>> {
        self.data.json().as_object().filter(|data| data.get("status_code").is_some_and(Json::is_number))
    }

    /// The failure as rules see it; nothing for a success.
    pub(super) fn error(&self) -> Json {
        let Some(failure) = &self.failure else { return Json::Null };
        let status = self.response().and_then(|answer| answer.get("status_code"));
        let seconds = self.response().and_then(response::retry_after);
        json!({
            "kind": failure.code, "code": failure.code, "message": failure.message, "retryable": failure.retryable,
            "status": status, "http_status": status, "retry_after": seconds,
        })
    }

    /// What rules see as `output`.
    pub(super) fn envelope(&self, attempt: u32) -> Value {
        let mut fields = json!({
            "status": if self.failure.is_some() { "error" } else { "success" },
            "data": null,
            "error": self.error(),
            "meta": {"attempt": attempt, "duration_ms": self.duration_ms},
        });
        if let Some(answer) = self.response() {
            fields["http"] = response::http(answer);
        }
        let data = self.data.json();
        if let (Some(_), Some(exception)) = (&self.failure, data.get("py")) {
            fields["py"] = exception.clone();
        }
        if let Some(state) = data.get("pg").filter(|_| !self.answered) {
            fields["pg"] = state.clone();
        }
        envelope_value(&fields, self.data.shown())
    }
}

/// A failure as data.
fn told(failure: &Failure) -> Json {
    json!({"status": "error", "error": {"kind": failure.code, "code": failure.code, "message": failure.message,
        "retryable": failure.retryable}})
}

/// Fields of an object over others; anything else as `data`.
fn lay_over(fields: &mut Map<String, Json>, value: Json) {
    match value {
        Json::Object(own) => fields.extend(own),
        Json::Null => {}
        other => {
            fields.insert("data".to_owned(), other);
        }
    }
}

fn answer(kind: &str, answered: Answered) -> Outcome {
    let text = match digits::exact(&answered.output) {
        Cow::Borrowed(_) => answered.output,
        Cow::Owned(exact) => exact,
    };
    let mut output: Json = match serde_json::from_str(&text) {
        Ok(output) => output,
        Err(error) => {
            return Outcome::failure("invalid_output", format!("the tool's answer is not JSON: {error}"), false);
        }
    };
    if let Some(failure) = own_failure(&output) {
        let mut data = told(&failure);
        if let (Json::Object(data), Json::Object(own)) = (&mut data, output) {
            data.extend(own.into_iter().filter(|(name, _)| name != OWN_FAILURE));
        }
        return Outcome { failure: Some(failure), broke: true, ..Outcome::success(data) };
    }
    let has_body = answered.body.is_some();
    if let Some((sha256, size, media_type)) = answered.body {
        let address = payload_address(&Reference { sha256, size });
        let mut fields = Map::new();
        lay_over(&mut fields, output);
        fields.insert("_ref".to_owned(), address.into());
        fields.insert("_bytes".to_owned(), size.into());
        fields.insert("_media_type".to_owned(), media_type.into());
        output = Json::Object(fields);
    }
    let failure = match kind {
        "http" => http_failure(&output),
        "shell" => program_failure(&output),
        _ => None,
    };
    let data = if has_body { Held::from(output) } else { Held::answered(output, text) };
    Outcome { failure, data, ..Outcome::success(Json::Null) }
}

/// Where an answer says that it is a failure.
const OWN_FAILURE: &str = "_failure";

fn own_failure(output: &Json) -> Option<Failure> {
    serde_json::from_value(output.get(OWN_FAILURE)?.clone()).ok()
}

/// Tools that tell what a database called its error.
const DATABASES: [&str; 3] = ["postgres", "sqlite", "transfer"];

/// What a database called its error: tools end their message with it.
fn sqlstate(message: &str) -> Option<&str> {
    let (_, state) = message.strip_suffix(']')?.rsplit_once("[SQLSTATE ")?;
    Some(state).filter(|state| state.len() == 5)
}

/// The failure a program's end is.
fn program_failure(output: &Json) -> Option<Failure> {
    let said = |name: &str| output.get(name).filter(|value| !value.is_null());
    if said("timed_out").and_then(Json::as_bool) == Some(true) {
        let message = "the program did not end in time and was killed".to_owned();
        return Some(Failure { code: "timeout".to_owned(), message, retryable: true });
    }
    let message = match (said("exit_code").and_then(Json::as_i64), said("signal").and_then(Json::as_i64)) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(signal)) => format!("the program was ended by signal {signal}"),
        (None, None) => return None,
    };
    Some(Failure { code: "exit_code".to_owned(), message, retryable: false })
}

/// The failure an HTTP answer is.
fn http_failure(output: &Json) -> Option<Failure> {
    let status = output.get("status_code").and_then(Json::as_u64).filter(|status| *status >= 400)?;
    let (code, retryable) = match status {
        429 => ("rate_limit", true),
        401 | 403 => ("auth", false),
        404 => ("not_found", false),
        400..=499 => ("client_error", false),
        // What a server did before it failed nobody knows.
        _ => ("server_error", output.get("repeatable") != Some(&Json::Bool(false))),
    };
    Some(Failure { code: code.to_owned(), message: format!("the server answered with status {status}"), retryable })
}
