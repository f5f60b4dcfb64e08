//! Masking in a JSON tree, whatever decides what is masked.

use std::borrow::Cow;

use serde_json::Value;

use crate::PLACEHOLDER;

/// Deeper trees are not looked into but masked; serde_json's own parser stops at the same depth.
const MAX_DEPTH: usize = 128;

type Mask<'m> = &'m dyn for<'t> Fn(&'t str) -> Cow<'t, str>;

/// Masks what `is_secret` says of a field's name, whole, and all other texts with `mask`; names and numbers too.
pub fn walk(value: &mut Value, mask: Mask<'_>, is_secret: &dyn Fn(&str) -> bool) {
    below(value, mask, is_secret, 0);
}

fn below(value: &mut Value, mask: Mask<'_>, is_secret: &dyn Fn(&str) -> bool, depth: usize) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(clean) = mask(text) {
                *text = clean;
            }
        }
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => *value = masked(),
        Value::Array(items) => items.iter_mut().for_each(|item| below(item, mask, is_secret, depth + 1)),
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if is_secret(key) {
                    hide(field);
                } else {
                    below(field, mask, is_secret, depth + 1);
                }
            }
            // A secret can also be the key itself, for instance in a map from token to session.
            if fields.keys().any(|key| matches!(mask(key), Cow::Owned(_))) {
                *fields =
                    std::mem::take(fields).into_iter().map(|(key, field)| (mask(&key).into_owned(), field)).collect();
            }
        }
        Value::Number(number) => {
            if let Cow::Owned(clean) = mask(&number.to_string()) {
                *value = Value::String(clean);
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// `null`, a truth value and an empty text say only whether there is a secret, which is worth reading.
fn hide(field: &mut Value) {
    match field {
        Value::Null | Value::Bool(_) => {}
        Value::String(text) if text.is_empty() => {}
        _ => *field = masked(),
    }
}

fn masked() -> Value {
    Value::String(PLACEHOLDER.to_owned())
}
