//! The HTTP client of the command: finds the server and the token, sends, and turns a problem document into a
//! failure that says what to do next.
//!
//! Invariants:
//! 1. The administrator's token found in the data folder is sent to this machine only. A server elsewhere gets
//!    the token it was given a `--token` (or `NOETL_TOKEN`) for, and none otherwise.
//! 2. An answer that is not a problem document still becomes a failure with the status and the first of its text.
//! 3. Redirects are not followed: the API has none, so one means that something else answered.
//!
//! There is no overall time limit, because a call may rightly take as long as its plugin's limits say; connecting
//! has one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde_json::Value;

use crate::failure::{Exit, Failure, Outcome};

pub const DEFAULT_SERVER: &str = "http://127.0.0.1:8082";
/// Written into the data folder by a running server.
pub const SERVER_FILE: &str = "server.json";
/// The administrator's token, made by the server at its first start.
pub const TOKEN_FILE: &str = "admin.token";

/// Options as `(name, value)`; absent values are left out.
pub type Query<'a> = &'a [(&'a str, Option<&'a str>)];

#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<HeaderValue>,
    /// Why there is no token, for the message of a 401.
    token_hint: String,
}

/// What the command line says about the server; what is missing is looked up in the data folder.
#[derive(Debug, Clone)]
pub struct Target {
    pub data: PathBuf,
    pub server: Option<String>,
    pub token: Option<String>,
}

impl Client {
    pub fn new(target: &Target) -> Outcome<Self> {
        let base = server_url(target)?;
        let (token, token_hint) = find_token(target, &base)?;
        // Fails only when a provider is already installed, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("noetl/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::failed(format!("set up the HTTP client: {}", chain(&error))))?;
        Ok(Self { http, base, token, token_hint })
    }

    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// A request with the token attached.
    pub fn request(&self, method: Method, path: &str, query: Query<'_>) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(path);
        let given = query.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
        let given: Vec<_> = given.collect();
        if !given.is_empty() {
            url.query_pairs_mut().extend_pairs(given);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.clone()),
            None => request,
        }
    }

    /// Sends, and answers only with a success.
    pub async fn send(&self, request: RequestBuilder) -> Outcome<Response> {
        let response = request.send().await.map_err(|error| self.broken(&error))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refused(response).await) }
    }

    pub async fn get(&self, path: &str, query: Query<'_>) -> Outcome<Value> {
        let response = self.send(self.request(Method::GET, path, query)).await?;
        self.json(response).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Outcome<Value> {
        let response = self.send(self.request(Method::POST, path, &[]).json(body)).await?;
        self.json(response).await
    }

    pub async fn delete(&self, path: &str, query: Query<'_>) -> Outcome<Value> {
        let response = self.send(self.request(Method::DELETE, path, query)).await?;
        self.json(response).await
    }

    /// The body as JSON; an empty one is null.
    pub async fn json(&self, response: Response) -> Outcome<Value> {
        let bytes = response.bytes().await.map_err(|error| self.broken(&error))?;
        if bytes.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Failure::failed(format!("{} did not answer with JSON: {error}", self.base())))
    }

    pub fn broken(&self, error: &reqwest::Error) -> Failure {
        let reason = chain(error);
        if error.is_connect() || error.is_timeout() {
            return Failure::new(Exit::Unreachable, format!("no server answers at {}: {reason}", self.base()))
                .next("start one with `noetl serve`, or name another with --server");
        }
        Failure::new(Exit::Unreachable, format!("the connection to {} broke: {reason}", self.base()))
    }

    async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let is_problem = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.contains("json"));
        let body = response.bytes().await.unwrap_or_default();
        let problem = is_problem.then(|| serde_json::from_slice::<Value>(&body).ok()).flatten();
        let Some(problem) = problem else {
            let text: String = String::from_utf8_lossy(&body).chars().take(300).collect();
            let message = format!("{} answered {status} without a problem document: {text}", self.base());
            return Failure::new(exit_of(status.as_u16(), ""), message)
                .next("check that --server names a noetl server");
        };
        self.failure_of(status.as_u16(), problem)
    }

    /// Renders a problem document.
    fn failure_of(&self, status: u16, problem: Value) -> Failure {
        let code = problem["code"].as_str().unwrap_or_default().to_owned();
        let message = [&problem["detail"], &problem["title"]]
            .into_iter()
            .find_map(|field| field.as_str().filter(|text| !text.is_empty()))
            .map_or_else(|| format!("the server answered {status}"), str::to_owned);
        let message = match problem["failure"].as_object() {
            Some(failure) if code == "plugin_failure" => plugin_failure(failure, &message),
            _ => message,
        };
        let mut failure = Failure::new(exit_of(status, &code), message);
        failure.help = problem["type"]
            .as_str()
            .filter(|page| page.starts_with('/'))
            .and_then(|page| self.base.join(page).ok())
            .map(String::from);
        failure.next = match (status, code.as_str()) {
            (401, _) => Some(self.token_hint.clone()),
            (403, "forbidden_privilege" | "reserved_path" | "ring_too_high") => {
                Some("use a token with more privilege: `noetl token create --privilege ...`, then --token".to_owned())
            }
            (403, "forbidden_tenant" | "foreign_tenant") => Some("use a token of the tenant that owns it".to_owned()),
            _ => None,
        };
        failure.problem = Some(Box::new(problem));
        failure
    }
}

fn plugin_failure(failure: &serde_json::Map<String, Value>, detail: &str) -> String {
    let text = |name: &str| failure.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let retry = if failure.get("retryable").and_then(Value::as_bool) == Some(true) { "; a retry can help" } else { "" };
    match (text("code"), text("message")) {
        (code, message) if message.is_empty() => format!("{detail} ({code}{retry})"),
        (code, message) => format!("the plugin answered with a failure: {message} ({code}{retry})"),
    }
}

