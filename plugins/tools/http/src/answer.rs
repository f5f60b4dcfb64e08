//! How an answer is shown. That depends on its size, its media type and what was asked for, never on its status.
//!
//! A body that is shown is handed on as it was written: JSON is checked and not read into values, so numbers and the order
//! of members stay what they were.

use std::collections::BTreeMap;

use http_common::ResponseType;
use noetl_sdk::Failure;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::charset::{self, essence};

/// A body up to this size is shown; a larger one stays where it is and is referred to.
const INLINE_BYTES: u64 = 8 << 20;

/// What the tool answers with.
#[derive(Debug, Serialize)]
pub struct Output {
    status_code: u16,
    headers: BTreeMap<String, Header>,
    size: u64,
    media_type: String,
    /// Whether the request may be made again if this answer is a failure.
    repeatable: bool,
    /// Where the engine looks for a failure that the answer is.
    #[serde(rename = "_failure", skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
    /// The body under the name playbooks know it by, and under its own.
    #[serde(skip_serializing_if = "Shown::is_no")]
    data: Shown,
    #[serde(skip_serializing_if = "Shown::is_no")]
    body: Shown,
}

#[derive(Debug, Serialize)]
struct Failed {
    code: &'static str,
    message: String,
    retryable: bool,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Header {
    Once(String),
    Repeated(Vec<String>),
}

/// How an answer's body appears in the output.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Shown {
    Json(Box<RawValue>),
    Text(String),
    /// There was none.
    Nothing,
    /// Large or binary: it is the call's body instead.
    No,
}

impl Shown {
    pub fn is_no(&self) -> bool {
        matches!(self, Shown::No)
    }
}

impl Output {
    pub fn new(status: u16, headers: Vec<(String, String)>, size: u64, media_type: String, body: Shown) -> Self {
        let mut grouped: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            grouped.entry(name.to_ascii_lowercase()).or_default().push(value);
        }
        let header = |mut values: Vec<String>| match values.pop() {
            Some(only) if values.is_empty() => Header::Once(only),
            last => Header::Repeated(values.into_iter().chain(last).collect()),
        };
        let headers = grouped.into_iter().map(|(name, values)| (name, header(values))).collect();
        let data = body.clone();
        Self { status_code: status, headers, size, media_type, repeatable: true, failure: None, data, body }
    }

    /// Whether another request may be made if this one failed.
    pub fn repeatable(self, repeatable: bool) -> Self {
        Self { repeatable, ..self }
    }

    /// A redirect that nobody asked to see is no answer: what is wanted is elsewhere. 304 says that it is not.
    pub fn without_redirect(self) -> Self {
        if !matches!(self.status_code, 300..=303 | 305..=399) {
            return self;
        }
        let to = match self.headers.get("location") {
            Some(Header::Once(to)) => format!("redirects to `{to}`"),
            _ => "redirects without saying where to".to_owned(),
        };
        let message = format!(
            "the server {to} with status {}, which is not followed: a body is sent again only within its origin, for 307 \
             and 308, and up to 1 MiB; write `follow_redirects: false` to have the redirect itself",
            self.status_code
        );
        Self { failure: Some(Failed { code: "redirect", message, retryable: false }), ..self }
    }
}

/// Whether a body of that size is looked at.
pub fn may_show(wanted: ResponseType, size: u64) -> bool {
    wanted != ResponseType::Binary && size <= INLINE_BYTES
}

/// The body as it was asked for. One that was to be JSON and is none is text in an answer that failed, since servers say
/// what is wrong in words, and a failure in one that did not.
pub fn show(wanted: ResponseType, status: u16, media_type: Option<&str>, bytes: Vec<u8>) -> Result<Shown, Failure> {
    if bytes.is_empty() {
        return Ok(if wanted == ResponseType::Text { Shown::Text(String::new()) } else { Shown::Nothing });
    }
    let Ok(text) = charset::text(media_type.unwrap_or_default(), bytes) else { return Ok(Shown::No) };
    let parses = match (wanted, media_type) {
        (ResponseType::Json, _) => true,
        (ResponseType::Auto, Some(media_type)) => is_json(media_type),
        // Of what nobody says anything a number or a word may be anything; an object or a list is meant.
        (ResponseType::Auto, None) => text.trim_start().starts_with(['{', '[']),
        _ => false,
    };
    if !parses {
        return Ok(Shown::Text(text));
    }
    match serde_json::from_str::<&RawValue>(text.trim()) {
        Ok(json) => Ok(Shown::Json(json.to_owned())),
        Err(error) if wanted == ResponseType::Json && status < 400 => {
            Err(Failure::new("invalid_response", format_args!("the answer of status {status} is not JSON: {error}")))
        }
        Err(_) => Ok(Shown::Text(text)),
    }
}

