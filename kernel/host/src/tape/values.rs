//! The values of host functions as they are in a case file: readable, and the same after reading them back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::bindings::noetl::{files, http_client, kv, metrics, objects, secrets};

/// A value that can be on a tape.
pub(crate) trait Taped: Sized {
    fn write(&self) -> Value;
    fn read(value: &Value) -> Option<Self>;
}

/// Bytes as text where they are text.
pub fn bytes_value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
    }
}

/// Headers and fields as objects of one field each: a name may be there twice, and masking goes by names.
pub(crate) fn named(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| json!({ name: value })).collect()
}

/// The bytes again.
pub fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        other => STANDARD.decode(other.get("base64")?.as_str()?).ok(),
    }
}

impl Taped for Vec<u8> {
    fn write(&self) -> Value {
        bytes_value(self)
    }
    fn read(value: &Value) -> Option<Self> {
        bytes_of(value)
    }
}

impl Taped for () {
    fn write(&self) -> Value {
        Value::Null
    }
    fn read(_: &Value) -> Option<Self> {
        Some(())
    }
}

impl Taped for bool {
    fn write(&self) -> Value {
        json!(self)
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Taped for u64 {
    fn write(&self) -> Value {
        json!(self)
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl Taped for String {
    fn write(&self) -> Value {
        json!(self)
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Taped for Vec<(String, String)> {
    fn write(&self) -> Value {
        json!(self)
    }
    fn read(value: &Value) -> Option<Self> {
        let pair = |item: &Value| Some((item.get(0)?.as_str()?.to_owned(), item.get(1)?.as_str()?.to_owned()));
        value.as_array()?.iter().map(pair).collect()
    }
}

impl Taped for secrets::secrets::Description {
    fn write(&self) -> Value {
        json!({ "kind": self.kind, "fields": self.fields.write() })
    }
    fn read(value: &Value) -> Option<Self> {
        Some(Self { kind: String::read(value.get("kind")?)?, fields: Taped::read(value.get("fields")?)? })
    }
}

impl Taped for Vec<String> {
    fn write(&self) -> Value {
        json!(self)
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

impl<T: Taped> Taped for Option<T> {
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, Taped::write)
    }
    fn read(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::read(value).map(Some) }
    }
}

impl<T: Taped, E: Taped> Taped for Result<T, E> {
    fn write(&self) -> Value {
        match self {
            Ok(value) => json!({ "ok": value.write() }),
            Err(error) => json!({ "error": error.write() }),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        match (value.get("ok"), value.get("error")) {
            (Some(value), _) => T::read(value).map(Ok),
            (None, error) => E::read(error?).map(Err),
        }
    }
}

impl Taped for kv::kv::Entry {
    fn write(&self) -> Value {
        json!({ "value": self.value.write(), "version": self.version })
    }
    fn read(value: &Value) -> Option<Self> {
        Some(Self { value: Vec::read(value.get("value")?)?, version: value.get("version")?.as_u64()? })
    }
}

impl Taped for objects::objects::ObjectInfo {
    fn write(&self) -> Value {
        json!({ "key": self.key, "size": self.size, "digest": self.digest, "media_type": self.media_type })
    }
    fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        let size = value.get("size")?.as_u64()?;
        Some(Self { key: text("key")?, size, digest: text("digest")?, media_type: text("media_type")? })
    }
}

impl Taped for Vec<objects::objects::ObjectInfo> {
    fn write(&self) -> Value {
        Value::Array(self.iter().map(Taped::write).collect())
    }
    fn read(value: &Value) -> Option<Self> {
        value.as_array()?.iter().map(Taped::read).collect()
    }
}

/// An error is an object with one field: its case, and what it carries.
macro_rules! errors {
    ($($type:ty { $($case:ident = $name:literal $($kind:ident)?),* $(,)? })*) => {
        $(impl Taped for $type {
            fn write(&self) -> Value {
                match self {
                    $(errors!(@pattern $case $($kind)?, carried) => errors!(@write $name $($kind)?, carried),)*
                }
            }

            fn read(value: &Value) -> Option<Self> {
                let (case, carried) = value.as_object()?.iter().next()?;
                match case.as_str() {
                    $($name => errors!(@read $case $($kind)?, carried),)*
                    _ => None,
                }
            }
        })*
    };
    (@pattern $case:ident, $carried:ident) => { Self::$case };
    (@pattern $case:ident $kind:ident, $carried:ident) => { Self::$case($carried) };
    (@write $name:literal, $carried:ident) => { json!({ $name: null }) };
    (@write $name:literal $kind:ident, $carried:ident) => { json!({ $name: $carried }) };
    (@read $case:ident, $carried:ident) => { Some(Self::$case) };
    (@read $case:ident text, $carried:ident) => { Some(Self::$case($carried.as_str()?.to_owned())) };
    (@read $case:ident number, $carried:ident) => { Some(Self::$case($carried.as_u64()?)) };
}

errors! {
    kv::kv::KvError { InvalidKey = "invalid-key" text, TooLarge = "too-large" number, Unavailable = "unavailable" text }
    objects::objects::ObjectError { InvalidKey = "invalid-key" text, Unavailable = "unavailable" text }
    metrics::metrics::MetricsError { InvalidName = "invalid-name" text, TooManySeries = "too-many-series" }
    http_client::http_client::HttpError {
        InvalidRequest = "invalid-request" text,
        Denied = "denied" text,
        Timeout = "timeout",
        TooLarge = "too-large" number,
        Failed = "failed" text,
    }
    secrets::secrets::SecretError {
        Unknown = "unknown" text, Unsupported = "unsupported" text, Unavailable = "unavailable" text,
    }
    files::files::FileError {
        InvalidPath = "invalid-path" text,
        NotFound = "not-found" text,
        NoFolder = "no-folder" text,
        TooLarge = "too-large" number,
        Unavailable = "unavailable" text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same<T: Taped>(value: &T) -> bool {
        let written = value.write();
        T::read(&written).is_some_and(|read| read.write() == written)
    }

    #[test]
    fn values_are_the_same_after_reading_them_back() {
        type Found = Result<Option<kv::kv::Entry>, kv::kv::KvError>;
        let found: [Found; 4] = [
            Ok(None),
            Ok(Some(kv::kv::Entry { value: vec![0xff, 0], version: 7 })),
            Err(kv::kv::KvError::TooLarge(9)),
            Err(kv::kv::KvError::InvalidKey("empty".to_owned())),
        ];
        assert!(found.iter().all(same));
        assert!(same(&http_client::http_client::HttpError::Timeout));
        let fields = vec![("user".to_owned(), "bob".to_owned())];
        assert!(same(&secrets::secrets::Description { kind: "basic".to_owned(), fields }));
        assert_eq!(b"text".to_vec().write(), json!("text"));
        assert!(same(&vec![0xff_u8, 0x00]));
    }

    #[test]
    fn what_a_function_never_answers_is_not_read() {
        assert!(<Result<bool, kv::kv::KvError>>::read(&json!({ "ok": "yes" })).is_none());
        assert!(<Result<bool, kv::kv::KvError>>::read(&json!({ "error": { "odd": 1 } })).is_none());
        assert!(u64::read(&json!(-1)).is_none());
    }
}
