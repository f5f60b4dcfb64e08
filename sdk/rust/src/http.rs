//! HTTP requests to the hosts that `http.allow` of the manifest names and the operator permits, for plugins that hold
//! `http-client` (and `payload`, whose types it speaks in).
//!
//! ```no_run
//! # fn main() -> Result<(), noetl_sdk::Failure> {
//! let answer = noetl_sdk::http::get("https://example.com/rates").header("accept", "application/json").send()?;
//! let rates = answer.ok()?.text()?;
//! # Ok(()) }
//! ```
//!
//! A status of 400 or more is an answer, not an error; [`Response::ok`] makes it a failure. Redirects are followed only
//! where [`Request::follow`] says so, each with a request that is checked like the first.
//! Bodies are payloads: one that is only passed on never enters the guest.

use crate::Failure;
use crate::bindings::noetl::http_client::http_client::{self, HttpError};
use crate::payload::{self, Payload};
use crate::redirect;

/// A word to the host, which takes it off before anything is sent.
const TLS_HEADER: &str = "noetl-tls";

/// The largest body that is kept for a redirect.
const SENT_AGAIN: u64 = 1 << 20;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("request is not valid: {0}")]
    InvalidRequest(String),
    /// A host it may not reach, or a credential that may not go there: the host's sentence says where to look.
    #[error("not permitted: {0}")]
    Denied(String),
    #[error("no answer in time")]
    Timeout,
    #[error("answer of {0} bytes is larger than the plugin may take")]
    TooLarge(u64),
    #[error("request failed: {0}")]
    Failed(String),
    #[error(transparent)]
    Payload(#[from] payload::Error),
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::InvalidRequest(reason) => Self::InvalidRequest(reason),
            HttpError::Denied(reason) => Self::Denied(reason),
            HttpError::Timeout => Self::Timeout,
            HttpError::TooLarge(size) => Self::TooLarge(size),
            HttpError::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidRequest(_) => Self::new("invalid_request", error),
            Error::Denied(_) => Self::new("denied", error),
            Error::Timeout => Self::retryable("timeout", error),
            Error::TooLarge(_) => Self::new("too_large", error),
            Error::Failed(ref reason) => match kind_of(reason) {
                kind @ ("tls" | "redirect") => Self::new(kind, error),
                kind => Self::retryable(kind, error),
            },
            Error::Payload(error) => error.into(),
        }
    }
}

/// What failed, as it is said in front of the reason: `connect: ...`. A certificate that is not good is not better at the
/// next attempt, and redirects lead where they led; everything else may be.
fn kind_of(reason: &str) -> &'static str {
    let known = ["connect", "dns", "tls", "redirect"];
    let said = reason.split(':').next().unwrap_or_default();
    known.into_iter().find(|kind| *kind == said).unwrap_or("http_failed")
}

pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

pub fn put(url: impl Into<String>) -> Request {
    Request::new("PUT", url)
}

pub fn delete(url: impl Into<String>) -> Request {
    Request::new("DELETE", url)
}

/// A request being put together.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    request: http_client::Request,
    /// Why the body could not be made; told by `send`, so that building needs no `?`.
    broken: Option<Error>,
    redirects: u32,
}

