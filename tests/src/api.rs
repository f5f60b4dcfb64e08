//! A client of the API that shows the whole answer when a test expected another one.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub what: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Api {
    pub fn new(base: &str, token: Option<String>) -> Self {
        // Fails only when a provider is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        Self { http, base: base.to_owned(), token }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let request = request.build().expect("a valid request");
        let what = format!("{} {}", request.method(), request.url());
        let response = self.http.execute(request).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.bytes().await.unwrap_or_else(|error| panic!("{what}: {error:?}")).to_vec();
        Answer { what, status, headers, bytes }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn post_bytes(&self, path: &str, body: Vec<u8>) -> Answer {
        self.send(self.request(Method::POST, path).body(body)).await
    }

    /// Push a component; `query` is empty or starts with `?`.
    pub async fn push(&self, component: Vec<u8>, query: &str) -> Answer {
        self.post_bytes(&format!("/api/plugins{query}"), component).await
    }

    pub async fn call(&self, path: &str, input: &str) -> Answer {
        self.post_bytes(&format!("/api/plugins/{path}:call"), input.as_bytes().to_vec()).await
    }

    /// The secret of a new token.
    pub async fn token_for(&self, tenant: &str, privilege: &str) -> String {
        let body = json!({"name": format!("test of {tenant}"), "tenant": tenant, "privilege": privilege});
        let answer = self.post("/api/tokens", body).await.is(201);
        answer.json()["secret"].as_str().expect("a secret").to_owned()
    }
}

impl Answer {
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} answered:\n{}", self.what, self.text());
        self
    }

    /// Expects a problem document with this status and code.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        let answer = self.is(status);
        assert_eq!(answer.header("content-type"), "application/problem+json", "{}", answer.what);
        let document = answer.json();
        assert_eq!(document["code"], code, "{} answered:\n{}", answer.what, answer.text());
        assert_eq!(document["status"], status, "{}", answer.what);
        assert_eq!(document["type"], format!("/errors/{code}"), "{}", answer.what);
        document
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{}: {error} in {}", self.what, self.text()))
    }

    /// A header's text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
