//! Masks secrets in text that leaves the server: log lines of guests, error messages, problem documents.
//!
//! This is the second line of defence. Secrets that the platform hands out itself are known and can be
//! masked exactly; this crate catches what a guest or a remote service printed on its own. It therefore
//! prefers shapes that hardly ever occur by chance over broad guesses: a digest, an id or a metric name
//! that is masked by mistake makes a log useless, and people then switch the masking off.
//!
//! Invariants:
//! 1. Text without a secret comes back borrowed and unchanged; nothing is allocated for it.
//! 2. Keys decide by their whole name ([`keys`]), never by a part of it: `author`, `max_tokens` and
//!    `certainty` are not secrets.
//! 3. Masking twice gives the same as masking once.
//! 4. Work is linear in the length of the text, whatever a guest writes.
//!
//! Bad input: a value that is cut off (no closing quote, no end of a private key) is masked to the end of
//! the text, and a JSON tree that is deeper than any parser of ours accepts is masked below that depth.

use std::borrow::Cow;

use serde_json::Value;

mod keys;
mod text;
mod tokens;

/// What stands where a secret stood.
pub const PLACEHOLDER: &str = "[REDACTED]";

/// Deeper trees are not looked into but masked; serde_json's own parser stops at the same depth.
const MAX_DEPTH: usize = 128;

/// Mask every secret in a text.
pub fn scrub_text(text: &str) -> Cow<'_, str> {
    text::scrub(text)
}

/// Mask every secret in a JSON tree: values under a secret's key whole, all other strings as text.
pub fn scrub_json(value: &mut Value) {
    scrub_value(value, 0);
}

fn scrub_value(value: &mut Value, depth: usize) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = text::scrub(text) {
                *text = clean;
            }
        }
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => *value = mask(),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub_value(item, depth + 1)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if keys::is_secret(key) {
                    scrub_secret(field);
                } else {
                    scrub_value(field, depth + 1);
                }
            }
            // A secret can also be the key itself, for instance in a map from token to session.
            if fields.keys().any(|key| matches!(text::scrub(key), Cow::Owned(_))) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, field)| (text::scrub(&key).into_owned(), field))
                    .collect();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `null`, a truth value and an empty text say only whether there is a secret, which is worth reading.
fn scrub_secret(field: &mut Value) {
    match field {
        Value::Null | Value::Bool(_) => {}
        Value::String(text) if text.is_empty() => {}
        _ => *field = mask(),
    }
}

fn mask() -> Value {
    Value::String(PLACEHOLDER.to_owned())
}
