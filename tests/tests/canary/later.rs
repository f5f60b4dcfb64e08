//! What a host kept of an earlier request, and what data can have in it that only looks like a placeholder.

use noetl_tests::Api;
use reqwest::Method;
use serde_json::{Value, json};

use crate::echo::Echo;
use crate::planted::PLANTED;
use crate::search::Search;
use crate::{look_at, plant, server, ways};

/// Runs steps to their end; the execution and its output.
async fn result(api: &Api, path: &str, steps: Value, payload: Value) -> (String, Value) {
    let text = ways::playbook(path, steps);
    let answer = api.send(api.request(Method::POST, "/api/catalog/register").body(text)).await;
    assert!(answer.status < 300, "{path}: {}", answer.text());
    let done = api.post("/api/execute?wait=60", json!({"path": path, "payload": payload})).await.is(200).json();
    assert_eq!(done["status"], "completed", "{done}");
    (done["execution_id"].as_str().expect("an id").to_owned(), done["output"].clone())
}

/// A host that keeps what it was sent gives it to a later request, which has no secret in it: neither the result, nor what
/// is kept by reference, nor the code of a step sees it.
#[tokio::test]
async fn a_secret_that_a_host_kept_is_in_no_later_answer() {
    let (echo, server) = (Echo::start().await, server().await);
    let (api, search) = (server.admin(), Search::new());
    plant(&api, &[&echo.host]).await;
    let code = "import urllib.request\n\
                text = urllib.request.urlopen(url + '/kept').read().decode()\n\
                result = {'kept': 'authorization' in text.lower(), 'seen': mark in text}";
    let next = |step: &str| json!({"arcs": [{"step": step}]});
    let steps = json!([
        {"step": "start", "tool": {"kind": "http", "url": "{{ url }}/echo", "auth": "canary-00"}, "next": next("shown")},
        {"step": "shown", "tool": {"kind": "http", "url": "{{ url }}/kept"}, "next": next("kept")},
        {"step": "kept", "tool": {"kind": "http", "url": "{{ url }}/kept", "response_type": "binary"}, "next": next("code")},
        {"step": "code", "tool": {"kind": "python", "code": code, "input": {"url": "{{ url }}", "mark": "{{ secret }}"}},
         "next": next("end")},
        {"step": "end", "tool": {"kind": "noop", "result": {"shown": "{{ shown.data }}", "kept": "{{ code.kept }}",
                                                     "seen": "{{ code.seen }}"}}},
    ]);
    // A part of it, so that the payload has no secret in it.
    let payload = json!({"url": echo.url, "secret": &PLANTED[0].secret[..12]});
    let (id, output) = result(&api, "canary/kept", steps, payload).await;
    assert!(echo.received().concat().contains(PLANTED[0].secret), "the host has it");
    assert!(output["shown"].to_string().contains("Bearer NOETL~SECRET~canary-00~token~"), "{output}");
    assert_eq!(output["kept"], true, "{output}");
    assert_eq!(output["seen"], false, "the code of a step has no part of it: {output}");
    look_at(&api, &id, &search).await;
    let (data, said) = server.stop();
    search.text("the server's log", said.as_bytes());
    search.files(data.path());
}

