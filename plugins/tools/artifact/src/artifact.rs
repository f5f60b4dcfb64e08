//! What is asked of an artefact, and how its bytes are shown, without reading or keeping anything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_sdk::{Failure, options};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

/// What is read at once.
const LARGEST: u64 = 64 << 20;

/// Every option. The engine has followed the reference, and what it leads to is the call's body; it also ends a call that
/// takes longer than it may.
const KNOWN: [&str; 11] = [
    "action",
    "encoding",
    "value",
    "data",
    "media_type",
    "input",
    "result_ref",
    "ref",
    "uri",
    "timeout",
    "timeout_seconds",
];

/// The tool's options.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    action: Option<String>,
    encoding: Option<String>,
    #[serde(deserialize_with = "given")]
    value: Option<Value>,
    #[serde(deserialize_with = "given")]
    data: Option<Value>,
    media_type: Option<String>,
    input: Option<Map<String, Value>>,
}

/// A field that is written, be it null.
fn given<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Auto,
    Json,
    Text,
    Base64,
}

/// What is asked for.
#[derive(Debug, PartialEq)]
pub enum Ask {
    Get(Encoding),
    Put { media_type: String, bytes: Vec<u8> },
}

impl Options {
    pub fn read(arguments: &str) -> Result<Self, Failure> {
        let mut given: Map<String, Value> = serde_json::from_str(arguments)?;
        options::keep_known("artifact", &mut given, &KNOWN);
        Ok(serde_json::from_value(Value::Object(given))?)
    }

    pub fn ask(mut self) -> Result<Ask, Failure> {
        match self.action.as_deref().unwrap_or("get").trim() {
            "get" => Ok(Ask::Get(self.encoding()?)),
            "put" => self.put(),
            other => Err(Failure::invalid_input(format_args!("`action` is `{other}`; write get or put"))),
        }
    }

    fn encoding(&self) -> Result<Encoding, Failure> {
        match self.encoding.as_deref().unwrap_or("auto").trim() {
            "auto" | "" => Ok(Encoding::Auto),
            "json" => Ok(Encoding::Json),
            "text" => Ok(Encoding::Text),
            "base64" => Ok(Encoding::Base64),
            other => {
                Err(Failure::invalid_input(format_args!("`encoding` is `{other}`; write auto, json, text or base64")))
            }
        }
    }

    /// A null that is given is a value to keep.
    fn put(&mut self) -> Result<Ask, Failure> {
        let mut input = self.input.take().unwrap_or_default();
        let mut within = |name: &str| input.remove(name);
        let value =
            self.value.take().or_else(|| self.data.take()).or_else(|| within("value")).or_else(|| within("data"));
        let value = value.ok_or_else(|| Failure::invalid_input("`value` is missing: what to keep"))?;
        let (usual, bytes) = match (self.encoding()?, value) {
            (Encoding::Base64, Value::String(text)) => {
                let bytes = STANDARD.decode(text.trim());
                let bytes =
                    bytes.map_err(|error| Failure::invalid_input(format_args!("`value` is not base64: {error}")))?;
                ("application/octet-stream", bytes)
            }
            (Encoding::Auto | Encoding::Text, Value::String(text)) => ("text/plain; charset=utf-8", text.into_bytes()),
            (_, value) => ("application/json", value.to_string().into_bytes()),
        };
        let media_type = self.media_type.take().unwrap_or_else(|| usual.to_owned());
        Ok(Ask::Put { media_type, bytes })
    }
}

pub fn may_read(size: u64) -> Result<(), Failure> {
    if size <= LARGEST {
        return Ok(());
    }
    let text = format!("{size} bytes are too many to read; the most is {LARGEST}. Hand it on with `body_ref`");
    Err(Failure::new("too_large", text))
}

