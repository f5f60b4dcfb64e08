//! A step's next steps get what it answered: only secrets of the wallet are replaced in it, whatever looks like one.

use noetl_tests::Api;
use reqwest::Method;
use serde_json::{Value, json};

use crate::echo::Echo;
use crate::planted::{PLANTED, json_escaped};
use crate::stores::Stores;
use crate::{plant, server, ways};

async fn result(api: &Api, path: &str, steps: Value, payload: Value) -> Value {
    let text = ways::playbook(path, steps);
    let answer = api.send(api.request(Method::POST, "/api/catalog/register").body(text)).await;
    assert!(answer.status < 300, "{path}: {}", answer.text());
    let done = api.post("/api/execute?wait=60", json!({"path": path, "payload": payload})).await.is(200).json();
    assert_eq!(done["status"], "completed", "{done}");
    done["output"].clone()
}

#[tokio::test]
async fn what_is_no_secret_of_the_wallet_reaches_the_next_step_as_it_is() {
    let (echo, server) = (Echo::start().await, server().await);
    let api = server.admin();
    plant(&api, &[&echo.host]).await;
    let steps = json!([
        {"step": "start", "tool": {"kind": "http", "url": "{{ url }}/echo?q={{ keychain['canary-00'].token }}",
                                   "headers": {"x-session": "sk-1234567890ABCDEFGH"}},
         "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.data.head }}"}},
    ]);
    let output = result(&api, "canary/session", steps, json!({"url": echo.url})).await;
    let output = output.as_str().unwrap_or_else(|| panic!("a text: {output}"));
    assert!(output.contains("sk-1234567890ABCDEFGH"), "{output}");
    assert!(output.contains("q=NOETL~SECRET~canary-00~token~"), "what stands for it goes on: {output}");
    assert!(!output.contains(PLANTED[0].secret), "{output}");
}

/// Secrets by their name and by their shape, none of which the wallet has.
fn lookalikes() -> Value {
    json!({
        "password": "hunter2-hunter2", "token": "tok_1234567890abcdef", "api_key": "sk-1234567890ABCDEFGH",
        "authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLW5vYm9keQ",
        "cookie": "session=0123456789abcdef", "client_secret": 4_815_162_342_u64,
        "url": "https://someone:opensesame@example.com/?token=abcdef123456",
        "pem": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n",
        "told": "[REDACTED]",
    })
}

#[tokio::test]
async fn what_only_looks_like_a_secret_goes_through_every_tool_as_it_is() {
    let (echo, server, stores) = (Echo::start().await, server().await, Stores::start().await);
    let api = server.admin();
    plant(&api, &[&echo.host]).await;
    stores.credentials(&api).await;
    let next = |step: &str| json!({"arcs": [{"step": step}]});
    let code = |kind: &str, text: &str, value: &str| json!({"kind": kind, "code": text, "input": {"value": value}});
    let nats = |operation: &str, value: Value| {
        let mut tool =
            json!({"kind": "nats", "auth": "nats", "operation": operation, "bucket": "planted", "key": "like"});
        tool.as_object_mut().expect("an object").extend(value.as_object().cloned().expect("an object"));
        tool
    };
    let steps = json!([
        // A secret of the wallet is known by then, so results are looked at.
        {"step": "start", "tool": {"kind": "http", "url": "{{ url }}/echo", "auth": "canary-00"}, "next": next("python")},
        {"step": "python", "tool": code("python", "print(value)\nresult = {'value': value}", "{{ like }}"),
         "set": {"ctx.held": "{{ output.value }}"}, "next": next("javascript")},
        {"step": "javascript", "tool": code("javascript", "return { value };", "{{ python.value }}"), "next": next("postgres")},
        {"step": "postgres", "next": next("put"),
         "tool": {"kind": "postgres", "auth": "pg", "query": "SELECT $1::json AS value", "params": ["{{ javascript.value }}"]}},
        {"step": "put", "tool": nats("kv_put", json!({"value": "{{ postgres.rows[0].value }}"})), "next": next("get")},
        {"step": "get", "tool": nats("kv_get", json!({})), "next": next("keep")},
        {"step": "keep", "tool": {"kind": "artifact", "action": "put", "value": "{{ get.value }}"}, "next": next("read")},
        {"step": "read", "tool": {"kind": "artifact", "result_ref": "{{ keep._ref }}"}, "next": next("tell")},
        {"step": "tell", "tool": {"kind": "http", "method": "POST", "url": "{{ url }}/echo",
                                  "json": {"read": "{{ read }}", "held": "{{ held }}"}}, "next": next("end")},
        {"step": "end", "tool": {"kind": "noop", "result": {"read": "{{ read }}", "sent": "{{ tell.data.body }}"}}},
    ]);
    let payload = json!({"url": echo.url, "like": lookalikes()});
    let output = result(&api, "canary/lookalikes", steps, payload).await;
    assert_eq!(output["read"], lookalikes());
    let sent: Value = serde_json::from_str(output["sent"].as_str().expect("what was sent")).expect("JSON");
    assert_eq!(sent, json!({"read": lookalikes(), "held": lookalikes()}));
    let received = echo.received().concat();
    for value in lookalikes().as_object().expect("an object").values().filter_map(Value::as_str) {
        assert!(received.contains(&json_escaped(value)), "{value} was not sent in\n{received}");
    }
}

/// A text that is a secret of one tenant is a text like any other for another: nothing of theirs is masked, so nobody can
/// find out what somebody else keeps.
#[tokio::test]
async fn another_tenants_secret_is_a_word_like_any_other() {
    let (echo, server) = (Echo::start().await, server().await);
    let admin = server.admin();
    plant(&admin, &[&echo.host]).await;
    let acme = server.with_token(&admin.token_for("acme", "tenant").await);
    let login = json!([{"step": "start", "tool": {"kind": "http", "url": "{{ url }}/echo", "auth": "canary-00"}}]);
    result(&admin, "canary/login", login, json!({"url": echo.url})).await;
    let steps = json!([
        {"step": "start", "tool": {"kind": "python", "code": "result = {'word': word}", "input": {"word": "{{ word }}"}},
         "next": {"arcs": [{"step": "end"}]}},
        {"step": "end", "tool": {"kind": "noop", "result": "{{ start.word }}"}},
    ]);
    let payload = json!({"word": PLANTED[0].secret});
    assert_eq!(result(&acme, "word", steps.clone(), payload.clone()).await, PLANTED[0].secret);
    let own = result(&admin, "canary/word", steps, payload).await;
    assert!(own.as_str().is_some_and(|text| text.starts_with("NOETL~SECRET~canary-00~token~")), "{own}");
}
