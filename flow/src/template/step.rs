//! The result of a step, as templates see it.
//!
//! Playbooks read results in several spellings that were once different shapes: `step.x`, `step.data.x`,
//! `step.result.x`. The data is one, so `data` and `result` lead back to it unless it has fields of these names. For a
//! pipeline, whose data is an object of results by label, the fields of the results are also found without the label,
//! those of later tasks first, in `data` too, and `results` leads to the data as it is. `_ref`, `_uri` and `_store` say where the whole is
//! when the result is kept as a payload. None of these shows when the value is listed or becomes JSON.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use serde_json::Value as Json;

use super::value::from_json;
use crate::event::Reference;

/// A step's result. `pipeline`: its tool was a list.
pub fn step_value(data: &Json, pipeline: bool, reference: Option<&Reference>) -> Value {
    let inner = from_json(data);
    match data {
        Json::Array(_) | Json::Object(_) => {
            Value::from_object(StepResult { inner, pipeline, reference: reference.map(payload_address) })
        }
        _ => inner,
    }
}

/// How a payload is written down where people and tools see it.
pub fn payload_address(reference: &Reference) -> String {
    format!("noetl://payload/{}", reference.sha256)
}

/// A list or a map with the names above.
#[derive(Debug)]
struct StepResult {
    inner: Value,
    pipeline: bool,
    reference: Option<String>,
}

impl StepResult {
    /// The data with the fields of the tasks' results beside their labels.
    fn merged(&self) -> Value {
        let mut fields: Vec<(Value, Value)> = Vec::new();
        let Ok(labels) = self.inner.try_iter() else { return self.inner.clone() };
        for label in labels {
            let result = self.inner.get_item(&label).unwrap_or_default();
            if result.kind() == ValueKind::Map
                && let Ok(names) = result.try_iter()
            {
                fields.extend(names.map(|name| (name.clone(), result.get_item(&name).unwrap_or_default())));
            }
        }
        let labels = self.inner.try_iter().into_iter().flatten();
        fields.extend(labels.map(|label| (label.clone(), self.inner.get_item(&label).unwrap_or_default())));
        Value::from_pairs(fields)
    }

    fn field_of_task(&self, key: &Value) -> Option<Value> {
        let mut found = None;
        for label in self.inner.try_iter().ok()? {
            let result = self.inner.get_item(&label).ok()?;
            if result.kind() == ValueKind::Map {
                found = field(&result, key).or(found);
            }
        }
        found
    }
}

fn field(map: &Value, key: &Value) -> Option<Value> {
    map.get_item(key).ok().filter(|value| !value.is_undefined())
}

impl Object for StepResult {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.inner.kind() == ValueKind::Map { ObjectRepr::Map } else { ObjectRepr::Seq }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(value) = field(&self.inner, key) {
            return Some(value);
        }
        if self.pipeline
            && let Some(value) = self.field_of_task(key)
        {
            return Some(value);
        }
        match key.as_str()? {
            "data" if self.pipeline => Some(self.merged()),
            "data" => Some(self.inner.clone()),
            "result" => Some(Value::from_dyn_object(Arc::clone(self))),
            "results" if self.pipeline => Some(self.inner.clone()),
            "_ref" | "_uri" => self.reference.as_deref().map(Value::from),
            "_store" => self.reference.is_some().then(|| Value::from("payload")),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.inner.kind() {
            ValueKind::Map => match self.inner.try_iter() {
                Ok(names) => Enumerator::Values(names.collect()),
                Err(_) => Enumerator::Empty,
            },
            _ => Enumerator::Seq(self.inner.len().unwrap_or(0)),
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.inner.len()
    }
}