/// The exit code that a status and a problem code mean.
fn exit_of(status: u16, code: &str) -> Exit {
    match (status, code) {
        (_, "plugin_failure") => Exit::PluginFailure,
        (_, "needs_grant") => Exit::Conflict,
        (401 | 403, _) => Exit::Denied,
        (404, _) => Exit::NotFound,
        (409 | 412, _) => Exit::Conflict,
        _ => Exit::Failed,
    }
}

fn server_url(target: &Target) -> Outcome<Url> {
    let text = match &target.server {
        Some(server) => server.clone(),
        None => running_server(&target.data).unwrap_or_else(|| DEFAULT_SERVER.to_owned()),
    };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        Failure::usage(format!("`{text}` is not the address of a server"))
            .next(format!("use a form such as {DEFAULT_SERVER}"))
    })
}

/// Where the server of this data folder says it listens.
fn running_server(data: &Path) -> Option<String> {
    let text = std::fs::read_to_string(data.join(SERVER_FILE)).ok()?;
    Some(serde_json::from_str::<Value>(&text).ok()?["url"].as_str()?.to_owned())
}

fn find_token(target: &Target, base: &Url) -> Outcome<(Option<HeaderValue>, String)> {
    if let Some(token) = &target.token {
        let hint =
            "the token given with --token or NOETL_TOKEN is not valid here: make another with `noetl token create`";
        return Ok((Some(bearer(token)?), hint.to_owned()));
    }
    if !is_this_machine(base) {
        let hint = "give a token of that server with --token or NOETL_TOKEN; \
                    the one in the data folder is sent to this machine only";
        return Ok((None, hint.to_owned()));
    }
    let file = target.data.join(TOKEN_FILE);
    match std::fs::read_to_string(&file) {
        Ok(token) => {
            let hint = format!(
                "the token in {} is not one of this server: is --data the folder it was started with?",
                file.display()
            );
            Ok((Some(bearer(token.trim())?), hint))
        }
        Err(error) => {
            let hint = format!(
                "no token was found ({}: {error}): name the server's data folder with --data, or give --token",
                file.display()
            );
            Ok((None, hint))
        }
    }
}

fn bearer(token: &str) -> Outcome<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Failure::usage("the token has characters that no token has"))?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The error and what caused it, once each: the outermost text of the HTTP crate repeats the address.
fn chain(error: &dyn std::error::Error) -> String {
    let mut parts = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        parts.push(cause.to_string());
        next = cause.source();
    }
    parts.dedup();
    if parts.is_empty() { error.to_string() } else { parts.join(": ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(data: &Path, server: Option<&str>) -> Target {
        Target { data: data.to_owned(), server: server.map(str::to_owned), token: None }
    }

    #[test]
    fn the_running_server_of_the_folder_is_found() {
        let folder = tempfile::tempdir().expect("folder");
        assert_eq!(server_url(&target(folder.path(), None)).expect("url").as_str(), format!("{DEFAULT_SERVER}/"));
        std::fs::write(folder.path().join(SERVER_FILE), r#"{"url":"http://127.0.0.1:9","pid":1}"#).expect("write");
        assert_eq!(server_url(&target(folder.path(), None)).expect("url").port(), Some(9));
        assert!(server_url(&target(folder.path(), Some("ftp://x"))).is_err());
    }

    #[test]
    fn the_token_of_the_folder_never_leaves_this_machine() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join(TOKEN_FILE), "noetl_secret\n").expect("write");
        let token = |server: &str| {
            let target = target(folder.path(), Some(server));
            find_token(&target, &server_url(&target).expect("url")).expect("token").0
        };
        assert_eq!(token("http://127.0.0.1:1").expect("sent"), "Bearer noetl_secret");
        assert_eq!(token("http://[::1]:1").expect("sent"), "Bearer noetl_secret");
        assert!(token("http://localhost:1").is_some());
        assert!(token("https://noetl.example.com").is_none());
        assert!(token("http://127.0.0.1.example.com").is_none());
    }

    #[test]
    fn a_problem_document_decides_the_exit_code() {
        let folder = tempfile::tempdir().expect("folder");
        let client = Client::new(&target(folder.path(), Some("http://127.0.0.1:1"))).expect("client");
        let failure = client.failure_of(
            422,
            json!({ "type": "/errors/plugin_failure", "code": "plugin_failure", "detail": "d",
                    "failure": { "code": "invalid_input", "message": "no such city", "retryable": false } }),
        );
        assert_eq!(failure.exit, Exit::PluginFailure);
        assert!(failure.message.contains("no such city") && failure.message.contains("invalid_input"));
        assert_eq!(failure.help.as_deref(), Some("http://127.0.0.1:1/errors/plugin_failure"));
        for (status, code, exit) in [
            (401, "unauthorized", Exit::Denied),
            (403, "forbidden", Exit::Denied),
            (404, "not_found", Exit::NotFound),
            (409, "version_taken", Exit::Conflict),
            (403, "needs_grant", Exit::Conflict),
            (500, "trap", Exit::Failed),
        ] {
            assert_eq!(client.failure_of(status, json!({ "code": code })).exit, exit, "{status} {code}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_as_such() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("port").local_addr().expect("address");
        let folder = tempfile::tempdir().expect("folder");
        let client = Client::new(&target(folder.path(), Some(&format!("http://{free}")))).expect("client");
        let failure = client.get("/health", &[]).await.expect_err("nobody listens");
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.message.contains("refused"), "{failure}");
    }
}
