//! What a failure is to rules, and which lost call is made again.

use noetl_tests::Server;
use serde_json::{Value, json};

use crate::support::{failure, register, run, server, server_with};
use crate::upstream::Upstream;

#[tokio::test]
async fn each_failure_has_its_class() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let api = server.admin();
    let at = |path: &str| json!({"kind": "http", "url": format!("{}{path}", upstream.url)});
    for (number, (tool, class)) in [
        (at("/status/401"), "auth"),
        (at("/status/403"), "auth"),
        (at("/status/404"), "not_found"),
        (at("/status/409"), "client_error"),
        (at("/status/503"), "server_error"),
        (at("/limited"), "rate_limit"),
        (json!({"kind": "http", "url": "http://127.0.0.1:1/"}), "connect"),
        (json!({"kind": "http", "url": "http://no-such-host.invalid/"}), "dns"),
        (json!({"kind": "http", "url": "http://169.254.169.254/"}), "denied"),
        (json!({"kind": "http", "url": format!("{}/silent", upstream.url), "timeout_ms": 50}), "timeout"),
        (json!({"kind": "http", "url": "{{ nothing }}"}), "invalid_input"),
        (json!({"kind": "http", "url": upstream.url, "json": 1, "text": "{{ 'x' }}"}), "invalid_input"),
        (json!({"kind": "http", "url": upstream.url, "auth": "nobody"}), "unknown_credential"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(failure(&api, &format!("fail/{number}"), tool.clone()).await, class, "{tool}");
    }
}

#[tokio::test]
async fn rules_see_when_a_server_wants_to_be_asked_again() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let seen = "{{ output.error.retry_after }} {{ output.http.status }} {{ output.error.retryable }}";
    let rules = json!([{"else": {"then": {"do": "continue", "set": {"seen": seen}}}}]);
    let workflow = json!([{"step": "start", "tool": [
        {"name": "ask", "kind": "http", "url": format!("{}/limited", upstream.url), "spec": {"policy": {"rules": rules}}},
        {"name": "told", "kind": "noop", "result": "{{ seen }}"},
    ]}]);
    let ended = run(&server.admin(), "fail/limited", workflow).await;
    assert_eq!(ended["output"]["told"].as_str().map(str::to_lowercase).as_deref(), Some("7 429 true"), "{ended}");
}

#[tokio::test]
async fn a_request_that_may_have_been_done_is_not_said_to_be_retryable() {
    let (server, upstream) = (server().await, Upstream::start().await);
    let rules = json!([{"else": {"then": {"do": "continue", "set": {"seen": "{{ output.error.retryable }}"}}}}]);
    for (number, (path, more, expected)) in [
        ("/status/503", json!({}), "true"),
        ("/status/503", json!({"method": "POST"}), "false"),
        ("/status/503", json!({"method": "POST", "spec": {"retry_safe": true}}), "true"),
        ("/limited", json!({"method": "POST"}), "true"),
        ("/silent", json!({"timeout_ms": 50}), "true"),
        ("/silent", json!({"timeout_ms": 50, "json": {}}), "false"),
        // The engine's limit and not the tool's.
        ("/silent", json!({"method": "POST", "timeout": 0.05}), "false"),
        ("/silent", json!({"method": "POST", "timeout": 0.05, "spec": {"retry_safe": true}}), "true"),
        ("/silent", json!({"method": "GET", "timeout": 0.05}), "true"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut tool = json!({"name": "ask", "kind": "http", "url": format!("{}{path}", upstream.url)});
        tool.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        tool["spec"]["policy"] = json!({"rules": rules});
        let workflow = json!([{"step": "start", "tool": [
            tool.clone(), {"name": "told", "kind": "noop", "result": "{{ seen }}"},
        ]}]);
        let ended = run(&server.admin(), &format!("again/{number}"), workflow).await;
        let told = ended["output"]["told"].to_string().to_lowercase().replace('"', "");
        assert_eq!(told, expected, "{tool}: {ended}");
    }
    let refused = json!({"name": "ask", "kind": "http", "method": "POST", "url": "http://127.0.0.1:1/",
        "spec": {"policy": {"rules": rules}}});
    let workflow =
        json!([{"step": "start", "tool": [refused, {"name": "told", "kind": "noop", "result": "{{ seen }}"}]}]);
    let ended = run(&server.admin(), "again/refused", workflow).await;
    assert_eq!(ended["output"]["told"].to_string().to_lowercase().replace('"', ""), "true", "it never left: {ended}");
}

#[tokio::test]
async fn certificates_are_not_looked_at_only_where_the_operator_permits_it() {
    let tool = || json!({"kind": "http", "url": "https://127.0.0.1:1/", "verify_ssl": false});
    let strict = server().await;
    assert_eq!(failure(&strict.admin(), "tls/strict", tool()).await, "denied");
    let lax = server_with(&[("NOETL_POLICY_INSECURE_TLS", "true")]).await;
    assert_eq!(failure(&lax.admin(), "tls/lax", tool()).await, "connect");
}

/// Runs a tool, kills the server while its request is under way, and answers with how the execution ends.
async fn lost(upstream: &Upstream, tool: Value) -> Value {
    let mut server = server().await;
    let api = server.admin();
    let before = upstream.asked().len();
    upstream.hold_until(None);
    register(&api, "lost/one", json!([{"step": "start", "tool": tool}])).await;
    // Asked for a second time it is the same execution.
    let wanted = json!({"path": "lost/one", "dedup": {"key": "one", "window_secs": 86_400}});
    api.post("/api/execute", wanted.clone()).await.is(202);
    upstream.until_asked(before + 1).await;
    server.kill();
    let data = server.folder();
    drop(server);
    upstream.hold_until(Some(before + 2));
    let server = Server::start_on(data, &[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    server.admin().post("/api/execute?wait=300", wanted).await.is(200).json()
}

#[tokio::test]
async fn a_lost_request_is_made_again_if_its_method_says_that_it_may() {
    let upstream = Upstream::start().await;
    let at = |more: Value| {
        let mut tool = json!({"kind": "http", "url": format!("{}/held", upstream.url)});
        tool.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        tool
    };
    let asked = |method: &str| upstream.asked().iter().filter(|asked| asked.method == method).count();
    for method in ["GET", "PUT", "DELETE"] {
        let ended = lost(&upstream, at(json!({"method": method}))).await;
        assert_eq!((&ended["status"], asked(method)), (&json!("completed"), 2), "{method}: {ended}");
    }
    let ended = lost(&upstream, at(json!({"method": "POST", "json": {}}))).await;
    assert_eq!((&ended["status"], asked("POST")), (&json!("failed"), 1), "{ended}");
    assert!(ended.to_string().contains("outcome_unknown"), "{ended}");
    let ended = lost(&upstream, at(json!({"method": "POST", "json": {}, "spec": {"retry_safe": true}}))).await;
    assert_eq!((&ended["status"], asked("POST")), (&json!("completed"), 3), "{ended}");
    // A tool beside it that is safe by itself takes nothing away.
    let beside = json!([
        {"name": "get", "kind": "http", "url": format!("{}/held", upstream.url)}, {"name": "then", "kind": "noop"},
    ]);
    let before = asked("GET");
    assert_eq!((&lost(&upstream, beside).await["status"], asked("GET") - before), (&json!("completed"), 2));
}
