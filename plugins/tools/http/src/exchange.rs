//! What to send and how to show what came back, without sending anything.
//!
//! Arguments that contradict each other are refused before anything leaves the machine. How an answer is shown depends
//! on its size, its media type and whether it is text, never on its status.

use std::collections::BTreeMap;

use noetl_sdk::Failure;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An answer up to this size is looked at; a larger one is passed on unread.
const INLINE_BYTES: u64 = 256 << 10;

/// The tool's options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    json: Option<Value>,
    text: Option<String>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    follow_redirects: Follow,
    /// Variables of the step, which its templates have used already.
    #[serde(default, rename = "input")]
    _input: Option<IgnoredAny>,
    /// The engine ends a call that takes longer.
    #[serde(default, rename = "timeout", alias = "timeout_seconds")]
    _timeout: Option<IgnoredAny>,
}

/// Whether to follow redirects, or how many at most.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Follow {
    Whether(bool),
    AtMost(u32),
}

impl Default for Follow {
    fn default() -> Self {
        Follow::Whether(false)
    }
}

/// Redirects followed when nobody says how many.
const USUAL_REDIRECTS: u32 = 5;
/// More are a loop.
const MOST_REDIRECTS: u32 = 20;

impl Follow {
    fn most(self) -> Result<u32, Failure> {
        match self {
            Follow::Whether(false) => Ok(0),
            Follow::Whether(true) => Ok(USUAL_REDIRECTS),
            Follow::AtMost(most @ 0..=MOST_REDIRECTS) => Ok(most),
            Follow::AtMost(more) => {
                Err(Failure::invalid_input(format_args!("`follow_redirects` is {more}; the most is {MOST_REDIRECTS}")))
            }
        }
    }
}

/// A request that makes sense.
#[derive(Debug, PartialEq)]
pub struct Plan {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub sent: Sent,
    pub timeout_ms: Option<u64>,
    pub redirects: u32,
}

/// What goes out with the request.
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

impl Arguments {
    pub fn plan(self, has_body: bool) -> Result<Plan, Failure> {
        let sent = match (self.json, self.text, has_body) {
            (None, None, false) => Sent::Nothing,
            (Some(value), None, false) => Sent::Text { media_type: "application/json", text: value.to_string() },
            (None, Some(text), false) => Sent::Text { media_type: "text/plain; charset=utf-8", text },
            (None, None, true) => Sent::Body,
            _ => return Err(Failure::invalid_input("send one of `json`, `text` and a body, not several")),
        };
        let usual = if sent == Sent::Nothing { "GET" } else { "POST" };
        let method = self.method.map_or_else(|| usual.to_owned(), |method| method.to_ascii_uppercase());
        let mut headers: Vec<_> = self.headers.into_iter().collect();
        if let Sent::Text { media_type, .. } = &sent
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("content-type".to_owned(), (*media_type).to_owned()));
        }
        let redirects = self.follow_redirects.most()?;
        Ok(Plan { method, url: self.url, headers, sent, timeout_ms: self.timeout_ms, redirects })
    }
}

/// What the tool answers with.
#[derive(Debug, PartialEq, Serialize)]
pub struct Output {
    status_code: u16,
    headers: BTreeMap<String, Header>,
    size: u64,
    media_type: String,
    /// The body under the name playbooks know it by, and under its own.
    #[serde(skip_serializing_if = "Inline::is_no")]
    data: Inline,
    #[serde(skip_serializing_if = "Inline::is_no")]
    body: Inline,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Header {
    Once(String),
    Repeated(Vec<String>),
}

/// How an answer's body appears in the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Inline {
    Json(Value),
    Text(String),
    /// Large or binary: it is the call's body instead.
    No,
}

impl Inline {
    fn is_no(&self) -> bool {
        *self == Inline::No
    }
}

impl Output {
    pub fn new(status: u16, headers: Vec<(String, String)>, size: u64, media_type: String, body: Inline) -> Self {
        let mut grouped: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            grouped.entry(name.to_ascii_lowercase()).or_default().push(value);
        }
        let header = |mut values: Vec<String>| match values.pop() {
            Some(only) if values.is_empty() => Header::Once(only),
            last => Header::Repeated(values.into_iter().chain(last).collect()),
        };
        let headers = grouped.into_iter().map(|(name, values)| (name, header(values))).collect();
        Self { status_code: status, headers, size, media_type, data: body.clone(), body }
    }
}

