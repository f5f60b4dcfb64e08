//! What a step asks of NATS. An operation takes the options it knows; one that is left over is named in the log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_sdk::nats::Which;
use noetl_sdk::{Failure, options};
use serde_json::{Map, Value};
use shared_nats::{bytes_of, fetch_bounds, word};

#[derive(Debug)]
pub enum Operation {
    KvGet { bucket: String, key: String },
    KvPut { bucket: String, key: String, value: Vec<u8> },
    KvDelete { bucket: String, key: String },
    KvPurge { bucket: String, key: String },
    KvKeys { bucket: String, pattern: Option<String> },
    ObjectGet { bucket: String, name: String, encoding: Encoding },
    ObjectPut { bucket: String, name: String, data: Option<Vec<u8>> },
    ObjectDelete { bucket: String, name: String },
    ObjectList { bucket: String },
    ObjectInfo { bucket: String, name: String },
    Publish { subject: String, headers: Vec<(String, String)>, data: Vec<u8> },
    Consume { stream: String, consumer: String, batch: u32, timeout_ms: u32, ack: bool },
    GetMessage { stream: String, which: Which },
    StreamInfo { stream: String },
}

/// How an object is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Auto,
    Base64,
    Reference,
}

const OPERATIONS: [&str; 14] = [
    "kv_get",
    "kv_put",
    "kv_delete",
    "kv_keys",
    "kv_purge",
    "object_get",
    "object_put",
    "object_delete",
    "object_list",
    "object_info",
    "js_publish",
    "js_consume",
    "js_get_msg",
    "js_stream_info",
];

/// Options that are the engine's, or that mean nothing here.
const PASSED: [&str; 6] = ["input", "args", "ttl", "timeout", "timeout_seconds", "body_ref"];

/// Options of all operations.
const KNOWN: [&str; 17] = [
    "operation",
    "bucket",
    "key",
    "value",
    "pattern",
    "name",
    "data",
    "encoding",
    "subject",
    "headers",
    "stream",
    "consumer",
    "batch",
    "timeout_ms",
    "ack",
    "seq",
    "last",
];

type Options = Map<String, Value>;

pub fn read(mut options: Options) -> Result<Operation, Failure> {
    let name = text(&mut options, "operation")?;
    // Values may come by way of the step's input.
    if let Some(Value::Object(input)) = options.get("input").cloned() {
        for (name, value) in input {
            options.entry(name).or_insert(value);
        }
    }
    let input = options.remove("input");
    PASSED.iter().for_each(|passed| drop(options.remove(*passed)));
    let operation = operation(&name, &mut options)?;
    // An option of another operation does nothing here, and neither does a variable of the step.
    options.retain(|name, _| !input.as_ref().is_some_and(|input| input.get(name).is_some()));
    options::keep_known("nats", &mut options, &KNOWN);
    Ok(operation)
}

fn operation(name: &str, options: &mut Options) -> Result<Operation, Failure> {
    Ok(match name {
        "kv_get" => Operation::KvGet { bucket: text(options, "bucket")?, key: text(options, "key")? },
        "kv_put" => {
            let (bucket, key) = (text(options, "bucket")?, text(options, "key")?);
            let value = options.remove("value").or_else(|| options.remove("data"));
            let value = value.ok_or_else(|| missing("value"))?;
            Operation::KvPut { bucket, key, value: bytes_of(&value) }
        }
        "kv_delete" => Operation::KvDelete { bucket: text(options, "bucket")?, key: text(options, "key")? },
        "kv_purge" => Operation::KvPurge { bucket: text(options, "bucket")?, key: text(options, "key")? },
        "kv_keys" => Operation::KvKeys { bucket: text(options, "bucket")?, pattern: maybe(options, "pattern") },
        "object_get" => {
            let (bucket, name) = (text(options, "bucket")?, text(options, "name")?);
            Operation::ObjectGet { bucket, name, encoding: encoding(options)? }
        }
        "object_put" => {
            let (bucket, name) = (text(options, "bucket")?, text(options, "name")?);
            let encoding = encoding(options)?;
            let data = options.remove("data").or_else(|| options.remove("value")).filter(|data| !data.is_null());
            let data = data.map(|data| decoded(&data, encoding)).transpose()?;
            Operation::ObjectPut { bucket, name, data }
        }
        "object_delete" => Operation::ObjectDelete { bucket: text(options, "bucket")?, name: text(options, "name")? },
        "object_list" => Operation::ObjectList { bucket: text(options, "bucket")? },
        "object_info" => Operation::ObjectInfo { bucket: text(options, "bucket")?, name: text(options, "name")? },
        "js_publish" => {
            let subject = text(options, "subject")?;
            let (headers, encoding) = (headers(options)?, encoding(options)?);
            let data = options.remove("data").or_else(|| options.remove("value")).unwrap_or_default();
            // Which stream has the subject is for the server to know.
            options.remove("stream");
            let data = if data.is_null() { Vec::new() } else { decoded(&data, encoding)? };
            Operation::Publish { subject, headers, data }
        }
        "js_consume" => {
            let (stream, consumer) = (text(options, "stream")?, text(options, "consumer")?);
            let (batch, timeout_ms) = fetch_bounds(options)?;
            Operation::Consume { stream, consumer, batch, timeout_ms, ack: acknowledges(options)? }
        }
        "js_get_msg" => Operation::GetMessage { stream: text(options, "stream")?, which: which(options)? },
        "js_stream_info" => Operation::StreamInfo { stream: text(options, "stream")? },
        other => {
            let known = OPERATIONS.join(", ");
            return Err(Failure::invalid_input(format_args!("`operation` is `{other}`; write one of {known}")));
        }
    })
}