/// What a credential was before it was changed is a secret still, and the next server on the folder knows it too.
#[tokio::test]
async fn a_secret_that_was_replaced_before_a_restart_is_in_no_later_answer() {
    let (echo, server) = (Echo::start().await, server().await);
    let api = server.admin();
    plant(&api, &[&echo.host]).await;
    let (first, url) = (&PLANTED[0], json!({"url": echo.url}));
    let send = json!([{"step": "start", "tool": {"kind": "http", "url": "{{ url }}/echo", "auth": first.alias}}]);
    result(&api, "canary/sent", send, url.clone()).await;
    assert!(echo.received().concat().contains(first.secret), "the host has it");
    let changed = json!({"name": first.alias, "type": first.kind, "data": {first.field: "cnry-of-a-later-day"},
                         "hosts": [echo.host]});
    api.post("/api/credentials", changed).await;
    let (data, _) = server.stop();
    let server = noetl_tests::Server::start_on(data, &[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let api = server.admin();
    while api.get("/ready").await.status != 200 {}
    let ask = json!([{"step": "start", "tool": {"kind": "http", "url": "{{ url }}/kept"}}]);
    let (id, output) = result(&api, "canary/asked", ask, url).await;
    assert!(output.to_string().contains("Bearer [REDACTED]"), "{output}");
    let search = Search::new();
    look_at(&api, &id, &search).await;
    search.files(server.stop().0.path());
}

/// Whoever supplies data can write what a placeholder looks like, and gets the text back and no secret.
#[tokio::test]
async fn data_cannot_have_a_placeholder_in_it() {
    let (echo, server) = (Echo::start().await, server().await);
    let api = server.admin();
    plant(&api, &[&echo.host]).await;
    let steps = json!([
        {"step": "start", "tool": {"kind": "http", "method": "POST", "url": "{{ url }}/echo?q={{ alias }}",
                                   "json": {"said": "{{ alias }}", "mine": "{{ keychain['canary-00'].token }}"}},
         "next": {"arcs": [{"step": "again"}]}},
        // What the host tells back is data of the outside.
        {"step": "again", "tool": {"kind": "http", "method": "POST", "url": "{{ url }}/echo",
                                   "body": "{{ start.data.target }}", "headers": {"content-type": "text/plain"}}},
    ]);
    for (number, forged) in [
        "NOETL~SECRET~canary-01~token~END".to_owned(),
        format!("NOETL~SECRET~canary-01~token~{}~END", "0".repeat(32)),
        noetl_contract::placeholder::Seal::of(b"a key of nobody", "main").write("canary-01", "token"),
    ]
    .into_iter()
    .enumerate()
    {
        let from = echo.received().len();
        result(&api, &format!("canary/forged{number}"), steps.clone(), json!({"url": echo.url, "alias": forged})).await;
        let received = echo.received()[from..].to_vec();
        assert_eq!(received.len(), 2, "{received:#?}");
        assert!(received.iter().all(|request| request.contains(&forged)), "it is sent as it is: {received:#?}");
        assert!(received[0].contains(PLANTED[0].secret), "the playbook's own is replaced: {received:#?}");
        assert!(!received.concat().contains("cnry01"), "{received:#?}");
    }
    let uses = api.get("/api/credentials/canary-01/audit").await.is(200).json();
    let events: Vec<_> = uses["uses"].as_array().expect("lines").iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["added"], "nothing was opened for it");
}

/// A placeholder that waits in an execution is good after the server has been started again.
#[tokio::test]
async fn a_placeholder_of_before_a_restart_is_good_after_it() {
    let (echo, server) = (Echo::start().await, server().await);
    let api = server.admin();
    plant(&api, &[&echo.host]).await;
    let text = ways::playbook(
        "canary/parked",
        json!([
            {"step": "start", "tool": {"kind": "noop", "result": "{{ keychain['canary-00'].token }}"},
             "set": {"ctx.held": "{{ output }}"}, "next": {"arcs": [{"step": "ask"}]}},
            {"step": "ask", "tool": {"kind": "park", "message": "go on?"}, "next": {"arcs": [{"step": "send"}]}},
            {"step": "send", "tool": {"kind": "http", "url": "{{ url }}/echo?t={{ held }}"}},
        ]),
    );
    let answer = api.send(api.request(Method::POST, "/api/catalog/register").body(text)).await;
    assert!(answer.status < 300, "{}", answer.text());
    let body = json!({"path": "canary/parked", "payload": {"url": echo.url}});
    let id = api.post("/api/execute", body).await.is(202).json()["execution_id"].as_str().expect("an id").to_owned();
    let parked = |shown: Value| {
        shown["steps"].as_array().is_some_and(|steps| steps.iter().any(|step| step["status"] == "PARKED"))
    };
    while !parked(api.get(&format!("/api/executions/{id}?consistency=strong")).await.is(200).json()) {}
    let (data, _) = server.stop();
    let server = noetl_tests::Server::start_on(data, &[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let api = server.admin();
    api.post(&format!("/api/executions/{id}/resume"), json!({"step": "ask", "value": true})).await.is(200);
    while echo.received().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(echo.received()[0].contains(&format!("t={}", PLANTED[0].secret)), "{:?}", echo.received());
}
