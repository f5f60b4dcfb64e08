//! The result of a step, as templates see it.
//!
//! Playbooks read results in several spellings that were once different shapes: `step.x`, `step.data.x`,
//! `step.result.x`. The data is one, so `data` and `result` lead back to it unless it has fields of these names. For a
//! pipeline, whose data is an object of results by label, the fields of the results are also found without the label,
//! those of later tasks first, in `data` too, and they show when the value is listed or becomes JSON: code that is given a
//! step as a whole looks for them there. `results` leads to the data as it is. A task may have answered with what another
//! pipeline came to, as one does that loads it again; the fields in there are found last. Where only the shape of a result
//! says that it is a pipeline's, no field of a task hides `data` and `result`. Each result of a loop over a pipeline is a
//! pipeline's. `_ref` and `_uri` say where the whole is when the result is kept as a payload, and `_store` in what kind of
//! store: the one that was asked for, or else one that its size fits. All payloads are kept alike, but playbooks ask. Of an HTTP answer `http` is its status and headers, and `data.data`
//! its body as `data` is; of a loop `data.stats` and the like are those of the loop. Of all these names only the fields of
//! tasks are listed.

use std::collections::BTreeSet;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use serde_json::Value as Json;

use super::value::from_json;
use crate::event::Reference;

/// Payloads of more bytes are said to be on a disk.
const SMALL_STORE: u64 = 1 << 20;

/// How a result is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// The step's tool was a list.
    pub pipeline: bool,
    /// The step has it from elsewhere, and only its shape says that it is a pipeline's. Any map of maps has it, so that
    /// `data` and `result` are the whole of it, whatever is called so further below.
    pub by_shape: bool,
    /// It is what a loop came to whose tool was a list.
    pub each: bool,
    /// Where the whole is.
    pub reference: Option<&'a Reference>,
    /// The kind of store that the playbook asks for.
    pub store: Option<&'a str>,
}

/// A step's result. `pipeline`: its tool was a list.
pub fn step_value(data: &Json, pipeline: bool, reference: Option<&Reference>) -> Value {
    read_value(data, &Reading { pipeline, reference, ..Reading::default() })
}

/// The result of a tool, of which nothing but its data is known.
pub fn result_value(data: Value) -> Value {
    match data.kind() {
        ValueKind::Seq | ValueKind::Map => {
            Value::from_object(StepResult { inner: data, pipeline: false, by_shape: false, kept: None })
        }
        _ => data,
    }
}

/// A step's result, read as it is meant.
pub fn read_value(data: &Json, reading: &Reading<'_>) -> Value {
    let inner = match data {
        Json::Object(fields) if reading.each => Value::from_pairs(fields.iter().map(|(name, field)| {
            let value = from_json(field);
            let is_list = value.kind() == ValueKind::Seq && matches!(name.as_str(), "results" | "data");
            (name.as_str(), if is_list { Value::from_object(Results { inner: value }) } else { value })
        })),
        _ => from_json(data),
    };
    let Reading { pipeline, by_shape, reference, store, .. } = *reading;
    let kept = reference.map(|reference| {
        let usual = if reference.size > SMALL_STORE { "disk" } else { "kv" };
        (payload_address(reference), store.filter(|kind| *kind != "auto").unwrap_or(usual).to_owned())
    });
    match data {
        Json::Array(_) | Json::Object(_) => Value::from_object(StepResult { inner, pipeline, by_shape, kept }),
        _ => inner,
    }
}

/// What the iterations of a loop over a pipeline came to.
#[derive(Debug)]
struct Results {
    inner: Value,
}

impl Object for Results {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let inner = self.inner.get_item(key).ok().filter(|value| !value.is_undefined())?;
        Some(match inner.kind() {
            ValueKind::Map => Value::from_object(StepResult { inner, pipeline: true, by_shape: false, kept: None }),
            _ => inner,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.inner.len().unwrap_or(0))
    }
}

/// How a payload is written down where people and tools see it.
pub fn payload_address(reference: &Reference) -> String {
    format!("noetl://payload/{}", reference.sha256)
}

/// The sha256 of a payload that is written down: its address, or a result that has one.
pub fn payload_of(written: &Json) -> Option<String> {
    let text = match written {
        Json::String(text) => text.as_str(),
        Json::Object(fields) => ["_ref", "ref", "_uri", "uri"].iter().find_map(|name| fields.get(*name)?.as_str())?,
        _ => return None,
    };
    let text = text.trim();
    let digest = ["noetl://payload/", "sha256:"].iter().find_map(|prefix| text.strip_prefix(prefix)).unwrap_or(text);
    let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| digest.to_ascii_lowercase())
}

/// A list or a map with the names above.
#[derive(Debug)]
struct StepResult {
    inner: Value,
    pipeline: bool,
    /// Only its shape says that it is a pipeline's.
    by_shape: bool,
    /// The address of the whole, and the kind of store it is in.
    kept: Option<(String, String)>,
}

impl StepResult {
    /// The data with the fields of the tasks' results beside their labels.
    fn merged(&self) -> Value {
        let mut fields: Vec<(Value, Value)> = Vec::new();
        for result in self.layers() {
            if let Ok(names) = result.try_iter() {
                fields.extend(names.map(|name| (name.clone(), result.get_item(&name).unwrap_or_default())));
            }
        }
        let labels = self.inner.try_iter().into_iter().flatten();
        fields.extend(labels.map(|label| (label.clone(), self.inner.get_item(&label).unwrap_or_default())));
        Value::from_pairs(fields)
    }

