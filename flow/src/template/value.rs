//! Values between JSON and templates.
//!
//! JSON `null` is `none`, which is defined and false. Integers and floats of JSON are kept exactly. Going back,
//! undefined is `null`, and whatever can be iterated over is a list; since an expression can make a value that is much
//! larger than itself, what it gives is counted.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ValueKind;
use serde_json::{Map, Number, Value as Json};

use super::VALUE_BYTES;
use super::error::Cause;
use super::kept::{self, Kept};
use super::keychain;

/// Deeper values than these are refused: nothing that reads JSON takes them.
pub(super) const DEPTH: usize = 128;

/// What a value counts besides its text.
pub(super) const NODE: usize = 8;

/// Texts that are false besides the empty one.
const FALSE_TEXTS: [&str; 8] = ["false", "0", "no", "none", "null", "off", "{}", "[]"];

pub fn from_json(json: &Json) -> Value {
    from_json_at(json, 0)
}

fn from_json_at(json: &Json, depth: usize) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => from_number(number),
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(|item| from_json_at(item, depth + 1)).collect::<Vec<_>>()),
        Json::Object(fields) => {
            let pairs = fields.iter().map(|(name, field)| (name.as_str(), from_json_at(field, depth + 1)));
            let inner = Value::from_pairs(pairs);
            match (depth <= kept::DEEPEST).then(|| kept::missing(fields)).flatten() {
                Some((names, why)) => Value::from_object(Kept { inner, names, why }),
                None => inner,
            }
        }
    }
}

fn from_number(number: &Number) -> Value {
    if let Some(integer) = number.as_i64() {
        Value::from(integer)
    } else if let Some(integer) = number.as_u64() {
        Value::from(integer)
    } else {
        Value::from(number.as_f64().unwrap_or(f64::NAN))
    }
}

/// JSON of a value, if it is not too large.
pub fn to_json(value: &Value) -> Result<Json, Cause> {
    to_json_within(value, VALUE_BYTES)
}

/// JSON of a value, if it has at most about so many bytes.
pub(crate) fn to_json_within(value: &Value, limit: usize) -> Result<Json, Cause> {
    let mut left = limit;
    convert(value, &mut left, 0)
}

pub(super) fn convert(value: &Value, left: &mut usize, depth: usize) -> Result<Json, Cause> {
    take(left, NODE)?;
    if depth > DEPTH {
        return Err(Cause::Value);
    }
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::Number => Json::Number(number(value)?),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            take(left, text.len())?;
            Json::String(text.to_owned())
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let mut items = Vec::new();
            for item in iterate(value)? {
                items.push(convert(&item, left, depth + 1)?);
            }
            Json::Array(items)
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for name in iterate(value)? {
                let mut text = String::new();
                write_text(&name, &mut text, *left)?;
                take(left, text.len())?;
                let field = value.get_item(&name).map_err(|error| Cause::Failed(error.to_string()))?;
                fields.insert(text, convert(&field, left, depth + 1)?);
            }
            Json::Object(fields)
        }
        ValueKind::Invalid => return Err(Cause::Failed(value.to_string())),
        _ => {
            keychain::check(value)?;
            let text = value.to_string();
            take(left, text.len())?;
            Json::String(text)
        }
    })
}

fn iterate(value: &Value) -> Result<impl Iterator<Item = Value> + use<>, Cause> {
    value.try_iter().map_err(|error| Cause::Failed(error.to_string()))
}

pub(super) fn take(left: &mut usize, bytes: usize) -> Result<(), Cause> {
    *left = left.checked_sub(bytes).ok_or(Cause::Value)?;
    Ok(())
}

pub(super) fn number(value: &Value) -> Result<Number, Cause> {
    let given = if value.is_integer() {
        value.as_i64().map(Number::from).or_else(|| u64::try_from(value.clone()).ok().map(Number::from))
    } else {
        f64::try_from(value.clone()).ok().and_then(Number::from_f64)
    };
    given.ok_or_else(|| Cause::Failed(format!("{value} is not a number that JSON can hold")))
}

/// Writes a value as text: nothing for `none` and undefined, JSON for lists and maps.
pub(crate) fn write_text(value: &Value, out: &mut String, limit: usize) -> Result<(), Cause> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            // Looked at before it is copied, so that a huge text is not held twice.
            if out.len() + text.len() > limit {
                return Err(Cause::Text);
            }
            out.push_str(text);
        }
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let json = to_json_within(value, limit).map_err(|cause| match cause {
                Cause::Value => Cause::Text,
                other => other,
            })?;
            out.push_str(&json.to_string());
        }
        ValueKind::Invalid => return Err(Cause::Failed(value.to_string())),
        _ => {
            keychain::check(value)?;
            write!(out, "{value}").map_err(|_| Cause::Text)?;
        }
    }
    if out.len() > limit { Err(Cause::Text) } else { Ok(()) }
}

/// Whether a guard with this value holds.
pub fn is_truthy(value: &Value) -> bool {
    match value.as_str() {
        Some(text) => {
            let text = text.trim();
            !text.is_empty() && !FALSE_TEXTS.iter().any(|word| text.eq_ignore_ascii_case(word))
        }
        None => value.is_true(),
    }
}
