//! Secrets that come with an execution, and data that has one in it: what stands for a secret goes on in its place, and becomes
//! the secret again where its credential may go, and nowhere else.

use noetl_tests::Api;
use reqwest::Method;
use serde_json::{Value, json};

use crate::echo::Echo;
use crate::planted::{PLANTED, json_escaped};
use crate::search::Search;
use crate::stores::Stores;
use crate::{look_at, plant, server, ways};

async fn register(api: &Api, path: &str, steps: Value) {
    let text = ways::playbook(path, steps);
    let answer = api.send(api.request(Method::POST, "/api/catalog/register").body(text)).await;
    assert!(answer.status < 300, "{path}: {}", answer.text());
}

async fn run(api: &Api, path: &str, payload: Value) -> Value {
    api.post("/api/execute?wait=60", json!({"path": path, "payload": payload})).await.is(200).json()
}

fn next(step: &str) -> Value {
    json!({"arcs": [{"step": step}]})
}

/// In the payload of a start, of a child, and in the value that a parked step goes on with.
#[tokio::test]
async fn a_secret_that_is_given_is_in_no_event_and_is_sent_where_it_may_go() {
    let (echo, server) = (Echo::start().await, server().await);
    let (api, search) = (server.admin(), Search::new());
    plant(&api, &[&echo.host]).await;
    let tell = |text: &str| json!({"kind": "http", "method": "POST", "url": "{{ url }}/echo", "json": {"told": text}});
    register(&api, "canary/child", json!([{"step": "start", "tool": tell("{{ secret }}")}])).await;
    let steps = json!([
        {"step": "start", "tool": {"kind": "noop", "result": "{{ secret }}"}, "set": {"ctx.kept": "{{ output }}"},
         "next": next("child")},
        {"step": "child", "tool": {"kind": "playbook", "path": "canary/child", "return_step": "start",
                                   "input": {"url": "{{ url }}", "secret": "{{ kept }}"}}, "next": next("ask")},
        {"step": "ask", "tool": {"kind": "park", "message": "which?"}, "next": next("tell")},
        {"step": "tell", "tool": tell("{{ ask.secret }}")},
    ]);
    register(&api, "canary/given", steps).await;
    let parked = |shown: &Value| {
        shown["steps"].as_array().is_some_and(|steps| steps.iter().any(|step| step["status"] == "PARKED"))
    };
    for planted in &PLANTED {
        let payload = json!({"url": echo.url, "secret": planted.secret});
        let begun = api.post("/api/execute", json!({"path": "canary/given", "payload": payload})).await.is(202).json();
        let id = begun["execution_id"].as_str().expect("an id").to_owned();
        let shown = format!("/api/executions/{id}?consistency=strong");
        while !parked(&api.get(&shown).await.is(200).json()) {}
        let from = echo.received().len();
        let value = json!({"step": "ask", "value": {"secret": planted.secret}});
        api.post(&format!("/api/executions/{id}/resume"), value).await.is(200);
        while api.get(&shown).await.is(200).json()["status"] == "RUNNING" {}
        let received = echo.received();
        for told in [&received[from - 1..from], &received[from..]] {
            assert!(told.concat().contains(&json_escaped(planted.secret)), "{}: {told:?}", planted.alias);
        }
        look_at(&api, &id, &search).await;
    }
    let (data, said) = server.stop();
    search.text("the server's log", said.as_bytes());
    search.files(data.path());
}

/// A mark would be stored as if it were the value.
#[tokio::test]
async fn a_secret_is_stored_where_its_credential_may_go_and_nothing_is_stored_elsewhere() {
    let (server, stores) = (server().await, Stores::start().await);
    let api = server.admin();
    stores.credentials(&api).await;
    const OWN: &str = "Of-The-Database-Alone-77";
    let own = json!({"name": "own", "type": "bearer", "data": {"token": OWN}, "hosts": [stores.database()]});
    api.post("/api/credentials", own).await.is(201);
    let pg =
        |command: &str, params: Value| json!({"kind": "postgres", "auth": "pg", "command": command, "params": params});
    let steps = json!([
        {"step": "start", "tool": pg("CREATE TABLE kept (v text); INSERT INTO kept VALUES ($1)", json!(["{{ secret }}"])),
         "next": next("read")},
        {"step": "read", "tool": pg("SELECT v FROM kept", json!([])), "next": next("again")},
        {"step": "again", "tool": pg("INSERT INTO kept VALUES ($1)", json!(["{{ read.rows[0].v }}"])), "next": next("moved")},
        {"step": "moved", "next": next("elsewhere"),
         "tool": {"kind": "transfer", "source": {"type": "postgres", "auth": "pg", "query": "SELECT v FROM kept LIMIT 1"},
                  "target": {"type": "postgres", "auth": "pg", "table": "kept"}}},
        {"step": "elsewhere", "spec": {"on_error": "continue"}, "next": next("count"),
         "tool": {"kind": "nats", "auth": "nats", "operation": "kv_put", "bucket": "planted", "key": "v",
                  "value": "{{ read.rows[0].v }}"}},
        {"step": "count", "next": next("end"),
         "tool": pg("SELECT count(*) AS rows, count(DISTINCT v) AS values, max(length(v)) AS length FROM kept", json!([]))},
        {"step": "end", "tool": {"kind": "noop", "result": {"count": "{{ count.rows[0] }}", "read": "{{ read.rows[0].v }}",
                                                     "kind": "{{ moved.source_type }}"}}},
    ]);
    register(&api, "canary/stored", steps).await;
    // What the database is entered with is nothing to be written: a script could have it told back in any disguise.
    let payload = json!({"path": "canary/stored", "payload": {"secret": stores.password()}});
    let refused = api.post("/api/execute?wait=60", payload).await.is(200).json();
    assert_eq!(refused["error"]["code"], "denied", "{refused}");
    let done = run(&api, "canary/stored", json!({"secret": OWN})).await;
    let output = &done["output"];
    assert!(output["read"].as_str().is_some_and(|text| text.starts_with("NOETL~SECRET~own~token~")), "{done}");
    assert_eq!(output["count"], json!({"rows": 3, "values": 1, "length": OWN.len()}), "{done}");
    assert_eq!(output["kind"], "postgres", "a word of the tool's own");
    let id = done["execution_id"].as_str().expect("an id");
    let events = api.get(&format!("/api/executions/{id}/events")).await.is(200).text();
    assert!(events.contains("the credential `own` may not go to"), "{events}");
}
