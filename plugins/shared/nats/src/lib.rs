//! What the tools `nats` and `subscription` have in common: which server a step means, and how bytes and messages are shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_sdk::nats::{Message, Server};
use noetl_sdk::{Failure, options};
use serde_json::{Map, Value, json};

/// Most messages of one fetch, and the longest wait for the first of them.
const MOST_MESSAGES: u64 = 1000;
const LONGEST_WAIT_MS: u64 = 5000;
const USUAL_MESSAGES: u64 = 100;
const USUAL_WAIT_MS: u64 = 1000;

/// The server a step means; its options are taken off.
pub fn server(options: &mut Map<String, Value>) -> Result<Server, Failure> {
    let mut take = |names: &[&str]| {
        let mut found = None;
        for name in names {
            found = found.or(options.remove(*name).filter(|value| !value.is_null()));
        }
        found
    };
    let credential = options::alias("auth", take(&["auth", "credential"]).as_ref())?;
    let mut text = |names: &[&str]| take(names).as_ref().and_then(word).filter(|text| !text.is_empty());
    Ok(Server {
        credential,
        url: text(&["url", "nats_url"]),
        user: text(&["user", "username", "nats_user"]),
        password: text(&["password", "nats_password"]),
        token: text(&["token", "nats_token"]),
    })
}

/// A value that is one word.
pub fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A number, also as text, which templates give; cut to what is permitted.
pub fn bounded(options: &mut Map<String, Value>, name: &str, usual: u64, most: u64) -> Result<u32, Failure> {
    let number = match options.remove(name) {
        None | Some(Value::Null) => Some(usual),
        Some(value) => word(&value).and_then(|text| text.trim().parse::<f64>().ok()).map(|number| number as u64),
    };
    let number = number.filter(|number| *number > 0);
    let number = number.ok_or_else(|| Failure::invalid_input(format_args!("`{name}` is a number from 1 to {most}")))?;
    Ok(u32::try_from(number.min(most)).unwrap_or(u32::MAX))
}

/// `batch` and `timeout_ms` of a fetch.
pub fn fetch_bounds(options: &mut Map<String, Value>) -> Result<(u32, u32), Failure> {
    let batch = bounded(options, "batch", USUAL_MESSAGES, MOST_MESSAGES)?;
    Ok((batch, bounded(options, "timeout_ms", USUAL_WAIT_MS, LONGEST_WAIT_MS)?))
}

/// Bytes as what they are: JSON, else text, else base64.
pub fn shown(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
        Err(_) => Value::String(STANDARD.encode(bytes)),
    }
}

/// A value as bytes: text as it is, everything else as JSON.
pub fn bytes_of(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// A message: `{id, data, headers, attributes, metadata, ack_id?}`. Names of headers are in lower case.
pub fn message(stream: &str, message: &Message) -> Value {
    let mut headers = Map::new();
    for (name, value) in &message.headers {
        headers.insert(name.to_ascii_lowercase(), Value::String(value.clone()));
    }
    let id = headers.get("nats-msg-id").and_then(Value::as_str);
    let id = id.map_or_else(|| format!("{stream}:{}", message.sequence), str::to_owned);
    let mut shape = json!({
        "id": id,
        "data": shown(&message.data),
        "headers": headers,
        "attributes": {"subject": message.subject},
        "metadata": {
            "stream": stream,
            "subject": message.subject,
            "sequence": message.sequence,
            "timestamp_ms": message.time_ms,
            "deliveries": message.deliveries,
        },
    });
    if let Some(ack_id) = &message.ack_id {
        shape["ack_id"] = Value::String(ack_id.clone());
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn a_server_is_a_credential_or_written_out() {
        let mut options = object(json!({"auth": "nats_credential", "bucket": "b"}));
        let found = server(&mut options).expect("good");
        assert_eq!((found.credential.as_deref(), found.url), (Some("nats_credential"), None));
        assert_eq!(options.len(), 1, "the rest stays");
        let found = server(&mut object(json!({"nats_url": "nats://a", "user": "u", "password": 7}))).expect("good");
        assert_eq!((found.url.as_deref(), found.password.as_deref()), (Some("nats://a"), Some("7")));
        assert!(server(&mut object(json!({"auth": 7}))).is_err());
    }

    #[test]
    fn bounds_are_cut_and_may_be_text() {
        assert_eq!(fetch_bounds(&mut object(json!({}))), Ok((100, 1000)));
        assert_eq!(fetch_bounds(&mut object(json!({"batch": 9999, "timeout_ms": "60000"}))), Ok((1000, 5000)));
        assert!(fetch_bounds(&mut object(json!({"batch": 0}))).is_err());
        assert!(fetch_bounds(&mut object(json!({"timeout_ms": "soon"}))).is_err());
    }

    #[test]
    fn a_message_has_its_shape() {
        let came = Message {
            subject: "orders.new".to_owned(),
            headers: vec![("Trace".to_owned(), "t".to_owned())],
            data: b"{\"a\":1}".to_vec(),
            sequence: 7,
            time_ms: 5,
            deliveries: 1,
            ack_id: Some("$JS.ACK.x".to_owned()),
        };
        let shape = message("ORDERS", &came);
        assert_eq!((&shape["id"], &shape["data"]["a"]), (&json!("ORDERS:7"), &json!(1)));
        assert_eq!((&shape["headers"]["trace"], &shape["ack_id"]), (&json!("t"), &json!("$JS.ACK.x")));
        assert_eq!(shown(b"plain"), json!("plain"));
        assert_eq!(shown(&[0xff]), json!("/w=="));
        assert_eq!(bytes_of(&json!({"a": null})), b"{\"a\":null}");
    }
}
