//! Requests: lines, headers and bodies, written to a connection as they are.
//!
//! Whatever arrives, the server answers in HTTP or closes the connection; it never answers 500, and what it refuses
//! it refuses with a problem document.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use noetl_tests::{Server, guest};

const WORDS: &[&[u8]] = &[
    b"GET ",
    b"POST ",
    b"DELETE ",
    b"/api/plugins",
    b"/api/execute",
    b"/api/catalog/register",
    b"/api/executions/",
    b":call",
    b"?tenant=",
    b"&limit=-1",
    b"\r\ncontent-length: 0\r\n",
    b"\r\ntransfer-encoding: chunked\r\n",
    b"%00",
    b"%2e%2e/",
    b"\r\n\r\n",
    b"{\"path\":",
    b"[[[[[[[[[[[[[[[[",
    b"\"\\ud800\"",
    b"1e999",
    b"null",
    b"\"content\":\"apiVersion: noetl.io/v2\\n",
    b"\"payload\":{",
    b"99999999999999999999",
    b"idempotency-key: ",
    b"\xff\xfe",
];

fn request(token: &str, line: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[test]
fn a_request_is_answered_or_refused() {
    let server = Server::start_with(&[
        ("NOETL_SERVER_HEADER_TIMEOUT_SECS", "1"),
        ("NOETL_SERVER_BODY_IDLE_SECS", "1"),
        ("NOETL_LOG_LEVEL", "error"),
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { server.admin().push(guest("echo"), "").await.is(201) });
    // The secret differs from run to run, what is kept must not: a placeholder stands for it.
    let (token, place) = (server.admin_token(), "TOKEN");
    let playbook = r#"{"content":"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: a\n  path: a\nworkflow:\n  - step: start\n    tool:\n      kind: noop\n"}"#;
    let seeds = vec![
        request(place, "POST /api/catalog/register", playbook),
        request(place, "POST /api/catalog/validate", playbook),
        request(
            place,
            "POST /api/execute?wait=1",
            r#"{"path":"a","payload":{"x":[1,"two",null]},"dedup":{"key":"k","window_secs":9}}"#,
        ),
        request(place, "POST /api/execute/batch", r#"{"executions":[{"path":"a"},{"path":"b"}]}"#),
        request(place, "POST /api/plugins/main/echo:call?capabilities=log,kv", "some input"),
        request(place, "POST /api/plugins/tools/noop:call", r#"{"result":{"a":1}}"#),
        request(place, "POST /api/plugins/main/echo:channel", r#"{"channel":"canary","version":"1.0.0","reason":"r"}"#),
        request(place, "POST /api/tokens", r#"{"name":"n","tenant":"acme","privilege":"user","expires_at_ms":1}"#),
        request(
            place,
            "POST /api/events",
            r#"{"execution_id":"1","event_type":"call.done","payload":{"command_id":"a#1"}}"#,
        ),
        request(place, "GET /api/executions?limit=5&status=running&cursor=abc", ""),
        request(place, "GET /api/replay/state?execution_id=1&at=2", ""),
    ];
    let address = server.url.trim_start_matches("http://").to_owned();
    super::fuzz("api", seeds, WORDS, |input| {
        let sent = replaced(input, place.as_bytes(), token.as_bytes());
        let mut stream = TcpStream::connect(&address).expect("the server accepts");
        let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(&sent);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        assert!(said.is_empty() || said.starts_with("HTTP/1."), "not HTTP: {said}");
        assert!(!said.starts_with("HTTP/1.1 500"), "the server broke: {said}");
    });
    runtime.block_on(async { server.admin().get("/health").await.is(200) });
}

fn replaced(input: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len() + to.len());
    let mut rest = input;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
