//! What a step says about a request, and the request it comes to, without sending anything.
//!
//! Options that contradict each other are refused before anything leaves the machine. One that nobody knows is passed over
//! and named in the log: playbooks have words of other engines, and a misspelt `timeout` must be found by somebody.

use std::time::Duration;

use noetl_sdk::{Failure, options};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::sent::{self, Sent};
use crate::text;

/// Every option by each of its names; `body_ref` is the call's own body by the time it is called.
const KNOWN: [&str; 25] = [
    "url",
    "endpoint",
    "method",
    "params",
    "query_params",
    "headers",
    "json",
    "body",
    "form",
    "data",
    "payload",
    "text",
    "body_ref",
    "timeout",
    "timeout_seconds",
    "timeout_ms",
    "follow_redirects",
    "allow_redirects",
    "verify_ssl",
    "verify",
    "verify_tls",
    "response_type",
    "auth",
    "credential",
    "retry_safe",
];

/// The tool's options.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    url: Option<String>,
    endpoint: Option<String>,
    method: Option<String>,
    params: Option<Value>,
    query_params: Option<Value>,
    headers: Option<Value>,
    json: Option<Value>,
    body: Option<Value>,
    form: Option<Value>,
    data: Option<Value>,
    payload: Option<Value>,
    text: Option<Value>,
    timeout: Option<Value>,
    timeout_seconds: Option<Value>,
    timeout_ms: Option<Value>,
    follow_redirects: Option<Value>,
    allow_redirects: Option<Value>,
    verify_ssl: Option<Value>,
    verify: Option<Value>,
    verify_tls: Option<Value>,
    response_type: Option<ResponseType>,
    auth: Option<Value>,
    credential: Option<Value>,
    /// Of the step's `spec`.
    retry_safe: Option<Value>,
}

/// How an answer is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseType {
    /// JSON where the answer says so, else text, else by reference.
    #[default]
    Auto,
    Json,
    Text,
    /// By reference, whatever it is.
    Binary,
}

/// A request that makes sense.
#[derive(Debug, PartialEq)]
pub struct Plan {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub sent: Sent,
    pub timeout: Option<Duration>,
    pub redirects: u32,
    /// Whether a redirect is the answer that is wanted.
    pub shows_redirects: bool,
    /// Whether the request may be made again although nobody knows what came of it.
    pub repeatable: bool,
    pub verified: bool,
    pub credential: Option<String>,
    pub response_type: ResponseType,
}

/// Methods that come to the same however often they are sent.
const REPEATABLE: [&str; 6] = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"];

/// Redirects followed when nobody says how many.
const USUAL_REDIRECTS: u32 = 5;
/// More are a loop.
const MOST_REDIRECTS: u32 = 20;

impl Options {
    pub fn read(arguments: &str) -> Result<Self, Failure> {
        Self::of("http", serde_json::from_str(arguments)?)
    }

    /// Options that are part of others; `tool` is who passes over those that nobody knows.
    pub fn of(tool: &str, mut given: Map<String, Value>) -> Result<Self, Failure> {
        options::keep_known(tool, &mut given, &KNOWN);
        Ok(serde_json::from_value(Value::Object(given))?)
    }