fn is_json(media_type: &str) -> bool {
    let essence = essence(media_type);
    matches!(essence.as_str(), "application/json" | "text/json") || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(wanted: ResponseType, media_type: &str, bytes: &[u8]) -> Option<String> {
        let media_type = Some(media_type).filter(|media_type| !media_type.is_empty());
        let shown = show(wanted, 200, media_type, bytes.to_vec()).expect("shown");
        (!shown.is_no()).then(|| serde_json::to_string(&shown).expect("serialisable"))
    }

    #[test]
    fn a_body_is_shown_as_what_it_is() {
        let auto = |media_type: &str, bytes: &[u8]| shown(ResponseType::Auto, media_type, bytes);
        assert_eq!(
            auto("application/json; charset=utf-8", b" [1.50, 12345678901234567890123]\n").as_deref(),
            Some("[1.50, 12345678901234567890123]")
        );
        assert_eq!(auto("application/problem+json", b"{}").as_deref(), Some("{}"));
        assert_eq!(auto("text/json", b"\xef\xbb\xbf{}").as_deref(), Some("{}"));
        assert_eq!(auto("", b" [1]").as_deref(), Some("[1]"));
        assert_eq!((auto("", b"1").as_deref(), auto("", b"[1").as_deref()), (Some("\"1\""), Some("\"[1\"")));
        assert_eq!(auto("text/plain; charset=latin1", b"\xe9").as_deref(), Some("\"é\""));
        assert_eq!(auto("application/json", b"not json").as_deref(), Some("\"not json\""));
        assert_eq!(auto("text/plain", b"[1]").as_deref(), Some("\"[1]\""));
        assert_eq!(auto("application/json", b"").as_deref(), Some("null"));
        assert_eq!(auto("text/plain", &[0xff]), None);
    }

    #[test]
    fn what_is_asked_for_decides() {
        assert_eq!(shown(ResponseType::Json, "text/plain", b"{\"a\":1}").as_deref(), Some("{\"a\":1}"));
        assert_eq!(shown(ResponseType::Text, "application/json", b"{}").as_deref(), Some("\"{}\""));
        assert_eq!(shown(ResponseType::Text, "text/plain", b"").as_deref(), Some("\"\""));
        let failed = show(ResponseType::Json, 200, Some("text/html"), b"<p>".to_vec()).expect_err("not JSON");
        assert_eq!(failed.code, "invalid_response");
        assert!(show(ResponseType::Json, 502, Some("text/html"), b"<p>".to_vec()).is_ok());
        assert!(may_show(ResponseType::Auto, INLINE_BYTES) && !may_show(ResponseType::Auto, INLINE_BYTES + 1));
        assert!(!may_show(ResponseType::Binary, 1));
    }

    #[test]
    fn a_redirect_that_is_not_followed_is_a_failure() {
        let failure = |status| {
            let headers = vec![("location".to_owned(), "/there".to_owned())];
            let output = Output::new(status, headers, 0, "text/plain".to_owned(), Shown::Nothing).without_redirect();
            serde_json::to_value(&output).expect("serialisable").get("_failure").cloned()
        };
        for status in [300, 301, 302, 303, 307, 308] {
            let failed = failure(status).expect("a failure");
            assert_eq!((&failed["code"], &failed["retryable"]), (&json!("redirect"), &json!(false)), "{status}");
            assert!(failed["message"].as_str().is_some_and(|text| text.contains("`/there`")), "{failed}");
        }
        assert_eq!((failure(200), failure(304), failure(404)), (None, None, None));
    }

    #[test]
    fn repeated_headers_become_a_list() {
        let headers = vec![
            ("Set-Cookie".to_owned(), "a".to_owned()),
            ("ETag".to_owned(), "e".to_owned()),
            ("set-cookie".to_owned(), "b".to_owned()),
        ];
        let output = Output::new(200, headers, 0, "text/plain".to_owned(), Shown::No);
        let shown: Value = serde_json::to_value(&output).expect("serialisable");
        assert_eq!(shown["headers"], json!({"etag": "e", "set-cookie": ["a", "b"]}));
        assert_eq!(shown.get("body"), None);
    }
}
