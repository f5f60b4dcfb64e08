//! `fetch` of JavaScript and its options, against servers of this machine: what is asked for is done, or refused by name.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use noetl_tests::Recorder;
use noetl_tests::recorder::Reply;
use serde_json::{Value, json};

use super::support::Desk;

const HEADER: &str = "// /// noetl\n// capabilities = [\"log\", \"payload\", \"http-client\"]\n// [http]\n// allow = [\"*\"]\n\
                      // ///\n";

/// What an expression that uses `url` comes to, or the name and message of what it throws.
fn fetched(url: &str, expression: &str) -> Value {
    let desk = Desk::reaching();
    let text = format!(
        "{HEADER}export async function call({{ url }}) {{\n  try {{\n    return await ({expression});\n  \
         }} catch (error) {{\n    return [error.name, error.message];\n  }}\n}}\n"
    );
    desk.write("fetching.js", &text);
    desk.noetl(&["plugin", "push", "fetching.js"]).ok();
    desk.call("main/fetching", &json!({ "url": url }).to_string())
}

/// The command is waited for on one thread while the server it asks answers on another.
#[tokio::test(flavor = "multi_thread")]
async fn headers_and_redirects_are_as_asked_for() {
    let moved = Recorder::start(|_| Reply::redirect("https://elsewhere.example/")).await;
    let expression = "Promise.all([{}, { redirect: 'manual' }, { redirect: 'error' }, { redirect: 'follow' }].map((more) => \
                      fetch(url, { headers: [['X-A', 'b'], ['x-a', 'c']], ...more }).then(({ status }) => status, \
                      ({ message }) => message.includes('`redirect`'))))";
    assert_eq!(fetched(&moved.url, expression), json!([302, 302, true, true]));
    assert_eq!(moved.asked().len(), 3, "the one that cannot be kept is not sent");
    assert_eq!(moved.last().header("x-a"), "b, c");
}

#[test]
fn a_signal_bounds_a_request_that_nobody_answers() {
    // Connections wait here and are never taken.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", silent.local_addr().expect("bound"));
    let started = Instant::now();
    let answer = fetched(&url, "fetch(url, { signal: AbortSignal.timeout(200) })");
    assert_eq!(answer[0], json!("TimeoutError"), "{answer}");
    assert!(started.elapsed() < Duration::from_secs(60), "it ends long before the host would end it");
    let answer = fetched(&url, "fetch(url, { signal: AbortSignal.any([AbortSignal.abort()]) })");
    assert_eq!(answer[0], json!("AbortError"), "{answer}");
    let waiting = "new Promise((done) => AbortSignal.timeout(50).addEventListener('abort', ({ type }) => done(type)))";
    assert_eq!(fetched(&url, waiting), json!("abort"));
}
