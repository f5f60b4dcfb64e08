//! What the templates of a task see, and which payloads they need for it.
//!
//! Of two things with one name the first of these is seen: what the rendering itself brings (`output`, the tool's
//! input), what was set in this run, outputs of earlier tools by their label, what came with the task. A context is
//! made for each rendering, of the names that are referred to.
//!
//! What came with the task may be an extract of a payload. It is good enough as long as it answers everything the
//! templates ask of it ([`covers`]); otherwise the payload is needed, and only that one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::memory::Memory;
use super::{Inputs, PREVIOUS, Partial, VARIABLES};
use crate::event::{Failure, Reference};
use crate::extract::covers;
use crate::state::told_beside;
use crate::template::{
    Cause, Context, KEYCHAIN, Reading, References, Value, from_json, read_value, result_value, to_json,
};

/// Payloads at hand in this turn, by their sha256.
pub(super) type Bulk = BTreeMap<String, Json>;

pub(super) struct Scope<'a> {
    pub inputs: &'a Inputs,
    pub memory: &'a Memory,
    pub bulk: &'a Bulk,
    pub keychain: Option<&'a Value>,
    pub time_ms: u64,
}

impl Scope<'_> {
    /// A context of what is referred to, and of names that hide it.
    pub(super) fn context<'n>(
        &'n self,
        refers: &'n References,
        own: impl IntoIterator<Item = (&'n str, Value)>,
    ) -> Context {
        let mut names: BTreeMap<&str, Value> = BTreeMap::new();
        if refers.whole_context {
            let all = self.inputs.context.keys().chain(self.memory.results.keys()).chain(self.memory.running.keys());
            names.extend(all.filter_map(|name| Some((name.as_str(), self.value(name)?))));
        }
        names.extend(refers.names().filter_map(|name| Some((name, self.value(name)?))));
        names.extend(own);
        Context::sealed(self.time_ms, self.inputs.seal.as_deref()).with(names)
    }

    fn value(&self, name: &str) -> Option<Value> {
        if name == KEYCHAIN {
            return self.keychain.cloned();
        }
        if let Some(set) = self.memory.running.get(name) {
            return Some(set.shown());
        }
        if let Some(output) = self.memory.results.get(name) {
            return Some(result_value(output.shown()));
        }
        let given = self.inputs.context.get(name)?;
        let json = self.whole_of(name, given);
        let Some((_, pipeline)) = self.inputs.results.iter().find(|(result, _)| result == name) else {
            return Some(from_json(&json));
        };
        let reference = self.inputs.partial.iter().find_map(|(partial, place)| match place {
            Partial::Payload(reference) if partial == name => Some(reference),
            _ => None,
        });
        let is_in = |list: &[String]| list.iter().any(|listed| listed == name);
        let reading = Reading {
            pipeline: *pipeline,
            by_shape: is_in(&self.inputs.handed_on),
            each: is_in(&self.inputs.each),
            reference,
            store: self.inputs.stores.get(name).map(String::as_str),
        };
        Some(read_value(&json, &reading))
    }

    /// Results of steps and of earlier tools that came with the task, for code that looks for them by their names.
    pub(super) fn results(&self) -> Result<Json, Cause> {
        let steps = self.inputs.results.iter().map(|(name, _)| name).filter(|name| *name != PREVIOUS);
        let names = steps.chain(self.memory.results.keys()).filter(|name| !self.memory.running.contains_key(*name));
        let values = names.filter_map(|name| Some((name.clone(), self.value(name)?)));
        let all = values.map(|(name, value)| Ok((name, to_json(&value)?)));
        Ok(Json::Object(all.collect::<Result<_, Cause>>()?))
    }

    /// What a name was before anything was set in this run, as JSON, to set fields of it.
    pub(super) fn base(&self, name: &str) -> Json {
        self.inputs.context.get(name).map_or(Json::Null, |given| self.whole_of(name, given).into_owned())
    }

    /// The execution's variables, as of now, if they came with the task.
    pub(super) fn variables(&self) -> Option<Json> {
        let mut variables = self.inputs.context.get(VARIABLES)?.as_object()?.clone();
        let written = self.memory.set.keys().filter_map(|key| key.split('.').next());
        variables.extend(written.filter_map(|name| Some((name.to_owned(), self.memory.running.get(name)?.json()))));
        Some(variables.into())
    }

    /// What comes with every tool's input.
    pub(super) fn bound(&self) -> impl Iterator<Item = (&str, Cow<'_, Json>)> {
        self.inputs.bind.iter().map(|(name, given)| (name.as_str(), self.whole_of(name, given)))
    }

    /// A value with the payloads at hand in the place of extracts.
    fn whole_of<'a>(&self, name: &str, given: &'a Json) -> Cow<'a, Json> {
        let mut value = Cow::Borrowed(given);
        for (partial, place) in &self.inputs.partial {
            let mut path = partial.split('.');
            if path.next() != Some(name) {
                continue;
            }
            let fields: Vec<&str> = path.collect();
            let extract = fields.iter().try_fold(given, |value, field| value.get(field));
            if let Some(whole) = extract.and_then(|extract| whole(place, extract, self.bulk))
                && let Some(slot) = fields.iter().try_fold(value.to_mut(), |value, field| value.get_mut(field))
            {
                *slot = whole;
            }
        }
        value
    }

    /// Payloads that are needed and not at hand; with them those that are, since nobody keeps them for the next turn.
    /// `bound`: whether the tool's input is made too.
    pub(super) fn missing(&self, refers: &References, bound: bool) -> Vec<String> {
        let needed = self.inputs.partial.iter().filter(|(name, place)| {
            (bound && self.inputs.bind.contains_key(name)) || self.is_asked(name, place, refers)
        });
        missing(needed.map(|(_, place)| place), self.bulk)
    }

    fn is_asked(&self, name: &str, place: &Partial, refers: &References) -> bool {
        let path: Vec<&str> = name.split('.').collect();
        let root = path[0];
        if self.memory.running.contains_key(root) || self.memory.results.contains_key(root) {
            return false;
        }
        if refers.whole_context {
            return true;
        }
        let given = self.inputs.context.get(root);
        let Some(extract) = given.and_then(|given| path[1..].iter().try_fold(given, |value, field| value.get(field)))
        else {
            return false;
        };
        let pipeline = self.inputs.results.iter().any(|(result, pipeline)| result == name && *pipeline);
        refers.paths.iter().any(|asked| {
            let shared = path.iter().zip(asked).take_while(|(part, field)| **part == field.as_str()).count();
            if shared == path.len() {
                !answers(place, extract, &asked[shared..], pipeline)
            } else {
                shared == asked.len()
            }
        })
    }
}

