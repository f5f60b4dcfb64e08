//! JSON in one form, and its checksum.
//!
//! Sorted keys (by their bytes), no white space, numbers and text as `serde_json` writes them. Two values that are
//! equal have the same text, whoever made them and in whatever order.

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

pub const ALGORITHM: &str = "sha256";

/// The sha256 of the canonical text, in lower-case hexadecimal.
pub fn checksum(value: &Json) -> String {
    hex::encode(Sha256::digest(text(value).as_bytes()))
}

pub fn text(value: &Json) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Json, out: &mut String) {
    match value {
        Json::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Json::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (place, (name, field)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push(':');
                write(field, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_of_keys_and_white_space_do_not_count() {
        let one: Json = serde_json::from_str(r#"{ "b": [1, {"y": null, "x": "é\n"}], "a": 1.5 }"#).expect("JSON");
        let other = json!({"a": 1.5, "b": [1, {"x": "é\n", "y": null}]});
        assert_eq!(text(&one), r#"{"a":1.5,"b":[1,{"x":"é\n","y":null}]}"#);
        assert_eq!(checksum(&one), checksum(&other));
        assert_ne!(checksum(&one), checksum(&json!({"a": 1.5})));
    }

    #[test]
    fn a_key_is_quoted_like_any_text() {
        assert_eq!(text(&json!({"a\"b": 1})), r#"{"a\"b":1}"#);
    }
}
