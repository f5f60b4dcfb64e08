//! Cases: one call with everything that went into it and came out of it, as a file people can read.
//!
//! Recording makes the call for real and writes down its input, what it asked of the host with the answers, and its
//! outcome. Playing runs it again with those answers; it reaches nothing and changes nothing. Whether a case still holds is
//! decided by comparing what was written down with what a play wrote down, both with secrets masked: a secret in the
//! input is masked in the file, so the plugin is played with the mask and passes the mask on.

use bytes::Bytes;
use noetl_contract::{PluginPath, Tenant};
use noetl_host::caps::payload::Payload;
pub use noetl_host::tape::bytes_of;
use noetl_host::tape::bytes_value;
use noetl_host::{HostCall, Script, Start};
use noetl_registry::Selector;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::calls::{Call, CallInput, CallOutput, Reply};
use crate::error::CallError;
use crate::{Failure, Kernel};

/// Contents above this are written down by their digest, and such a case can be read but not played.
const LARGEST_BODY: u64 = 1 << 20;

/// A recorded call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What was called, for people; a case can be played on any plugin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub plugin: String,
    pub input: Input,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub idempotency_key: String,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub attempt: u32,
    /// Where its clock and its randomness begin; without it they are those of whoever plays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// In the order they were made.
    #[serde(default)]
    pub calls: Vec<HostCall>,
    pub outcome: Outcome,
}

/// A tool's arguments, or a transform's bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    Arguments(Value),
    ArgumentsAndBody { arguments: Value, body: Value },
    Bytes(Value),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    Output(Value),
    OutputAndBody { output: Value, body: Value },
    Bytes(Value),
    Failure { code: String, message: String, retryable: bool },
}

fn first() -> u32 {
    1
}

fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

impl Case {
    /// The case with every secret masked, also where it stands without its name: a password of the input is masked in
    /// what was stored and in the text of an exception.
    pub fn scrubbed(&self, tenant: &Tenant) -> Result<Case, Unmasked> {
        let (input, outcome) = (serde_json::to_value(&self.input)?, serde_json::to_value(&self.outcome)?);
        let calls = self.calls.iter();
        let told: Vec<&Value> =
            [&input, &outcome].into_iter().chain(calls.flat_map(|call| [&call.with, &call.answer])).collect();
        let mut found = noetl_scrub::Found::default();
        told.into_iter().for_each(|value| found.read(value));
        let hide = found.into_mask(tenant.as_str());
        let mask = |mut value: Value| {
            hide(&mut value);
            value
        };
        let call =
            |HostCall { call, with, answer }: HostCall| HostCall { call, with: mask(with), answer: mask(answer) };
        Ok(Case {
            plugin: self.plugin.clone(),
            input: serde_json::from_value(below(input, &mask))?,
            idempotency_key: text_in(mask(json!(self.idempotency_key))),
            attempt: self.attempt,
            start: self.start,
            calls: self.calls.iter().cloned().map(call).collect(),
            outcome: serde_json::from_value(below(outcome, &mask))?,
        })
    }

    /// What the plugin is given; none when the case has only the digest of it.
    fn given(&self) -> Option<CallInput> {
        Some(match &self.input {
            Input::Bytes(bytes) => CallInput::Bytes(bytes_of(bytes)?.into()),
            Input::Arguments(arguments) => CallInput::Json { arguments: text_of(arguments), body: None },
            Input::ArgumentsAndBody { arguments, body } => {
                let bytes = Bytes::from(bytes_of(body.get("content")?)?);
                let body = Payload::memory(bytes, body.get("media_type")?.as_str()?);
                CallInput::Json { arguments: text_of(arguments), body: Some(body) }
            }
        })
    }
}

/// Why a case cannot be shown: it does not survive the masking of its secrets.
#[derive(Debug, thiserror::Error)]
#[error("a secret in it is also the name of a part of the case, so it cannot be masked")]
pub struct Unmasked(#[from] serde_json::Error);

/// Masks what a variant carries. Names of ours are not looked at: a password may be the word `output`.
fn below(value: Value, mask: &dyn Fn(Value) -> Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, mask(value))).collect(),
        other => mask(other),
    }
}

fn text_in(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// JSON as a value where writing the value gives the very same text, else the text itself.
fn json_value(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("exactly").is_none() && text_of(&value) == text => value,
        _ => json!({ "exactly": text }),
    }
}

