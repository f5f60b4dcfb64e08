//! What a loop goes over.
//!
//! A list is its elements, an object a list of `{key, value}`, a number the numbers below it, a text the JSON list it
//! is, or else its parts between commas and ends of lines. Nothing else can be gone over.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::scope::{Scope, Stop};
use crate::event::Items;
use crate::state::Repeat;

/// A collection before it is written down.
#[derive(Debug, PartialEq)]
pub(super) enum Collection {
    Count(u32),
    List(Vec<Json>),
}

impl Collection {
    pub fn len(&self) -> Option<u32> {
        match self {
            Collection::Count(count) => Some(*count),
            Collection::List(items) => u32::try_from(items.len()).ok(),
        }
    }
}

/// What a value is as a collection. The error is what it is instead.
pub(super) fn collection(value: Json) -> Result<Collection, String> {
    match value {
        Json::Array(items) => Ok(Collection::List(items)),
        Json::Object(fields) => {
            let pairs = fields.into_iter().map(|(key, value)| json!({ "key": key, "value": value }));
            Ok(Collection::List(pairs.collect()))
        }
        Json::Number(number) => match count(&number) {
            Some(count) => Ok(Collection::Count(count)),
            None => Err(format!("the number {number}")),
        },
        Json::String(text) => Ok(Collection::List(parts(&text))),
        Json::Null => Err("null".to_owned()),
        Json::Bool(flag) => Err(flag.to_string()),
    }
}

fn count(number: &serde_json::Number) -> Option<u32> {
    if let Some(number) = number.as_i64() {
        return u32::try_from(number.max(0)).ok();
    }
    let number = number.as_f64().filter(|number| number.fract() == 0.0 && *number <= f64::from(u32::MAX))?;
    Some(number.max(0.0) as u32)
}

fn parts(text: &str) -> Vec<Json> {
    if let Ok(Json::Array(items)) = serde_json::from_str(text) {
        return items;
    }
    text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()).map(Json::from).collect()
}

/// The item of an iteration that was or can be issued.
pub(super) fn item<'a>(scope: &Scope<'a>, repeat: &'a Repeat, index: u32) -> Result<Cow<'a, Json>, Stop> {
    let (items, first) = match &repeat.frame {
        Some(frame) => (&frame.items, frame.first),
        None => (&repeat.items, 0),
    };
    let place = index.saturating_sub(first) as usize;
    Ok(match items {
        Items::Count(_) => Cow::Owned(index.into()),
        Items::List(list) => list.get(place).map_or(Cow::Owned(Json::Null), Cow::Borrowed),
        Items::Payload(reference) => {
            let list = scope.values.get(&reference.sha256).ok_or_else(|| Stop::Need(reference.sha256.clone()))?;
            list.get(place).map_or(Cow::Owned(Json::Null), Cow::Borrowed)
        }
        Items::Cursor => Cow::Owned(Json::Null),
    })
}

/// The rows in what a claim answered: the answer itself, or what it has under one of the names tools use.
pub(super) fn rows(answer: &Json) -> Option<Vec<Json>> {
    match answer {
        Json::Null => Some(Vec::new()),
        Json::Array(rows) => Some(rows.clone()),
        Json::Object(fields) => {
            let named = ["rows", "data", "result", "command_0"].iter().find_map(|name| fields.get(*name));
            named.and_then(rows)
        }
        _ => None,
    }
}