/// Whether an answer of that size is worth looking at.
pub fn may_inline(size: u64) -> bool {
    size <= INLINE_BYTES
}

/// JSON when the media type says so and it parses, text when it is UTF-8.
pub fn inline(media_type: &str, bytes: Vec<u8>) -> Inline {
    if is_json(media_type)
        && let Ok(value) = serde_json::from_slice(&bytes)
    {
        return Inline::Json(value);
    }
    String::from_utf8(bytes).map_or(Inline::No, Inline::Text)
}

fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan(arguments: Value, has_body: bool) -> Result<Plan, Failure> {
        serde_json::from_value::<Arguments>(arguments)?.plan(has_body)
    }

    #[test]
    fn the_method_follows_from_what_is_sent() {
        let method = |arguments, has_body| plan(arguments, has_body).expect("a plan").method;
        assert_eq!(method(json!({"url": "http://a/"}), false), "GET");
        assert_eq!(method(json!({"url": "http://a/", "text": "x"}), false), "POST");
        assert_eq!(method(json!({"url": "http://a/"}), true), "POST");
        assert_eq!(method(json!({"url": "http://a/", "method": "patch", "json": 1}), false), "PATCH");
    }

    #[test]
    fn a_content_type_that_is_given_wins() {
        let arguments =
            json!({"url": "http://a/", "json": {"a": 1}, "headers": {"Content-Type": "application/ld+json"}});
        let plan = plan(arguments, false).expect("a plan");
        assert_eq!(plan.headers, [("Content-Type".to_owned(), "application/ld+json".to_owned())]);
        assert_eq!(plan.sent, Sent::Text { media_type: "application/json", text: r#"{"a":1}"#.to_owned() });
    }

    #[test]
    fn redirects_are_followed_where_that_is_asked_for() {
        let most =
            |value: Value| plan(json!({"url": "http://a/", "follow_redirects": value}), false).map(|p| p.redirects);
        assert_eq!(plan(json!({"url": "http://a/"}), false).expect("a plan").redirects, 0);
        assert_eq!(most(json!(true)), Ok(USUAL_REDIRECTS));
        assert_eq!(most(json!(3)), Ok(3));
        assert!(most(json!(21)).is_err() && most(json!("yes")).is_err());
    }

    #[test]
    fn two_things_to_send_are_refused() {
        for (arguments, has_body) in [
            (json!({"url": "http://a/", "json": 1, "text": "x"}), false),
            (json!({"url": "http://a/", "json": 1}), true),
            (json!({"url": "http://a/", "text": "x"}), true),
        ] {
            assert_eq!(plan(arguments, has_body).expect_err("a contradiction").code, "invalid_input");
        }
    }

    #[test]
    fn an_unknown_option_is_refused() {
        assert!(plan(json!({"url": "http://a/", "time_out": 3}), false).is_err());
    }

    #[test]
    fn a_body_is_shown_as_what_it_is() {
        assert_eq!(inline("application/json; charset=utf-8", b"[1]".to_vec()), Inline::Json(json!([1])));
        assert_eq!(inline("application/problem+json", b"{}".to_vec()), Inline::Json(json!({})));
        assert_eq!(inline("application/json", b"not json".to_vec()), Inline::Text("not json".to_owned()));
        assert_eq!(inline("text/plain", b"[1]".to_vec()), Inline::Text("[1]".to_owned()));
        assert_eq!(inline("text/plain", vec![0xff]), Inline::No);
        assert!(may_inline(256 << 10) && !may_inline((256 << 10) + 1));
    }

    #[test]
    fn repeated_headers_become_a_list() {
        let headers = vec![
            ("Set-Cookie".to_owned(), "a".to_owned()),
            ("ETag".to_owned(), "e".to_owned()),
            ("set-cookie".to_owned(), "b".to_owned()),
        ];
        let output = Output::new(200, headers, 0, "text/plain".to_owned(), Inline::No);
        let shown = serde_json::to_value(&output).expect("serialisable");
        assert_eq!(shown["headers"], json!({"etag": "e", "set-cookie": ["a", "b"]}));
        assert_eq!(shown.get("body"), None);
    }
}