    /// Maps in which a name without a label may be found; of several the last counts.
    fn layers(&self) -> Vec<Value> {
        let (mut inside, mut own) = (Vec::new(), Vec::new());
        for result in values(&self.inner).filter(|result| result.kind() == ValueKind::Map) {
            let below: Vec<Value> = values(&result).collect();
            if below.iter().all(|value| value.kind() == ValueKind::Map) {
                inside.extend(below);
            }
            own.push(result);
        }
        inside.extend(own);
        inside
    }

    /// Status and headers, if it is an HTTP answer; of a pipeline, of the last that is one.
    fn http(&self) -> Option<Value> {
        let is_answer = |value: &Value| field(value, &Value::from("status_code")).is_some_and(|code| code.is_number());
        let all = if self.pipeline { values(&self.inner).collect() } else { vec![self.inner.clone()] };
        let answer = all.into_iter().rev().find(is_answer)?;
        let part = |name: &str| field(&answer, &Value::from(name)).unwrap_or_default();
        Some(Value::from_pairs([("status", part("status_code")), ("headers", part("headers"))]))
    }

    /// Bulk that is elsewhere hides nothing that another task has, and not the whole, which is `data` too.
    fn field_of_task(&self, key: &Value) -> Option<Value> {
        let layers = self.layers();
        let mut found = layers.iter().rev().filter_map(|result| field(result, key));
        let first = found.next()?;
        if first.kind() != ValueKind::Invalid {
            return Some(first);
        }
        let other = found.find(|value| value.kind() != ValueKind::Invalid);
        other.or_else(|| Some(first).filter(|_| key.as_str() != Some("data")))
    }

    /// Labels, and the fields of their results.
    fn names(&self) -> Vec<Value> {
        let labels: Vec<Value> = self.inner.try_iter().into_iter().flatten().collect();
        if !self.pipeline {
            return labels;
        }
        let mut names: BTreeSet<Value> = labels.iter().cloned().collect();
        let mut all = labels;
        for result in values(&self.inner).filter(|result| result.kind() == ValueKind::Map) {
            let fields = result.try_iter().into_iter().flatten();
            all.extend(fields.filter(|name| names.insert(name.clone())));
        }
        all
    }
}

/// A list or a map, with names that are not its own. They are not listed.
#[derive(Debug)]
struct Beside {
    inner: Value,
    beside: Vec<(&'static str, Value)>,
}

impl Object for Beside {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.inner.kind() == ValueKind::Map { ObjectRepr::Map } else { ObjectRepr::Seq }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.inner.get_item(key).ok().filter(|value| !value.is_undefined()).or_else(|| {
            let name = key.as_str()?;
            self.beside.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.inner.kind() {
            ValueKind::Map => Enumerator::Values(self.inner.try_iter().into_iter().flatten().collect()),
            _ => Enumerator::Seq(self.inner.len().unwrap_or(0)),
        }
    }
}

/// The values of a map.
fn values(map: &Value) -> impl Iterator<Item = Value> {
    map.try_iter().into_iter().flatten().map(|name| map.get_item(&name).unwrap_or_default())
}

fn field(map: &Value, key: &Value) -> Option<Value> {
    let value = map.get_item(key).ok().filter(|value| !value.is_undefined())?;
    Some(if key.as_str() == Some("data") { with_names(map, value) } else { value })
}

/// The field `data` of an HTTP answer or of a loop, with what people look for in there.
fn with_names(result: &Value, data: Value) -> Value {
    if !matches!(data.kind(), ValueKind::Map | ValueKind::Seq) {
        return data;
    }
    let own = |name: &str| result.get_item(&Value::from(name)).ok().filter(|value| !value.is_undefined());
    let mut beside = Vec::new();
    if own("stats").is_some() && own("results").is_some() {
        beside.extend(["stats", "count", "results"].into_iter().filter_map(|name| Some((name, own(name)?))));
    } else if own("status_code").is_some() {
        beside.push(("data", data.clone()));
    }
    if beside.is_empty() { data } else { Value::from_object(Beside { inner: data, beside }) }
}

impl Object for StepResult {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.inner.kind() == ValueKind::Map { ObjectRepr::Map } else { ObjectRepr::Seq }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if let Some(value) = field(&self.inner, key) {
            return Some(value);
        }
        let leads_back = self.by_shape && matches!(key.as_str(), Some("data" | "result"));
        if self.pipeline
            && !leads_back
            && let Some(value) = self.field_of_task(key)
        {
            return Some(value);
        }
        match key.as_str()? {
            "data" if self.pipeline => Some(self.merged()),
            "data" => Some(self.inner.clone()),
            "result" => Some(Value::from_dyn_object(Arc::clone(self))),
            "results" if self.pipeline => Some(self.inner.clone()),
            "http" => self.http(),
            "_ref" | "_uri" => self.kept.as_ref().map(|(address, _)| Value::from(address.as_str())),
            "_store" => self.kept.as_ref().map(|(_, store)| Value::from(store.as_str())),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.inner.kind() {
            ValueKind::Map => Enumerator::Values(self.names()),
            _ => Enumerator::Seq(self.inner.len().unwrap_or(0)),
        }
    }
}
