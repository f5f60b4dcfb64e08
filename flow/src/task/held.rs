//! Values of a command that go on from turn to turn.
//!
//! A pipeline hands on what it has fetched: the same rows are in the continuation of every turn, among the names that
//! templates see, and in the report at last. Writing them down and making template values of them is most of a turn's work
//! where they are large, so it is done once for each value, however many turns and templates it goes through. A value is
//! never changed; whoever sets a field of one makes another that shares the rest.

use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use crate::template::{Value, Written, from_json};

/// A value, and what was made of it so far. It was made of its JSON or of its text.
#[derive(Debug, Clone)]
pub(super) struct Held(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    json: OnceLock<Json>,
    /// The JSON as it came, if it came as text. Most values are never written down again.
    text: Option<String>,
    written: OnceLock<Box<RawValue>>,
    shown: OnceLock<Value>,
}

impl From<Json> for Held {
    fn from(json: Json) -> Self {
        Self(Arc::new(Inner { json: json.into(), ..Inner::default() }))
    }
}

impl Held {
    /// What a tool answered: its JSON, and the text that is from.
    pub(super) fn answered(json: Json, text: String) -> Self {
        Self(Arc::new(Inner { json: json.into(), text: Some(text), ..Inner::default() }))
    }

    /// What a template gave, with its text.
    pub(super) fn rendered(value: Value, Written { text, is_plain }: Written) -> Self {
        // What is more than its JSON must not be seen as that only until the command is taken up again elsewhere.
        let shown = if is_plain { value.into() } else { OnceLock::new() };
        Self(Arc::new(Inner { text: Some(text), shown, ..Inner::default() }))
    }

    pub(super) fn json(&self) -> &Json {
        self.0.json.get_or_init(|| self.0.read())
    }

    pub(super) fn into_json(self) -> Json {
        match Arc::try_unwrap(self.0) {
            Ok(mut inner) => inner.json.take().unwrap_or_else(|| inner.read()),
            Err(shared) => shared.json.get().cloned().unwrap_or_else(|| shared.read()),
        }
    }

    /// As templates see it.
    pub(super) fn shown(&self) -> Value {
        self.0.shown.get_or_init(|| from_json(self.json())).clone()
    }

    fn written(&self) -> &RawValue {
        let write = |json| serde_json::value::to_raw_value(json).expect("JSON values are written without fail");
        self.0.written.get_or_init(|| match self.0.text.clone().map(RawValue::from_string) {
            Some(Ok(written)) => written,
            _ => write(self.json()),
        })
    }
}

impl Inner {
    /// A text without its JSON was written here, and is as deep as a value may be.
    fn read(&self) -> Json {
        let text = self.text.as_deref().unwrap_or("null");
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        Json::deserialize(&mut reader).unwrap_or_default()
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Serialize for Held {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Held {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::from)
    }
}

/// Values by their names, in the order in which the names came up.
pub(super) type Names = IndexMap<String, Held>;

/// Names as one JSON object.
pub(super) fn object(names: Names) -> Map<String, Json> {
    names.into_iter().map(|(name, held)| (name, held.into_json())).collect()
}

/// A value whose fields can be set.
#[derive(Debug, Clone)]
pub(super) enum Settable {
    Whole(Held),
    Fields(IndexMap<String, Settable>),
}

impl Settable {
    /// Sets the field at a path, making objects on the way.
    pub(super) fn assign(&mut self, path: &[String], value: Held) {
        let Some((name, rest)) = path.split_first() else {
            *self = Self::Whole(value);
            return;
        };
        if let Self::Whole(held) = self {
            let fields = held.json().as_object().cloned().unwrap_or_default();
            *self = Self::Fields(fields.into_iter().map(|(name, field)| (name, field.into())).collect());
        }
        if let Self::Fields(fields) = self {
            fields.entry(name.clone()).or_insert_with(|| Json::Null.into()).assign(rest, value);
        }
    }

    pub(super) fn shown(&self) -> Value {
        match self {
            Self::Whole(held) => held.shown(),
            Self::Fields(fields) => {
                Value::from_pairs(fields.iter().map(|(name, field)| (name.as_str(), field.shown())))
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        match self {
            Self::Whole(held) => held.json().clone(),
            Self::Fields(fields) => fields.iter().map(|(name, field)| (name.clone(), field.json())).collect(),
        }
    }
}

impl From<Json> for Settable {
    fn from(json: Json) -> Self {
        Self::Whole(json.into())
    }
}

impl Serialize for Settable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(held) => held.serialize(serializer),
            Self::Fields(fields) => fields.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Settable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Held::deserialize(deserializer).map(Self::Whole)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn fields_are_set_and_the_rest_is_shared() {
        let rows = Held::from(json!([{"n": 1}, {"n": 2}]));
        let mut iter = Settable::from(json!({"slot": 1, "item": {"a": 1}}));
        iter.assign(&path("rows"), rows.clone());
        iter.assign(&path("item.b.c"), Json::from(2).into());
        iter.assign(&path("slot.x"), Json::from(3).into());
        let expected = json!({"slot": {"x": 3}, "item": {"a": 1, "b": {"c": 2}}, "rows": [{"n": 1}, {"n": 2}]});
        assert_eq!(iter.json(), expected);
        assert_eq!(serde_json::to_value(iter.shown()).expect("plain data"), expected);
        let written = serde_json::to_string(&iter).expect("it can be written");
        assert_eq!(serde_json::from_str::<Json>(&written).expect("JSON"), expected);
        let Settable::Fields(fields) = &iter else { panic!("fields were set") };
        let Settable::Whole(kept) = &fields["rows"] else { panic!("it is as it was given") };
        assert!(Arc::ptr_eq(&kept.0, &rows.0));

        iter.assign(&[], Json::Null.into());
        assert_eq!(iter.json(), Json::Null);
    }

    #[test]
    fn what_is_read_again_is_what_was_written() {
        let held = Held::from(json!({"a": [1, 2.5, null, "\u{e9}\""], "b": {"c": 18_446_744_073_709_551_615_u64}}));
        let written = serde_json::to_string(&held).expect("it can be written");
        assert_eq!(serde_json::from_str::<Held>(&written).expect("it can be read"), held);
        assert_eq!(serde_json::to_string(&held.clone()).expect("again"), written);
        assert_eq!(held.into_json()["a"][1], json!(2.5));
    }
}
