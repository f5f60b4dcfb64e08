//! What goes out with a request: one of six options, or the call's own body.
//!
//! `data` and `payload` are what older playbooks call both a body and a query: an object is JSON unless the content type
//! says that it is a form, and with `GET` and `HEAD` it is the query, since servers pass over the body of those. Whoever
//! means a body there says `json` or `body`.

use noetl_sdk::Failure;
use serde_json::Value;

use crate::text;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const PLAIN: &str = "text/plain; charset=utf-8";

/// The body of a request.
#[derive(Debug, PartialEq)]
pub enum Sent {
    Nothing,
    Text {
        media_type: &'static str,
        text: String,
    },
    /// The call's own body, by reference.
    Body,
}

/// A body, or what goes into the query instead.
pub struct Outgoing {
    pub sent: Sent,
    pub query: Option<Value>,
}

pub fn choose(
    bodies: [(&'static str, Option<Value>); 6],
    has_body: bool,
    method: Option<&str>,
    headers: &[(String, String)],
) -> Result<Outgoing, Failure> {
    let mut given =
        bodies.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_null())?)));
    let one = given.next();
    if given.next().is_some() || (has_body && one.is_some()) {
        let text = "send one of `json`, `body`, `form`, `data`, `payload`, `text` and `body_ref`, not several";
        return Err(Failure::invalid_input(text));
    }
    let Some((name, value)) = one else {
        return Ok(Outgoing { sent: if has_body { Sent::Body } else { Sent::Nothing }, query: None });
    };
    let is_loose = matches!(name, "data" | "payload");
    if is_loose && value.is_object() && matches!(method, Some("GET" | "HEAD")) {
        return Ok(Outgoing { sent: Sent::Nothing, query: Some(value) });
    }
    let says_form = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type") && value.trim_start().to_ascii_lowercase().starts_with(FORM)
    });
    let (media_type, text) = match (name, &value) {
        ("form", Value::String(text)) => (FORM, text.clone()),
        ("form", fields) => (FORM, text::encoded(&text::pairs("form", fields)?)),
        ("json", value) => (JSON, value.to_string()),
        (_, Value::Object(_)) if is_loose && says_form => (FORM, text::encoded(&text::pairs(name, &value)?)),
        ("text", value) => (PLAIN, text::scalar(value).unwrap_or_else(|| value.to_string())),
        (_, Value::String(text)) if is_json(text) => (JSON, text.clone()),
        (_, Value::String(text)) => (PLAIN, text.clone()),
        (_, value) => (JSON, value.to_string()),
    };
    Ok(Outgoing { sent: Sent::Text { media_type, text }, query: None })
}

/// Text that somebody wrote as JSON: an object or a list.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}
