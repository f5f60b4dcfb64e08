//! The part of a large result that an event keeps.
//!
//! A result that is too large for an event becomes a payload, and its extract stays: small enough to be carried
//! everywhere, and shaped like the whole, so that guards can walk into it. Fields keep their order. Of an object its
//! short values are kept first and whole, what is left is shared among the long ones; of a list the first item is kept,
//! of a long text its beginning and `…`.
//!
//! Invariants:
//! 1. An extract has at most the limit's bytes as JSON (and never less than [`LEAST`] are allowed).
//! 2. What an extract says is true: a number, boolean, null or uncut text in it is the whole's at that place, and a field
//!    that is missing from an object without `_omitted` is missing from the whole. [`covers`] tells what can be
//!    trusted; everything else needs the payload.
//! 3. An object at the top has `_truncated: true` when anything is cut, and every object that lost fields says how many
//!    in `_omitted`.

use std::io;

use serde_json::{Map, Value as Json};

/// Limits below this are taken for this.
pub const LEAST: usize = 128;

/// A text of more bytes is long: it may be cut, and short ones are kept before it.
const SHORT_TEXT: usize = 256;
/// Room for `"_omitted":` and any number, with a comma.
const OMITTED_BYTES: usize = 32;
/// What an object takes that lost all its fields.
const LEAST_OBJECT: usize = 2 + OMITTED_BYTES;
/// Room for `"_truncated":true` with a comma.
const TRUNCATED_BYTES: usize = 18;

#[derive(Debug, Clone, PartialEq)]
pub struct Extract {
    pub value: Json,
    /// Whether anything is missing.
    pub truncated: bool,
}

/// At most `limit` bytes of a value; all of it, when it fits. `select` names the fields to keep instead of a summary,
/// with dots into objects: `meta.count`.
pub fn extract(value: &Json, limit: usize, select: &[String]) -> Extract {
    let limit = limit.max(LEAST);
    if size(value, limit).is_some() {
        return Extract { value: value.clone(), truncated: false };
    }
    let value = match value {
        Json::Object(fields) => {
            let paths: Vec<Vec<&str>> = select.iter().map(|path| path.split('.').collect()).collect();
            let paths: Vec<&[&str]> = paths.iter().map(Vec::as_slice).collect();
            let left = limit - TRUNCATED_BYTES;
            let mut kept = if paths.is_empty() { summary_of_fields(fields, left) } else { pick(fields, &paths, left) };
            kept.insert("_truncated".to_owned(), Json::Bool(true));
            Json::Object(kept)
        }
        // An object that lost all there is claims nothing.
        other => {
            summary(other, limit).unwrap_or_else(|| Json::Object(Map::from_iter([("_omitted".to_owned(), 1.into())])))
        }
    };
    Extract { value, truncated: true }
}

/// Whether an extract alone says what is at a path of the whole. `pipeline`: fields may also be found in results of
/// tasks, without their label.
pub fn covers(extract: &Json, path: &[String], pipeline: bool) -> bool {
    let Some((first, rest)) = path.split_first() else { return is_scalar(extract) };
    match extract {
        // The body of an answer is found under `data.data` too, when it has no such field of its own.
        Json::Object(fields) if is_body_again(fields, path) => covers_below(&fields["data"], &rest[1..]),
        Json::Object(fields) if fields.contains_key(first) && !is_mark(first) => covers_below(&fields[first], rest),
        Json::Object(fields) if first == "http" && fields.contains_key("status_code") && !pipeline => {
            match rest.split_first() {
                Some((part, rest)) if part == "status" => covers_below(&fields["status_code"], rest),
                Some((part, rest)) => fields.get(part).is_some_and(|part| covers_below(part, rest)),
                None => false,
            }
        }
        Json::Object(_) if matches!(first.as_str(), "_ref" | "_uri" | "_store") => true,
        Json::Object(fields) if fields.contains_key("_omitted") || pipeline => false,
        // These two lead back to the value itself when it has no such field.
        Json::Object(_) | Json::Array(_) if first == "result" => covers(extract, rest, pipeline),
        Json::Object(_) | Json::Array(_) if first == "data" => covers_below(extract, rest),
        _ => covers_below(extract, path),
    }
}

fn is_body_again(fields: &Map<String, Json>, path: &[String]) -> bool {
    let twice = matches!(path, [first, second, ..] if first == "data" && second == "data");
    let body = fields.get("data").filter(|_| twice && fields.contains_key("status_code"));
    match body {
        Some(Json::Object(body)) => !body.contains_key("data") && !body.contains_key("_omitted"),
        Some(Json::Array(_)) => true,
        _ => false,
    }
}

fn covers_below(extract: &Json, path: &[String]) -> bool {
    let Some((first, rest)) = path.split_first() else { return is_scalar(extract) };
    match extract {
        Json::Object(fields) if is_mark(first) => !fields.contains_key(first),
        Json::Object(fields) => match fields.get(first) {
            Some(field) => covers_below(field, rest),
            None => !fields.contains_key("_omitted"),
        },
        Json::Array(items) => match first.parse::<usize>().ok().and_then(|place| items.get(place)) {
            Some(item) => covers_below(item, rest),
            None => items.is_empty(),
        },
        // A scalar has no fields, in the whole as here.
        scalar => is_scalar(scalar),
    }
}

/// Whether a field says that others are missing.
pub(crate) fn is_mark(name: &str) -> bool {
    name == "_truncated" || name == "_omitted"
}