/// The bytes as JSON: as they are if they are some, else as text.
pub fn shown(encoding: Encoding, bytes: Vec<u8>) -> Result<String, Failure> {
    let quoted = |text: String| Ok(Value::String(text).to_string());
    if encoding == Encoding::Base64 {
        return quoted(STANDARD.encode(bytes));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if encoding == Encoding::Auto => return quoted(STANDARD.encode(error.into_bytes())),
        Err(_) => {
            return Err(Failure::new("invalid_value", "the payload is not text; read it with `encoding: base64`"));
        }
    };
    match (encoding, serde_json::from_str::<IgnoredAny>(&text)) {
        (Encoding::Text, _) => quoted(text),
        (_, Ok(_)) => Ok(text),
        (Encoding::Json, Err(error)) => {
            Err(Failure::new("invalid_value", format_args!("the payload is not JSON: {error}")))
        }
        (_, Err(_)) => quoted(text),
    }
}

/// What is said of a value that was kept; the engine adds `_ref` and its like.
pub fn kept(sha256: &str, size: u64, media_type: &str) -> Value {
    let address = format!("noetl://payload/{sha256}");
    json!({"status": "success", "ref": address, "uri": address, "sha256": sha256, "size": size, "media_type": media_type})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(options: Value) -> Result<Ask, Failure> {
        Options::read(&options.to_string())?.ask()
    }

    #[test]
    fn getting_is_usual() {
        assert_eq!(ask(json!({"input": {"result_ref": "noetl://payload/x"}})), Ok(Ask::Get(Encoding::Auto)));
        assert_eq!(ask(json!({"action": "get", "ref": "x", "encoding": "text"})), Ok(Ask::Get(Encoding::Text)));
        assert_eq!(ask(json!({"ref": "x", "result_ref": "x", "actoin": "get"})), Ok(Ask::Get(Encoding::Auto)));
        assert!(ask(json!({"action": "delete"})).is_err());
    }

    #[test]
    fn values_are_kept_as_what_they_are() {
        let put = |options: Value| match ask(options).expect("good") {
            Ask::Put { media_type, bytes } => (media_type, String::from_utf8(bytes).expect("text")),
            Ask::Get(_) => panic!("it was to be kept"),
        };
        let json = put(json!({"action": "put", "value": {"a": [1, null]}}));
        assert_eq!(json, ("application/json".to_owned(), r#"{"a":[1,null]}"#.to_owned()));
        assert_eq!(put(json!({"action": "put", "input": {"data": "x"}})).0, "text/plain; charset=utf-8");
        assert_eq!(put(json!({"action": "put", "data": "eA==", "encoding": "base64"})).1, "x");
        assert_eq!(put(json!({"action": "put", "value": "x", "encoding": "json"})).1, "\"x\"");
        assert_eq!(put(json!({"action": "put", "value": "x", "media_type": "text/csv"})).0, "text/csv");
        for null in [json!({"action": "put", "value": null}), json!({"action": "put", "input": {"data": null}})] {
            assert_eq!(put(null), ("application/json".to_owned(), "null".to_owned()));
        }
        assert!(ask(json!({"action": "put"})).is_err());
    }

    #[test]
    fn bytes_are_shown_as_they_are_asked_for() {
        assert_eq!(shown(Encoding::Auto, b"{\"n\": 1.50}".to_vec()), Ok("{\"n\": 1.50}".to_owned()));
        assert_eq!(shown(Encoding::Auto, b"plain".to_vec()), Ok("\"plain\"".to_owned()));
        assert_eq!(shown(Encoding::Auto, vec![0xff]), Ok("\"/w==\"".to_owned()));
        assert_eq!(shown(Encoding::Text, b"{}".to_vec()), Ok("\"{}\"".to_owned()));
        assert!(shown(Encoding::Json, b"{".to_vec()).is_err() && shown(Encoding::Text, vec![0xff]).is_err());
        assert!(may_read(LARGEST).is_ok() && may_read(LARGEST + 1).is_err());
    }
}