fn answers(place: &Partial, extract: &Json, path: &[String], pipeline: bool) -> bool {
    match (place, path) {
        (Partial::Payload(_), path) => covers(extract, path, pipeline),
        (Partial::Chunks(_), [first, ..]) if !matches!(first.as_str(), "results" | "data" | "result") => {
            covers(extract, path, pipeline)
        }
        (Partial::Chunks(_), _) => false,
    }
}

/// Payloads for these places, when one of them is not at hand.
pub(super) fn missing<'a>(places: impl Iterator<Item = &'a Partial>, bulk: &Bulk) -> Vec<String> {
    let mut needed = BTreeSet::new();
    for place in places {
        let references = match place {
            Partial::Payload(reference) => std::slice::from_ref(reference),
            Partial::Chunks(chunks) => chunks.as_slice(),
        };
        for reference in references {
            needed.insert(reference.sha256.clone());
            if let (Partial::Chunks(_), Some(chunk)) = (place, bulk.get(&reference.sha256)) {
                needed.extend(entries(chunk).filter_map(inner).map(|inner| inner.sha256));
            }
        }
    }
    if needed.iter().all(|sha256| bulk.contains_key(sha256)) { Vec::new() } else { needed.into_iter().collect() }
}

/// The whole at a place, if it is at hand.
pub(super) fn whole(place: &Partial, extract: &Json, bulk: &Bulk) -> Option<Json> {
    match place {
        Partial::Payload(reference) => {
            let mut whole = bulk.get(&reference.sha256)?.clone();
            // How a step ended is told beside its data, and is not in the payload.
            if let (Json::Object(fields), Some(error)) = (&mut whole, extract.get("error"))
                && extract.get("status").and_then(Json::as_str) == Some("error")
            {
                fields.insert("status".to_owned(), "error".into());
                fields.insert("error".to_owned(), error.clone());
            }
            Some(told_beside(extract, &whole).unwrap_or(whole))
        }
        Partial::Chunks(chunks) => {
            let mut results = BTreeMap::new();
            for chunk in chunks {
                for entry in entries(bulk.get(&chunk.sha256)?) {
                    let result = match inner(entry) {
                        Some(reference) => Some(bulk.get(&reference.sha256)?),
                        None => entry.get(1),
                    };
                    if let (Some(index), Some(result)) = (entry.get(0).and_then(Json::as_u64), result) {
                        results.insert(index, result.clone());
                    }
                }
            }
            let results: Vec<Json> = results.into_values().collect();
            let mut fields = extract.as_object().cloned().unwrap_or_default();
            fields.insert("results".to_owned(), results.clone().into());
            fields.insert("data".to_owned(), results.into());
            Some(fields.into())
        }
    }
}

fn entries(chunk: &Json) -> impl Iterator<Item = &Json> {
    chunk.as_array().into_iter().flatten()
}

/// Where the whole of an iteration's result is, when the entry has an extract.
fn inner(entry: &Json) -> Option<Reference> {
    entry.get(2).and_then(|reference| serde::Deserialize::deserialize(reference).ok())
}

/// Reads payloads that were asked for.
pub(super) fn read_bulk(payloads: Vec<(String, Option<Vec<u8>>)>) -> Result<Bulk, Failure> {
    let failure = |code: &str, message: String| Failure { code: code.to_owned(), message, retryable: false };
    let read = payloads.into_iter().map(|(sha256, content)| {
        let content = content.ok_or_else(|| {
            failure("reference_missing", format!("the payload {sha256} that a template needs is gone"))
        })?;
        let json = serde_json::from_slice(&content)
            .map_err(|error| failure("reference_invalid", format!("the payload {sha256} is not JSON: {error}")))?;
        Ok((sha256, json))
    });
    read.collect()
}