fn is_scalar(extract: &Json) -> bool {
    match extract {
        Json::String(text) => !text.ends_with('…'),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        _ => true,
    }
}

/// Bytes of a value as JSON, if they are not more than the limit.
pub fn size(value: &Json, limit: usize) -> Option<usize> {
    struct Counter {
        bytes: usize,
        limit: usize,
    }
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes += bytes.len();
            if self.bytes > self.limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter { bytes: 0, limit };
    serde_json::to_writer(&mut counter, value).ok()?;
    Some(counter.bytes)
}

/// At most `left` bytes of a value, or nothing if that is not even enough for a part that is true.
fn summary(value: &Json, left: usize) -> Option<Json> {
    match value {
        Json::String(text) => cut(text, left),
        Json::Array(items) => match items.first() {
            None => (left >= 2).then(|| value.clone()),
            Some(first) => summary(first, left.checked_sub(2)?).map(|first| Json::Array(vec![first])),
        },
        Json::Object(fields) if fields.is_empty() => (left >= 2).then(|| value.clone()),
        Json::Object(fields) => (left >= LEAST_OBJECT).then(|| Json::Object(summary_of_fields(fields, left))),
        scalar => size(scalar, left).map(|_| scalar.clone()),
    }
}

fn cut(text: &str, left: usize) -> Option<Json> {
    let whole = Json::String(text.to_owned());
    if text.len() <= SHORT_TEXT && size(&whole, left).is_some() {
        return Some(whole);
    }
    let mut left = left.min(SHORT_TEXT).checked_sub(2 + '…'.len_utf8())?;
    let mut kept = String::new();
    for character in text.chars() {
        // Escapes are at most six bytes, for characters below space.
        let bytes = if character < ' ' || character == '"' || character == '\\' { 6 } else { character.len_utf8() };
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => break,
        }
        kept.push(character);
    }
    kept.push('…');
    Some(Json::String(kept))
}

/// The fields that fit, with `_omitted` if some do not.
fn summary_of_fields(fields: &Map<String, Json>, left: usize) -> Map<String, Json> {
    let mut left = left.saturating_sub(LEAST_OBJECT);
    let mut kept: Vec<Option<Json>> = vec![None; fields.len()];
    let mut long = Vec::new();
    for (place, (name, value)) in fields.iter().enumerate() {
        if is_long(value) {
            long.push((place, name, value));
        } else {
            keep(&mut kept[place], name, value, &mut left, usize::MAX);
        }
    }
    let mut waiting = long.len();
    for (place, name, value) in long {
        let share = left / waiting;
        waiting -= 1;
        keep(&mut kept[place], name, value, &mut left, share);
    }
    finish(fields, kept)
}

fn is_long(value: &Json) -> bool {
    match value {
        Json::String(text) => text.len() > SHORT_TEXT,
        Json::Array(items) => !items.is_empty(),
        Json::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

fn keep(place: &mut Option<Json>, name: &str, value: &Json, left: &mut usize, share: usize) {
    if is_mark(name) {
        return;
    }
    let name_bytes = name_bytes(name);
    let Some(room) = share.min(*left).checked_sub(name_bytes) else { return };
    let Some(summary) = summary(value, room) else { return };
    *left -= name_bytes + size(&summary, room).expect("a summary is no larger than its room");
    *place = Some(summary);
}

/// A name with its quotes, colon and comma.
fn name_bytes(name: &str) -> usize {
    size(&Json::String(name.to_owned()), usize::MAX).unwrap_or(usize::MAX / 2) + 2
}

fn finish(fields: &Map<String, Json>, kept: Vec<Option<Json>>) -> Map<String, Json> {
    let mut out = Map::new();
    let mut omitted = 0u64;
    for (name, value) in fields.keys().zip(kept) {
        match value {
            Some(value) => {
                out.insert(name.clone(), value);
            }
            None => omitted += 1,
        }
    }
    if omitted > 0 {
        out.insert("_omitted".to_owned(), omitted.into());
    }
    out
}

/// The fields at the paths, whole as long as they fit; then a summary of them.
fn pick(fields: &Map<String, Json>, paths: &[&[&str]], left: usize) -> Map<String, Json> {
    let mut left = left.saturating_sub(LEAST_OBJECT);
    let mut kept: Vec<Option<Json>> = vec![None; fields.len()];
    for (place, (name, value)) in fields.iter().enumerate() {
        let here = paths.iter().filter_map(|path| path.split_first()).filter(|(head, _)| *head == name);
        let below: Vec<&[&str]> = here.map(|(_, rest)| rest).collect();
        let Some(room) = left.checked_sub(name_bytes(name)).filter(|_| !below.is_empty() && !is_mark(name)) else {
            continue;
        };
        if let Some(chosen) = pick_field(value, &below, room) {
            left -= name_bytes(name) + size(&chosen, room).expect("what is chosen is no larger than its room");
            kept[place] = Some(chosen);
        }
    }
    finish(fields, kept)
}

fn pick_field(value: &Json, below: &[&[&str]], room: usize) -> Option<Json> {
    match value {
        Json::Object(inner) if below.iter().all(|path| !path.is_empty()) => {
            (room >= LEAST_OBJECT).then(|| Json::Object(pick(inner, below, room)))
        }
        _ if size(value, room).is_some() => Some(value.clone()),
        _ => summary(value, room),
    }
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