/// The text that was written down as a value.
pub fn text_of(value: &Value) -> String {
    match value.get("exactly").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

impl Kernel {
    /// Makes a call and writes it down.
    pub async fn record(&self, mut call: Call) -> Result<(Reply, Case), CallError> {
        let input = self.input_of(&call.input).await;
        let (idempotency_key, attempt) = (call.idempotency_key.clone().unwrap_or_default(), call.attempt);
        let (start, tenant) = (Start::here().ok(), call.tenant.clone());
        call.script = Script::Record(start);
        let reply = self.call(call).await?;
        let mut case = self.case_of(&reply, input, idempotency_key, attempt).await;
        case.start = start;
        let case = case.scrubbed(&tenant).map_err(|error| CallError::not_written(&reply, &error))?;
        Ok((reply, case))
    }

    /// Plays a case on a plugin and writes down what became of it; none when the case cannot be played.
    pub async fn play(&self, plugin: &PluginPath, case: &Case) -> Result<Option<Case>, CallError> {
        let Some(input) = case.given() else { return Ok(None) };
        let tenant = plugin.owner().unwrap_or_else(Tenant::main);
        let call = Call {
            tenant: tenant.clone(),
            service: plugin.clone(),
            selector: Selector::default(),
            capabilities: None,
            input,
            idempotency_key: Some(case.idempotency_key.clone()),
            attempt: case.attempt,
            script: Script::Play { calls: case.calls.clone(), start: case.start },
        };
        let reply = self.call(call).await?;
        let key = case.idempotency_key.clone();
        let mut played = self.case_of(&reply, case.input.clone(), key, case.attempt).await;
        played.plugin.clone_from(&case.plugin);
        played.start = case.start;
        played.scrubbed(&tenant).map(Some).map_err(|error| CallError::not_written(&reply, &error))
    }

    async fn case_of(&self, reply: &Reply, input: Input, idempotency_key: String, attempt: u32) -> Case {
        let outcome = match &reply.outcome {
            Ok(CallOutput::Bytes(bytes)) => Outcome::Bytes(bytes_value(bytes)),
            Ok(CallOutput::Json { output, body: None }) => Outcome::Output(json_value(output)),
            Ok(CallOutput::Json { output, body: Some(body) }) => {
                Outcome::OutputAndBody { output: json_value(output), body: self.content_of(body).await }
            }
            Err(Failure { code, message, retryable }) => {
                Outcome::Failure { code: code.clone(), message: message.clone(), retryable: *retryable }
            }
        };
        let (plugin, calls) = (reply.path.to_string(), reply.host_calls.clone());
        Case { plugin, input, idempotency_key, attempt, start: None, calls, outcome }
    }

    async fn input_of(&self, input: &CallInput) -> Input {
        match input {
            CallInput::Bytes(bytes) => Input::Bytes(bytes_value(bytes)),
            CallInput::Bulk(payload) => Input::Bytes(self.bytes_of(payload).await),
            CallInput::Json { arguments, body: None } => Input::Arguments(json_value(arguments)),
            CallInput::Json { arguments, body: Some(body) } => {
                Input::ArgumentsAndBody { arguments: json_value(arguments), body: self.content_of(body).await }
            }
        }
    }

    /// A transform's input; one that is too large is told by its digest, as bodies are.
    async fn bytes_of(&self, payload: &Payload) -> Value {
        let told = self.content_of(payload).await;
        told.get("content").cloned().unwrap_or(told)
    }

    async fn content_of(&self, payload: &Payload) -> Value {
        let (media_type, size) = (payload.media_type(), payload.size());
        match payload.read(&self.payloads, 0, size.min(LARGEST_BODY)).await {
            Ok(bytes) if size <= LARGEST_BODY => json!({ "media_type": media_type, "content": bytes_value(&bytes) }),
            _ => json!({ "media_type": media_type, "size": size, "digest": payload.digest().hex() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_very_text() {
        for text in ["{\"b\":1,\"a\":[true,null]}", "{ \"a\" : 1 }", "not json", "{\"exactly\":\"x\"}", "1.50", "\"é\""]
        {
            assert_eq!(text_of(&json_value(text)), text);
        }
        assert_eq!(json_value("{\"b\":1}"), json!({ "b": 1 }));
    }

    #[test]
    fn a_case_is_masked_and_still_a_case() {
        let text = r#"{
            "input": { "arguments": { "password": "hunter2", "name": "Ada" } },
            "calls": [{ "call": "http-client.send", "with": { "headers": [{ "authorization": "Bearer abc" }] },
                        "answer": { "error": { "timeout": null } } }],
            "outcome": { "failure": { "code": "timeout", "message": "", "retryable": true } }
        }"#;
        let case: Case = serde_json::from_str(text).expect("a case");
        let scrubbed = case.scrubbed(&Tenant::main()).expect("masks");
        let masked = serde_json::to_string(&scrubbed).expect("writes");
        assert!(!masked.contains("hunter2") && !masked.contains("Bearer abc"), "{masked}");
        assert!(masked.contains("Ada"));
        assert_eq!(scrubbed.scrubbed(&Tenant::main()).expect("masks"), scrubbed);
    }

    #[test]
    fn a_secret_is_masked_where_it_has_no_name() {
        let text = r#"{
            "input": { "arguments": { "password": "hunter2" } },
            "calls": [{ "call": "kv.put", "with": { "key": "a", "value": "hunter2" }, "answer": { "ok": null } }],
            "outcome": { "failure": { "code": "exception", "message": "ValueError: hunter2 is bad", "retryable": false } }
        }"#;
        let case: Case = serde_json::from_str(text).expect("a case");
        let masked = serde_json::to_string(&case.scrubbed(&Tenant::main()).expect("masks")).expect("writes");
        assert!(!masked.contains("hunter2"), "{masked}");
        assert!(masked.contains("ValueError: [REDACTED] is bad"), "{masked}");
    }

    #[test]
    fn a_case_that_cannot_be_masked_is_not_shown() {
        let text = r#"{
            "input": { "arguments": { "password": "retryable" } },
            "outcome": { "failure": { "code": "x", "message": "", "retryable": false } }
        }"#;
        let case: Case = serde_json::from_str(text).expect("a case");
        assert!(case.scrubbed(&Tenant::main()).is_err());
        let named = text.replace("\"password\": \"retryable\"", "\"password\": \"arguments\"");
        let case: Case = serde_json::from_str(&named).expect("a case");
        assert!(case.scrubbed(&Tenant::main()).is_ok());
    }
}
