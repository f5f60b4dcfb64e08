//! Values with the form templates read them in.
//!
//! A result is written to commands as JSON far more often than a guard looks at it, so JSON is what is kept and the
//! template's form is made at the first look.

use std::borrow::Cow;
use std::sync::OnceLock;

use minijinja::Value;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use crate::event::{Data, Failure};
use crate::response::{details, response};
use crate::template::from_json;

/// A JSON value.
#[derive(Debug, Clone, Default)]
pub struct Held {
    json: Json,
    made: OnceLock<Value>,
}

impl Held {
    pub fn new(json: Json) -> Self {
        Self { json, made: OnceLock::new() }
    }

    pub fn json(&self) -> &Json {
        &self.json
    }

    pub fn value(&self) -> &Value {
        self.made.get_or_init(|| from_json(&self.json))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Serialize for Held {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Held {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::new)
    }
}

/// What a step came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub data: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    #[serde(skip)]
    made: OnceLock<Value>,
}

impl Outcome {
    pub fn new(data: Data, error: Option<Failure>) -> Self {
        Self { data, error, made: OnceLock::new() }
    }

    /// What templates see of it, by the rule that is given: always the same one.
    pub fn exposed(&self, rule: impl FnOnce(&Data) -> Value) -> &Value {
        self.made.get_or_init(|| rule(&self.data))
    }
}

impl PartialEq for Outcome {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data && self.error == other.error
    }
}

/// The data of a step as others see it: with the error, if it failed.
pub fn shown<'a>(data: &'a Json, error: Option<&Failure>) -> Cow<'a, Json> {
    match error {
        Some(error) => {
            let mut fields = laid_over(data, Some(error));
            fields["error"] = error_value(error, data);
            Cow::Owned(fields)
        }
        None => Cow::Borrowed(data),
    }
}

/// A result with its status, and its error if it has one.
pub fn laid_over(data: &Json, error: Option<&Failure>) -> Json {
    let mut fields = match data {
        Json::Object(fields) => fields.clone(),
        Json::Null => Map::new(),
        other => Map::from_iter([("data".to_owned(), other.clone())]),
    };
    let status = if error.is_some() { "error" } else { "success" };
    fields.insert("status".to_owned(), status.into());
    if let Some(error) = error {
        fields.insert("error".to_owned(), failure_value(error));
    }
    fields.into()
}

/// A result that came from another playbook, whole: how the playbook ended is told beside its data, and not in the payload.
/// Nothing when nothing is told.
pub fn told_beside(extract: &Json, whole: &Json) -> Option<Json> {
    if whole.get("execution_id").is_some() {
        return None;
    }
    let execution = extract.get("execution_id")?.clone();
    let mut fields = Map::from_iter([("execution_id".to_owned(), execution)]);
    fields.extend(extract.get("status").map(|status| ("status".to_owned(), status.clone())));
    match whole {
        Json::Object(own) => fields.extend(own.clone()),
        Json::Null => {}
        other => {
            fields.insert("data".to_owned(), other.clone());
        }
    }
    Some(fields.into())
}

/// The error of a step as templates see it, with what the answer said that it was.
pub fn error_value(error: &Failure, data: &Json) -> Json {
    let mut value = failure_value(error);
    if let (Json::Object(fields), Some(answer)) = (&mut value, response(data)) {
        fields.extend(details(answer));
    }
    value
}

/// A failure as it is kept in a list of results.
fn failure_value(error: &Failure) -> Json {
    json!({ "kind": error.code, "code": error.code, "message": error.message, "retryable": error.retryable })
}