    /// `has_body`: the call has a body of its own, which is sent by reference.
    pub fn plan(self, has_body: bool) -> Result<Plan, Failure> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let url = given(self.url).or(given(self.endpoint));
        let url = url.ok_or_else(|| Failure::invalid_input("`url` is missing: where to send the request"))?;
        let mut headers = headers(self.headers)?;
        let method = given(self.method).map(|method| method.trim().to_ascii_uppercase());
        let bodies = [
            ("json", self.json),
            ("body", self.body),
            ("form", self.form),
            ("data", self.data),
            ("payload", self.payload),
            ("text", self.text),
        ];
        let outgoing = sent::choose(bodies, has_body, method.as_deref(), &headers)?;
        let usual = if outgoing.sent == Sent::Nothing { "GET" } else { "POST" };
        let method = method.unwrap_or_else(|| usual.to_owned());
        if let Sent::Text { media_type, .. } = &outgoing.sent
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            headers.push(("content-type".to_owned(), (*media_type).to_owned()));
        }
        let params = self.params.or(self.query_params);
        let url = text::with_query(url.trim(), outgoing.query.as_ref(), params.as_ref())?;
        let redirects = redirects(self.follow_redirects.or(self.allow_redirects))?;
        let verified = flag("verify_ssl", self.verify_ssl.or(self.verify).or(self.verify_tls))?.unwrap_or(true);
        Ok(Plan {
            repeatable: flag("retry_safe", self.retry_safe)?.unwrap_or(REPEATABLE.contains(&method.as_str())),
            method,
            headers,
            sent: outgoing.sent,
            timeout: timeout(self.timeout_ms, self.timeout_seconds.or(self.timeout))?,
            redirects,
            shows_redirects: redirects == 0,
            // Without TLS there is no certificate to be looked at, and nothing that would need to be permitted.
            verified: verified || !is_https(&url),
            credential: match options::alias("auth", self.auth.as_ref())? {
                Some(alias) => Some(alias),
                None => options::alias("credential", self.credential.as_ref())?,
            },
            response_type: self.response_type.unwrap_or_default(),
            url,
        })
    }
}

/// Whether a certificate belongs to the address; whatever is not plain HTTP counts, since the host decides what it takes.
fn is_https(url: &str) -> bool {
    !url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
}

/// An object, or the JSON of one. A value that is a map or a list is its JSON: what a template with `tojson` gives arrives
/// as the value itself.
fn headers(given: Option<Value>) -> Result<Vec<(String, String)>, Failure> {
    let given = match given {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given,
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::String(text)) => serde_json::from_str(&text)
            .map_err(|_| Failure::invalid_input(format_args!("`headers` is an object and not `{text}`")))?,
        Some(other) => return Err(Failure::invalid_input(format_args!("`headers` is an object and not `{other}`"))),
    };
    // How a body is packed for its way is between the host and the server.
    let is_ours = |name: &str| name.eq_ignore_ascii_case("accept-encoding");
    let given = given.into_iter().filter(|(name, value)| !value.is_null() && !is_ours(name));
    Ok(given.map(|(name, value)| (name, text::scalar(&value).unwrap_or_else(|| value.to_string()))).collect())
}

/// Milliseconds, or seconds; both as numbers or as text, which templates give.
fn timeout(milliseconds: Option<Value>, seconds: Option<Value>) -> Result<Option<Duration>, Failure> {
    let (name, given, unit) = match (milliseconds, seconds) {
        (Some(given), _) if !given.is_null() => ("timeout_ms", given, 0.001),
        (_, Some(given)) if !given.is_null() => ("timeout", given, 1.0),
        _ => return Ok(None),
    };
    let time = match &given {
        Value::Number(number) => number.as_f64().map(|number| number * unit),
        Value::String(text) => text::seconds(text, unit),
        _ => None,
    };
    let time = time.filter(|time| *time > 0.0).and_then(|time| Duration::try_from_secs_f64(time).ok());
    let wrong =
        || Failure::invalid_input(format_args!("`{name}` is `{given}`, which is not a time; write 30 or \"30s\""));
    time.map(Some).ok_or_else(wrong)
}

fn redirects(given: Option<Value>) -> Result<u32, Failure> {
    let given = given.unwrap_or(Value::Null);
    if let Some(number) = given.as_u64() {
        return u32::try_from(number).ok().filter(|number| *number <= MOST_REDIRECTS).ok_or_else(|| {
            Failure::invalid_input(format_args!("`follow_redirects` is {number}; the most is {MOST_REDIRECTS}"))
        });
    }
    Ok(if flag("follow_redirects", Some(given))?.unwrap_or(true) { USUAL_REDIRECTS } else { 0 })
}

/// A flag, also in the words templates give.
fn flag(name: &str, given: Option<Value>) -> Result<Option<bool>, Failure> {
    let word = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Bool(flag)) => return Ok(Some(flag)),
        Some(Value::String(text)) => text.trim().to_ascii_lowercase(),
        Some(other) => other.to_string(),
    };
    match word.as_str() {
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        "" => Ok(None),
        _ => Err(Failure::invalid_input(format_args!("`{name}` is `{word}`; write true or false"))),
    }
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
