//! The words between a test and `noetl plugin harness COMPONENT`.
//!
//! One JSON object a line, UTF-8, no line breaks inside. The server speaks first: one [`Reply`] with
//! [`Outcome::Ready`] when the component is compiled and linked, or with [`Outcome::Error`] and the end of the
//! process when it is not. After that every [`Request`] on standard input gets exactly one [`Reply`] on standard
//! output, in order. Nothing else is written to standard output; talk for people goes to standard error. The end of
//! standard input ends the process with status 0.
//!
//! ```text
//! <- {"ready":{"protocol":1,"path":"main/greeter","version":"0.1.0","world":"transform"}}
//! -> {"kv_put":{"key":"greeting","value_base64":"SGVsbG8="}}
//! <- {"ok":{}}
//! -> {"call":{"input_json":{"name":"Ada"}}}
//! <- {"ok":{"output_base64":"..."},"logs":[{"level":"info","message":"greeted","fields":[]}],"memory_bytes":1114112,"duration_us":61}
//! -> {"call":{"input_base64":"AAE="}}
//! <- {"failure":{"code":"invalid_input","message":"...","retryable":false},"logs":[],"memory_bytes":1114112,"duration_us":40}
//! -> {"call":{"input_json":"loop"}}
//! <- {"error":{"class":"timeout","message":"..."},"logs":[],"memory_bytes":1114112,"duration_us":1000321}
//! ```
//!
//! Invariants:
//! 1. Key-value entries, objects and canned HTTP answers live in the server's memory from its start to its end. A
//!    call's kv writes are kept only if it ended with `ok`, as on a real server.
//! 2. An HTTP request of the guest is answered by the canned answer with the longest matching `url_prefix`, the newest
//!    of equals. Without one the guest sees the error `denied`: a test never reaches the network.
//! 3. Limits, instance policy and errors are those of the component's manifest on the real host.
//!
//! Bad input: a line that is not a request is answered with [`Outcome::Error`] of the class `harness` and the server
//! goes on. These types are the only definition of the protocol: both sides are compiled from them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// What [`Ready::protocol`] says. A client refuses to speak to a server with another number.
pub const PROTOCOL: u32 = 1;

/// The class of [`CallError`] for a line that is not a request or makes no sense for the component.
pub const CLASS_HARNESS: &str = "harness";

/// One line from the test to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Call the component once. Answer: [`Outcome::Ok`] with the output, [`Outcome::Failure`] or [`Outcome::Error`].
    Call(Call),
    /// Write a value into the plugin's key-value space. Answer: `{"ok":{}}`.
    KvPut(KvPut),
    /// Read one. Answer: `{"ok":{"value_base64":...}}`, or `{"ok":{}}` when there is no such key.
    KvGet(Key),
    /// Store an object. Answer: `{"ok":{}}`.
    ObjectPut(ObjectPut),
    /// Read one. Answer: `{"ok":{"value_base64":...,"media_type":...}}`, or `{"ok":{}}` when there is no such key.
    ObjectGet(Key),
    /// Prepare an answer for the guest's HTTP requests. Answer: `{"ok":{}}`.
    HttpRespond(HttpRespond),
    /// Every log line since the start. Answer: `{"ok":{},"logs":[...]}`.
    Logs {},
}

/// One call of the component.
///
/// A transform takes bytes: those of `input_base64`, or else the compact JSON text of `input_json`. A tool takes
/// `input_json` as its arguments (an object; `{}` when absent) and `input_base64`, when present, as its body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_base64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_json: Option<Value>,
    /// Narrows what the call may use, by capability name; absent means all that the manifest asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<String>>,
    /// A tool's idempotency key; absent means one that no other call of this server has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// A tool's attempt; absent means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KvPut {
    pub key: String,
    pub value_base64: Base64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectPut {
    pub key: String,
    pub value_base64: Base64,
    /// Absent means `application/octet-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// A canned HTTP answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRespond {
    /// Matches every request whose address starts with it.
    pub url_prefix: String,
    pub status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default)]
    pub body: String,
}

/// One line from the server to the test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Of a call: the lines it wrote. Of `logs`: all lines. Otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogLine>,
    /// Of a call: the most linear memory the guest held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Of a call: how long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, logs: Vec::new(), memory_bytes: None, duration_us: None }
    }
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Only as the very first line.
    Ready(Ready),
    Ok(Answer),
    /// The guest ran and answered that it could not do its work.
    Failure(GuestFailure),
    /// The host ended the call, or refused to begin it.
    Error(CallError),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    pub protocol: u32,
    pub path: String,
    pub version: String,
    /// `transform` or `tool`.
    pub world: String,
}

/// What a request yields; which fields are set follows from the request and, for a call, from the world.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// A transform's output, always; a tool's body, when it answered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_base64: Option<Base64>,
    /// A tool's output, always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_json: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_base64: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestFailure {
    pub code: String,
    pub message: String,
    pub retryable: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    /// The host's class of error (`trap`, `timeout`, `memory`, `output`, `denied`, `quota`, ...) or [`CLASS_HARNESS`].
    pub class: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    pub message: String,
    #[serde(default)]
    pub fields: Vec<(String, String)>,
}

/// Bytes that travel as standard base64 with padding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(line: Value) -> Request {
        serde_json::from_value(line).expect("a request")
    }

    #[test]
    fn requests_have_the_documented_form() {
        assert_eq!(
            request(json!({"call": {"input_base64": "AAE="}})),
            Request::Call(Call { input_base64: Some(Base64(vec![0, 1])), ..Call::default() })
        );
        assert_eq!(request(json!({"logs": {}})), Request::Logs {});
        assert_eq!(
            serde_json::to_value(Request::KvGet(Key { key: "a".into() })).expect("serialisable"),
            json!({"kv_get": {"key": "a"}})
        );
    }

    #[test]
    fn replies_have_the_documented_form() {
        let mut reply = Reply::from(Outcome::Ok(Answer { output_json: Some(json!([1])), ..Answer::default() }));
        reply.duration_us = Some(7);
        let line = serde_json::to_value(&reply).expect("serialisable");
        assert_eq!(line, json!({"ok": {"output_json": [1]}, "duration_us": 7}));
        assert_eq!(serde_json::from_value::<Reply>(line).expect("a reply"), reply);

        let failed = json!({"failure": {"code": "not_found", "message": "no", "retryable": true}, "logs": []});
        let reply: Reply = serde_json::from_value(failed).expect("a reply");
        assert!(matches!(reply.outcome, Outcome::Failure(failure) if failure.retryable));
    }

    #[test]
    fn a_misspelt_field_is_refused() {
        let line = json!({"call": {"input_bytes": "AAE="}});
        assert!(serde_json::from_value::<Request>(line).is_err());
    }
}