impl Request {
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let request = http_client::Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout_ms: None,
        };
        Self { request, broken: None, redirects: 0 }
    }

    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.request.headers.push((name.into(), value.into()));
        self
    }

    /// Several at once, as [`secrets::headers`](crate::secrets::headers) gives them.
    pub fn headers(mut self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        self.request.headers.extend(headers);
        self
    }

    /// Bounded by the call's own `limits.wall_ms`.
    pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
        self.request.timeout_ms = Some(u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Follow up to this many redirects. Each hop must be allowed by `http.allow` like the first request. To another
    /// origin only harmless headers go along; `https` never becomes `http`. A body of up to 1 MiB is sent again where a
    /// server of the same origin asks for that (307, 308); otherwise such a redirect is the answer.
    pub fn follow(mut self, most: u32) -> Self {
        self.redirects = most;
        self
    }

    /// Do not look at the server's certificate. The host refuses that unless the operator permits it
    /// (`policy.insecure_tls`).
    pub fn unverified(self) -> Self {
        self.header(TLS_HEADER, "unverified")
    }

    /// Send a payload as it is, streamed by the host.
    pub fn body(mut self, body: Payload) -> Self {
        self.request.body = Some(body);
        self
    }

    /// Send bytes.
    pub fn bytes(mut self, media_type: &str, bytes: &[u8]) -> Self {
        match payload::from_bytes(media_type, bytes) {
            Ok(body) => self.request.body = Some(body),
            Err(error) => self.broken = Some(error.into()),
        }
        self.header("content-type", media_type)
    }

    /// Send a value as JSON.
    #[cfg(feature = "json")]
    pub fn json<T: serde::Serialize + ?Sized>(mut self, value: &T) -> Self {
        match serde_json::to_vec(value) {
            Ok(text) => self.bytes("application/json", &text),
            Err(error) => {
                self.broken = Some(Error::InvalidRequest(format!("the body cannot be written as JSON: {error}")));
                self
            }
        }
    }

    pub fn send(self) -> Result<Response, Error> {
        if let Some(error) = self.broken {
            return Err(error);
        }
        let Self { mut request, redirects, .. } = self;
        let mut hops = 0;
        loop {
            let (method, url, headers) = (request.method.clone(), request.url.clone(), request.headers.clone());
            let (has_body, timeout_ms) = (request.body.is_some(), request.timeout_ms);
            // What is sent is gone, so it is copied before.
            let again = match &request.body {
                Some(body) if redirects > 0 && body.size() <= SENT_AGAIN => Some(copy(body)?),
                _ => None,
            };
            let http_client::Response { status, headers: answered, body } = http_client::send(request)?;
            let answer = Response { status, headers: answered, body };
            if redirects == 0 {
                return Ok(answer);
            }
            let hop = redirect::next((&method, &url, &headers), has_body, status, answer.header("location"));
            let hop = hop.map_err(|redirect::Refused::Downgrade(to)| {
                Error::Denied(format!("`{url}` redirects to `{to}`, which is not encrypted"))
            })?;
            let Some(redirect::Hop { method, url, headers, body }) = hop else { return Ok(answer) };
            if body && again.is_none() {
                return Ok(answer);
            }
            if hops == redirects {
                return Err(Error::Failed(format!("redirect: more than {redirects} of them; the next is to `{url}`")));
            }
            hops += 1;
            let body = again.filter(|_| body);
            request = http_client::Request { method, url, headers, body, timeout_ms };
        }
    }
}

/// The same payload once more, without its bytes entering the guest.
fn copy(body: &Payload) -> Result<Payload, Error> {
    let mut writer = payload::Writer::new(&body.media_type());
    writer.splice(body, 0, body.size())?;
    Ok(writer.finish()?)
}

/// What came back.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Payload,
}

impl Response {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The answer itself below 400, else the failure `http_status`; retryable for 408, 429 and 5xx.
    pub fn ok(self) -> Result<Self, Failure> {
        if self.status < 400 {
            return Ok(self);
        }
        let message = format!("the server answered with status {}", self.status);
        Err(Failure { retryable: is_passing(self.status), ..Failure::new("http_status", message) })
    }

    pub fn bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.body.bytes()?)
    }

    pub fn text(&self) -> Result<String, Failure> {
        String::from_utf8(self.bytes()?)
            .map_err(|error| Failure::new("invalid_response", format_args!("the answer is not text: {error}")))
    }

    #[cfg(feature = "json")]
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.bytes()?).map_err(|error| {
            Failure::new("invalid_response", format_args!("the answer is not the JSON expected: {error}"))
        })
    }
}

/// Statuses that say "later", so that trying again can help.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429) || status >= 500
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_retryable() {
        assert!(is_passing(503) && is_passing(429) && is_passing(408));
        assert!(!is_passing(404) && !is_passing(401));
        assert!(Failure::from(Error::Timeout).retryable);
        assert!(!Failure::from(Error::Denied("example.com".into())).retryable);
    }

    #[test]
    fn what_failed_is_the_code() {
        let code = |reason: &str| {
            let failure = Failure::from(Error::Failed(reason.into()));
            (failure.code, failure.retryable)
        };
        assert_eq!(code("connect: refused"), ("connect".to_owned(), true));
        assert_eq!(code("dns: no such name"), ("dns".to_owned(), true));
        assert_eq!(code("tls: unknown issuer"), ("tls".to_owned(), false));
        assert_eq!(code("redirect: more than 5 of them"), ("redirect".to_owned(), false));
        assert_eq!(code("the connection was reset"), ("http_failed".to_owned(), true));
    }
}
