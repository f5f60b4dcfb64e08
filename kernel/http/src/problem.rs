//! Problem documents (RFC 9457): the one form every error of the API has.
//!
//! `code` is stable and has a help page at `/errors/<code>`, which is also the `type`. `detail` says what was
//! wrong in this request. Everything a problem carries is scrubbed, because messages of guests and of remote
//! services end up in it: of what looks like a secret, and of the secrets of whoever reads it. Those of other tenants are
//! left alone: they cannot be in there but by the reader's own guess, which must not be confirmed.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use noetl_contract::Tenant;
use serde_json::{Map, Value, json};

use crate::auth::Caller;
use crate::help;

pub const MEDIA_TYPE: &str = "application/problem+json";

#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// Boxed, because a problem is the other side of every result here and should be small.
    extras: Box<Map<String, Value>>,
    headers: Vec<(HeaderName, HeaderValue)>,
    reader: Reader,
}

/// Who reads a problem.
#[derive(Debug, Clone, Default)]
pub enum Reader {
    /// Anybody: nothing that has secrets in it was done for them.
    #[default]
    Anybody,
    Tenant(Tenant),
    /// Works for all tenants.
    Operator,
}

impl Reader {
    pub fn of(caller: Option<&Caller>) -> Self {
        match caller {
            None => Self::Anybody,
            Some(caller) => caller.tenant().map_or(Self::Operator, |tenant| Self::Tenant(tenant.clone())),
        }
    }

    fn scrub(&self, value: &mut Value) {
        match self {
            Self::Anybody => noetl_scrub::scrub_json_by_shape(value),
            Self::Tenant(tenant) => noetl_scrub::scrub_json_for(tenant.as_str(), value),
            Self::Operator => noetl_scrub::scrub_json(value),
        }
    }
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            extras: Box::default(),
            headers: Vec::new(),
            reader: Reader::Anybody,
        }
    }

    /// For errors of other crates, which know their status as a number.
    pub fn of(status: u16, code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), code, detail)
    }

    pub fn bad_request(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// A field or parameter that is missing or wrong.
    pub fn invalid_field(code: &'static str, field: &str, detail: impl Into<String>) -> Self {
        Self::bad_request(code, detail).with("field", field)
    }

    pub fn unauthenticated() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "this needs a token: send `Authorization: Bearer <token>` with one that is known and has not expired",
        )
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    pub fn forbidden(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// Our own mistake or the disk's. The detail goes to the server's log, never to the caller.
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        tracing::error!(%detail, "a request failed inside of the server");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "something failed inside of the server; its log has the details under the request id",
        )
    }

    /// One more member of the document.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extras.insert(name.to_owned(), value.into());
        self
    }

    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same in other words, for what must not be repeated. A field that is not among these is not named either.
    pub fn retold(mut self, fields: &[&str], detail: impl Into<String>) -> Self {
        let named = self.extras.get("field").and_then(Value::as_str).unwrap_or_default();
        let top = named.split(['.', '[']).next().unwrap_or_default();
        if !fields.contains(&top) {
            self.extras.remove("field");
        }
        self.detail = detail.into();
        self
    }

    /// The same for this reader.
    pub fn read_by(mut self, reader: Reader) -> Self {
        self.reader = reader;
        self
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The document, with the id under which the server's log knows the request.
    pub fn document(&self, request_id: &str) -> Value {
        let mut extras = Value::Object((*self.extras).clone());
        self.reader.scrub(&mut extras);
        let mut detail = Value::from(self.detail.as_str());
        self.reader.scrub(&mut detail);
        let mut document = json!({
            "type": format!("/errors/{}", self.code),
            "title": help::title(self.code),
            "status": self.status.as_u16(),
            "detail": detail,
            "code": self.code,
            "request_id": request_id,
        });
        if let (Value::Object(document), Value::Object(extras)) = (&mut document, extras) {
            for (name, value) in extras {
                document.entry(name).or_insert(value);
            }
        }
        document
    }

    /// The document as a part of another answer, which has the id of the request already.
    pub fn as_part(&self) -> Value {
        let mut document = self.document("");
        if let Value::Object(members) = &mut document {
            members.retain(|name, _| name != "request_id");
        }
        document
    }

    pub fn respond(self, request_id: &str) -> Response {
        let text = self.document(request_id).to_string();
        let mut response = (self.status, [(header::CONTENT_TYPE, MEDIA_TYPE)], Body::from(text)).into_response();
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<noetl_contract::ids::InvalidId> for Problem {
    fn from(invalid: noetl_contract::ids::InvalidId) -> Self {
        Problem::bad_request("invalid_parameter", invalid.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_members_of_the_standard_and_ours() {
        let problem = Problem::invalid_field("invalid_parameter", "limit", "`limit` is not a number");
        assert_eq!(
            problem.document("r1"),
            json!({
                "type": "/errors/invalid_parameter", "title": help::title("invalid_parameter"), "status": 400,
                "detail": "`limit` is not a number", "code": "invalid_parameter", "request_id": "r1", "field": "limit",
            })
        );
    }

    #[test]
    fn extras_cannot_replace_the_members_of_the_standard() {
        let document = Problem::bad_request("invalid_body", "x").with("status", 200).document("r1");
        assert_eq!(document["status"], 400);
    }

    #[test]
    fn secrets_do_not_leave_in_a_problem() {
        let problem = Problem::bad_request("invalid_body", "sent Authorization: Bearer abc")
            .with("failure", json!({"password": "hunter2", "message": "key sk-abcdefgh1234"}));
        let text = problem.document("r1").to_string();
        assert!(!text.contains("abc\"") && !text.contains("hunter2") && !text.contains("sk-abc"), "{text}");
    }

    #[test]
    fn a_problem_is_without_the_secrets_of_its_reader_and_confirms_none_of_others() {
        noetl_scrub::known::learn_for("reader", "read-no-more");
        let detail = |reader: Reader| {
            let problem = Problem::bad_request("invalid_body", "said read-no-more").with("said", "read-no-more");
            let document = problem.read_by(reader).document("r1");
            (document["detail"].clone(), document["said"].clone())
        };
        let tenant = |name: &str| Reader::Tenant(Tenant::new(name).expect("valid"));
        for reader in [tenant("reader"), Reader::Operator] {
            assert_eq!(detail(reader), (json!("said [REDACTED]"), json!("[REDACTED]")));
        }
        for reader in [tenant("another"), Reader::Anybody] {
            assert_eq!(detail(reader), (json!("said read-no-more"), json!("read-no-more")));
        }
    }

    #[test]
    fn the_answer_has_the_media_type_and_the_status() {
        let response = Problem::unauthenticated().respond("r1");
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }
}
