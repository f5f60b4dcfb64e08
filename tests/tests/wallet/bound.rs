//! Where a credential goes: a host, a port, and encrypted unless somebody says otherwise.

use noetl_tests::{Api, Server};
use serde_json::{Value, json};

use crate::support::SECRET;

/// Sends the credential there; answers with the failure. Nothing leaves the machine: the check comes first.
async fn send(api: &Api, path: &str, url: &str) -> Value {
    refused(api, path, json!({"kind": "http", "url": url, "auth": "bound"})).await
}

async fn refused(api: &Api, path: &str, tool: Value) -> Value {
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": path, "path": path},
        "workflow": [{"step": "start", "tool": tool}],
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
    let ended = api.post("/api/execute?wait=60", json!({"path": path})).await.is(200).json();
    assert_eq!(ended["status"], "failed", "{ended}");
    ended["error"].clone()
}

#[tokio::test]
async fn a_host_is_https_on_its_usual_port_unless_its_binding_says_more() {
    let server = Server::start();
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    let api = server.admin();
    let bound = |hosts: Value| json!({"name": "bound", "type": "bearer", "data": {"token": SECRET}, "hosts": hosts});
    api.post("/api/credentials", bound(json!(["api.example.com"]))).await.is(201);
    for (name, url) in [
        ("plain", "http://api.example.com/"),
        ("plain-on-443", "http://api.example.com:443/"),
        ("port", "https://api.example.com:8443/"),
        ("other", "https://api.example.net/"),
    ] {
        let error = send(&api, &format!("bound/{name}"), url).await;
        assert_eq!(error["code"], "denied", "{name}: {error}");
        assert!(
            error["message"].as_str().is_some_and(|text| text.contains("`bound` may not go to")),
            "{name}: {error}"
        );
    }
    // What a binding permits is refused for another reason: the address is this machine's, which is closed to plugins.
    let kept = api.post("/api/credentials", bound(json!(["http://intranet.example:8080", "127.0.0.1"]))).await.is(200);
    assert_eq!(kept.json()["hosts"], json!(["http://intranet.example:8080", "127.0.0.1"]));
    let error = send(&api, "bound/loopback", "http://127.0.0.1:9/").await;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("not a public address")), "{error}");
    let error = send(&api, "bound/elsewhere", "http://intranet.example:8081/").await;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`bound` may not go to")), "{error}");
}

/// A placeholder that is sent as it is would be data to whoever gets it.
#[tokio::test]
async fn a_body_that_is_not_rewritten_has_no_placeholder_in_it() {
    let server = Server::start();
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    let api = server.admin();
    let bound = json!({"name": "bound", "type": "bearer", "data": {"token": SECRET}, "hosts": ["127.0.0.1"]});
    api.post("/api/credentials", bound).await.is(201);
    let (url, placeholder) = ("http://127.0.0.1:9/", "{{ keychain.bound.token }}");
    let half = "{{ range(100000) | list }}";
    for (name, tool) in [
        ("large", json!({"json": {"one": half, "other": half, "token": placeholder}})),
        (
            "packed",
            json!({"headers": {"Content-Type": "application/octet-stream"}, "body": format!("a {placeholder}")}),
        ),
    ] {
        let mut tool = tool;
        (tool["kind"], tool["method"], tool["url"]) = ("http".into(), "POST".into(), url.into());
        let error = refused(&api, &format!("bound/{name}"), tool).await;
        assert_eq!(error["code"], "denied", "{name}: {error}");
        let message = error["message"].as_str().expect("a text");
        assert!(message.contains("`bound`") && message.contains("at most 1 MiB"), "{name}: {message}");
    }
}
