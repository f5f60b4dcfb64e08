//! Requests and answers, without the library they travel by.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

pub(super) type Request = hyper::Request<hyper::body::Incoming>;
pub(super) type Response = hyper::Response<Full<Bytes>>;

/// A request, read whole.
pub(super) struct Ask {
    pub method: String,
    pub path: String,
    query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

impl Ask {
    pub async fn read(request: Request) -> Result<Self, String> {
        let (head, body) = request.into_parts();
        let text = head.uri.query().unwrap_or_default();
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text).map_err(|error| error.to_string())?;
        let headers = head
            .headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
        Ok(Self {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: pairs.into_iter().collect(),
            headers: headers.collect(),
            body: body.collect().await.map_err(|error| error.to_string())?.to_bytes(),
        })
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    /// A number of the query; the usual one when it is missing or is none.
    pub fn number(&self, name: &str, usual: u64) -> u64 {
        self.text(name).and_then(|text| text.trim().parse().ok()).unwrap_or(usual)
    }

    pub fn float(&self, name: &str, usual: f64) -> f64 {
        self.text(name).and_then(|text| text.trim().parse().ok()).filter(|n: &f64| n.is_finite()).unwrap_or(usual)
    }

    pub fn query(&self) -> &BTreeMap<String, String> {
        &self.query
    }
}

pub(super) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl Reply {
    pub fn json(value: &Value) -> Self {
        Self::text("application/json", value.to_string())
    }

    pub fn text(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: vec![("content-type", media_type.to_owned())], body: body.into() }
    }

    pub fn error(status: u16, detail: &str) -> Self {
        Self { status, ..Self::json(&json!({"detail": detail})) }
    }

    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub fn into_response(self) -> Response {
        let mut response = hyper::Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Full::from(self.body)).expect("a status and headers of our own")
    }
}