fn missing(name: &str) -> Failure {
    Failure::invalid_input(format_args!("`{name}` is missing"))
}

fn maybe(options: &mut Options, name: &str) -> Option<String> {
    options.remove(name).as_ref().and_then(word).filter(|text| !text.is_empty())
}

fn text(options: &mut Options, name: &str) -> Result<String, Failure> {
    maybe(options, name).ok_or_else(|| missing(name))
}

fn encoding(options: &mut Options) -> Result<Encoding, Failure> {
    match maybe(options, "encoding").as_deref() {
        None | Some("auto" | "json" | "text" | "utf8" | "utf-8") => Ok(Encoding::Auto),
        Some("base64") => Ok(Encoding::Base64),
        Some("reference") => Ok(Encoding::Reference),
        Some(other) => {
            Err(Failure::invalid_input(format_args!("`encoding` is `{other}`; write auto, base64 or reference")))
        }
    }
}

fn decoded(data: &Value, encoding: Encoding) -> Result<Vec<u8>, Failure> {
    match (encoding, data) {
        (Encoding::Base64, Value::String(text)) => STANDARD
            .decode(text.trim())
            .map_err(|error| Failure::invalid_input(format_args!("`data` is not base64: {error}"))),
        _ => Ok(bytes_of(data)),
    }
}

fn headers(options: &mut Options) -> Result<Vec<(String, String)>, Failure> {
    let given = match options.remove("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(given)) => given,
        Some(other) => return Err(Failure::invalid_input(format_args!("`headers` is an object and not `{other}`"))),
    };
    let mut headers = Vec::new();
    for (name, value) in given.into_iter().filter(|(_, value)| !value.is_null()) {
        let wrong = || Failure::invalid_input(format_args!("the header `{name}` is not text but `{value}`"));
        let text = word(&value).ok_or_else(wrong)?;
        headers.push((name, text));
    }
    Ok(headers)
}

fn acknowledges(options: &mut Options) -> Result<bool, Failure> {
    match maybe(options, "ack").as_deref() {
        None | Some("true" | "auto" | "explicit" | "on_success") => Ok(true),
        Some("false" | "manual" | "none" | "defer") => Ok(false),
        Some(other) => Err(Failure::invalid_input(format_args!("`ack` is `{other}`; write true or false"))),
    }
}

/// By number; or the last, of `last` or else of `subject`.
fn which(options: &mut Options) -> Result<Which, Failure> {
    let (seq, last, subject) = (maybe(options, "seq"), maybe(options, "last"), maybe(options, "subject"));
    if let Some(seq) = seq {
        let wrong = || Failure::invalid_input(format_args!("`seq` is `{seq}`, which is not the number of a message"));
        return Ok(Which::Sequence(seq.trim().parse().map_err(|_| wrong())?));
    }
    let last = last.filter(|last| !matches!(last.as_str(), "true" | "false"));
    let subject = last.or(subject);
    subject
        .map(Which::Last)
        .ok_or_else(|| Failure::invalid_input("give `seq`, or the subject whose last message it is"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(options: Value) -> Result<Operation, Failure> {
        read(options.as_object().cloned().expect("an object"))
    }

    #[test]
    fn each_operation_takes_its_options() {
        for good in [
            json!({"operation": "kv_get", "bucket": "b", "key": "k"}),
            json!({"operation": "kv_put", "bucket": "b", "key": "k", "value": {"a": 1}, "ttl": 5}),
            json!({"operation": "kv_keys", "bucket": "b", "pattern": "a.*"}),
            json!({"operation": "object_put", "bucket": "b", "name": "n", "data": "eA==", "encoding": "base64"}),
            json!({"operation": "js_publish", "subject": "s", "data": {"a": 1}, "headers": {"A": 1, "B": null}}),
            json!({"operation": "js_consume", "stream": "s", "consumer": "c", "ack": false, "timeout": 3}),
            json!({"operation": "js_get_msg", "stream": "s", "seq": "7"}),
            json!({"operation": "js_get_msg", "stream": "s", "last": true, "subject": "x"}),
            json!({"operation": "js_stream_info", "stream": "s", "input": {"other": 1}}),
            json!({"operation": "kv_get", "bucket": "b", "input": {"key": "k", "more": 1}}),
            json!({"operation": "kv_get", "bucket": "b", "key": "k", "keey": 1, "stream": "s", "desc": "x"}),
        ] {
            assert!(read_json(good.clone()).is_ok(), "{good}: {:?}", read_json(good.clone()));
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (bad, named) in [
            (json!({"bucket": "b"}), "operation"),
            (json!({"operation": "kv_gett"}), "kv_get,"),
            (json!({"operation": "kv_get", "bucket": "b"}), "key"),
            (json!({"operation": "kv_put", "bucket": "b", "key": "k"}), "value"),
            (json!({"operation": "js_get_msg", "stream": "s"}), "seq"),
            (json!({"operation": "js_get_msg", "stream": "s", "seq": "x"}), "seq"),
            (json!({"operation": "js_consume", "stream": "s", "consumer": "c", "ack": "maybe"}), "ack"),
            (json!({"operation": "object_get", "bucket": "b", "name": "n", "encoding": "gzip"}), "encoding"),
        ] {
            let failure = read_json(bad.clone()).expect_err("refused");
            assert_eq!(failure.code, "invalid_input");
            assert!(failure.message.contains(named), "{bad}: {failure}");
        }
    }

    #[test]
    fn values_are_bytes() {
        let Ok(Operation::KvPut { value, .. }) =
            read_json(json!({"operation": "kv_put", "bucket": "b", "key": "k", "value": null}))
        else {
            panic!("a null is a value")
        };
        assert_eq!(value, b"null");
    }
}
