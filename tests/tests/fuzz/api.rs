//! Requests: lines, headers and bodies, written to a connection as they are.
//!
//! Whatever arrives, the server answers in HTTP or, where it is left waiting for the rest, closes the connection; it never
//! answers 500, and what it refuses it refuses with a problem document. The connection is left open for writing: a server
//! that sees its client leave may drop the request, and then nothing would be tried.

use std::io::{ErrorKind, Read as _, Write as _};
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

/// Connections at once: what is cut off is answered only when the server's patience is over.
const AT_ONCE: u64 = 16;
/// Far more than any request may take here; a server that keeps silent so long hangs.
const PATIENCE: Duration = Duration::from_secs(120);

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
    // In this order, and each with the status it gets before anything is changed in it.
    let seeds = [
        (201, request(place, "POST /api/catalog/register", playbook)),
        (200, request(place, "POST /api/catalog/validate", playbook)),
        (
            200,
            request(
                place,
                "POST /api/execute?wait=60",
                r#"{"path":"a","payload":{"x":[1,"two",null]},"dedup":{"key":"k","window_secs":9}}"#,
            ),
        ),
        (200, request(place, "POST /api/execute/batch", r#"{"executions":[{"path":"a"},{"path":"b"}]}"#)),
        (200, request(place, "POST /api/plugins/main/echo:call?capabilities=log,kv", "some input")),
        (200, request(place, "POST /api/plugins/tools/noop:call", r#"{"result":{"a":1}}"#)),
        (
            200,
            request(
                place,
                "POST /api/plugins/main/echo:channel",
                r#"{"channel":"canary","version":"1.0.0","reason":"r"}"#,
            ),
        ),
        (201, request(place, "POST /api/tokens", r#"{"name":"n","tenant":"acme","privilege":"user"}"#)),
        (400, request(place, "POST /api/tokens", r#"{"name":"n","tenant":"acme","expires_at_ms":1}"#)),
        (
            404,
            request(
                place,
                "POST /api/events",
                r#"{"execution_id":"1","event_type":"call.done","payload":{"command_id":"a#1"}}"#,
            ),
        ),
        (200, request(place, "GET /api/executions?limit=5&status=running", "")),
        (400, request(place, "GET /api/executions?limit=5&cursor=abc", "")),
        (404, request(place, "GET /api/replay/state?execution_id=1", "")),
    ];
    let address = server.url.trim_start_matches("http://").to_owned();
    let ask = |input: &[u8]| exchange(&address, &replaced(input, place.as_bytes(), token.as_bytes()));
    for (status, seed) in &seeds {
        let (asked, said) = (String::from_utf8_lossy(seed), ask(seed));
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{asked}\nwas answered with {said}");
        check(&said);
    }
    let seeds = seeds.map(|(_, seed)| seed);
    super::fuzz_at_once("api", AT_ONCE, &seeds, WORDS, |input| check(&ask(input)));
    runtime.block_on(async { server.admin().get("/health").await.is(200) });
}

/// All that the server says until it closes the connection.
fn exchange(address: &str, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time that is not zero");
    // The server may answer and close before it has read everything; what it said may then be lost.
    let _ = stream.write_all(sent);
    let mut said = Vec::new();
    if let Err(error) = stream.read_to_end(&mut said) {
        let silent = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!silent, "neither an answer nor an end: {}", String::from_utf8_lossy(sent));
    }
    String::from_utf8_lossy(&said).into_owned()
}

/// What holds for every answer. Bytes that are no request at all are refused before any of our code sees them, by a bare
/// status; what is ours has the id of a request.
fn check(said: &str) {
    if said.is_empty() {
        return;
    }
    let status: u16 = said.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok()).unwrap_or(0);
    assert!((100..600).contains(&status), "not HTTP: {said}");
    assert_ne!(status, 500, "the server broke: {said}");
    let head = said.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase();
    if !(400..500).contains(&status) {
        return;
    }
    if head.contains("\r\nx-request-id: ") {
        assert!(head.contains("\r\ncontent-type: application/problem+json"), "refused without a reason: {said}");
    } else {
        assert!(matches!(status, 400 | 414 | 431), "refused by nobody we know: {said}");
    }
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
