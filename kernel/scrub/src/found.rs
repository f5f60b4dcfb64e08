//! Secrets that a document shows in one place, masked in all its places.
//!
//! A value under `password` is a secret by its name; in a message of the same document, or under another name, it has
//! neither name nor shape. So a document is read twice: first for what is masked in it, then for that.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::{PLACEHOLDER, json, keys, text, values::Values};

/// Shorter values are not looked for elsewhere in a document.
const SHORTEST: usize = 4;

/// What a tree shows as secret.
#[derive(Debug, Default)]
pub struct Found(Vec<String>);

impl Found {
    /// Takes in what is masked in a tree.
    pub fn read(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.read_text(text),
            Value::Array(items) => items.iter().for_each(|item| self.read(item)),
            Value::Object(fields) => {
                for (key, field) in fields {
                    if keys::is_secret(key) {
                        self.take(field);
                    } else {
                        self.read(field);
                    }
                    self.keep_all(text::secrets(key));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn read_text(&mut self, text: &str) {
        self.keep_all(text::secrets(text));
        // A body is often JSON, whose texts may be written with escapes.
        if text.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(text)
        {
            self.read(&value);
        }
    }

    /// Everything below a secret's name is one.
    fn take(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.take_text(text),
            Value::Number(number) => self.0.push(number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.take(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.take(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The value, and of a header's the part behind its scheme: `Bearer x` is `x` elsewhere, and so is the password of
    /// `Basic x`.
    fn take_text(&mut self, text: &str) {
        // Words that say only whether there is a secret.
        if ["true", "false", "null", "none"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return;
        }
        self.keep(text);
        let Some((scheme, credential)) = text.split_once(' ') else { return };
        if !text::is_scheme(scheme) {
            return;
        }
        let credential = credential.trim();
        self.keep(credential);
        let pair = STANDARD.decode(credential).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        self.keep_all(pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password));
    }

    fn keep_all<'t>(&mut self, texts: impl IntoIterator<Item = &'t str>) {
        texts.into_iter().for_each(|text| self.keep(text));
    }

    /// What has the mask in it was masked before, and what is beside the mask was left to be read: `Bearer [REDACTED]` is
    /// no secret. Were it one, a document whose header was made of a masked text would lose the scheme in that text.
    fn keep(&mut self, text: &str) {
        if !text.contains(PLACEHOLDER) {
            self.0.push(text.to_owned());
        }
    }

    /// What masks all of it in a tree that is shown to a tenant, beside what is masked there anyway.
    pub fn into_mask(self, tenant: &str) -> impl Fn(&mut Value) + use<> {
        let values = Values::at_least(SHORTEST, self.0.iter().map(String::as_str));
        let tenant = tenant.to_owned();
        move |value: &mut Value| {
            crate::scrub_json_for(&tenant, value);
            if !values.is_empty() {
                json::walk(value, &|text| values.mask(text), &|_| false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_secret_in_one_place_is_masked_in_all() {
        let mut document = json!({
            "input": { "password": "hunter2", "keys": { "api_key": ["k-1234"] }, "pin": "1" },
            "headers": [{ "authorization": "Bearer plain-word" }, { "proxy-authorization": "Basic dTpvcGVuc2VzYW1l" }],
            "body": "{\"client_secret\": \"a\\\"b-c\"}",
            "said": ["hunter2!", "k-1234", "with plain-word", "u opensesame", "a\"b-c", "nothing", "aHVudGVyMg=="],
        });
        let mut found = Found::default();
        found.read(&document);
        found.into_mask("main")(&mut document);
        let said = document["said"].clone();
        assert_eq!(said[0], "[REDACTED]!");
        assert_eq!(said[5], "nothing");
        let text = said.to_string();
        for secret in ["k-1234", "plain-word", "opensesame", "b-c", "aHVudGVyMg"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        let once = document.clone();
        let mut again = Found::default();
        again.read(&document);
        again.into_mask("main")(&mut document);
        assert_eq!(document, once, "twice is once");
    }

    fn masked(mut document: Value) -> Value {
        let mut found = Found::default();
        found.read(&document);
        found.into_mask("main")(&mut document);
        document
    }

    /// The headers of every kind of credential, in the three ways they are written down.
    #[test]
    fn masking_twice_is_masking_once_however_a_header_is_written() {
        for (name, value) in [
            ("authorization", "Bearer 0123456789abcdef0123456789abcdef"),
            ("authorization", "Bearer plain-word"),
            ("Authorization", "Basic dTpvcGVuc2VzYW1l"),
            ("proxy-authorization", "Basic not-of-base64"),
            ("x-api-key", "k-0123456789abcdef"),
            ("x-api-key", "prefix.k-1234"),
        ] {
            let line = format!("{name}: {value}");
            let body = json!({ name: value }).to_string();
            let as_object = json!({ "headers": { name: value } });
            let as_objects = json!({ "headers": [{ name: value }], "said": value });
            let as_pairs = json!({ "ok": [[name, value]], "with": { "headers": [{ name: value }] } });
            let as_text = json!({ "line": line, "body": body, "said": value });
            for document in [as_object, as_objects, as_pairs, as_text] {
                let once = masked(document);
                assert_eq!(masked(once.clone()), once, "{name}: {value}");
            }
        }
    }

    /// What a play does: a header that is asked for comes masked, and is sent as it came.
    #[test]
    fn a_header_that_is_made_of_a_masked_text_leaves_the_text_as_it_is() {
        for (name, value) in [
            ("authorization", "Bearer 0123456789abcdef0123456789abcdef"),
            ("authorization", "Bearer plain-word"),
            ("authorization", "Basic dTpvcGVuc2VzYW1l"),
            ("x-api-key", "k-0123456789abcdef"),
        ] {
            let recorded = masked(json!({ "got": [[name, value]], "sent": [{ name: value }], "said": value }));
            assert!(!recorded.to_string().contains(value), "{recorded}");
            let given = &recorded["got"][0][1];
            let played = json!({ "got": recorded["got"], "sent": [{ name: given }], "said": recorded["said"] });
            assert_eq!(masked(played), recorded, "{name}: {value}");
        }
    }

    #[test]
    fn what_is_short_or_no_value_is_not_looked_for() {
        let mut document = json!({ "password": "abc", "token": "none", "secret": null, "said": "abc none null" });
        let mut found = Found::default();
        found.read(&document);
        found.into_mask("main")(&mut document);
        assert_eq!(document["said"], "abc none null");
    }
}
