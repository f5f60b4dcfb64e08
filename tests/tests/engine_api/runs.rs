//! Executions are started, waited for, listed, and started many at a time.

use std::cmp::Ordering;

use noetl_tests::Api;
use serde_json::{Value, json};

use crate::support::{
    asks, fails, hello, playbook, register, rows, run, server, start, texts, until_parked, until_status,
};

#[tokio::test]
async fn a_playbook_is_started_waited_for_and_read_back() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    let done = run(&admin, "demo/hello", json!({"name": "you"})).await;
    assert_eq!((&done["status"], &done["output"]), (&json!("completed"), &json!({"hello": "you"})));
    assert_eq!(done["error"], Value::Null);

    let started = admin.post("/api/execute", json!({"catalog_id": "demo/hello@1"})).await.is(202);
    let id = started.json()["execution_id"].as_str().expect("ids are text").to_owned();
    assert_eq!(started.header("location"), format!("/api/executions/{id}"));
    let shown = until_status(&admin, &id, "COMPLETED").await;
    assert_eq!(
        (&shown["path"], &shown["version"], &shown["requested_by"]),
        (&json!("demo/hello"), &json!(1), &json!("admin"))
    );
    assert_eq!((&shown["workload"], &shown["output"]), (&json!({"name": "world"}), &json!({"hello": "world"})));
    assert_eq!(texts(&shown["steps"], "status"), ["COMPLETED"]);
    assert!(shown["started_at"].is_string() && shown["ended_at"].is_string() && shown["duration_ms"].is_u64());
    let status = admin.get(&format!("/api/executions/{id}/status")).await.is(200).json();
    assert_eq!(status["progress"], json!({"total": 1, "completed": 1, "running": 0, "failed": 0}));
    assert_eq!((&status["status"], &status["is_cancelled"]), (&json!("COMPLETED"), &json!(false)));
    let commands = admin.get(&format!("/api/executions/{id}/commands")).await.is(200).json();
    assert_eq!(texts(&commands["commands"], "command_id"), ["start#1"]);
    let why = admin.get(&format!("/api/executions/{id}/why")).await.is(200).json();
    assert!(why["status"] == "completed" && rows(&why["chain"]).count() > 1, "{why}");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    register(&admin, &fails("demo/fails")).await.is(201);
    let failed = run(&admin, "demo/fails", json!({})).await;
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"]["code"].is_string() && failed["error"]["message"].is_string(), "{failed}");

    admin.post("/api/execute", json!({"path": "demo/nothing"})).await.problem(404, "playbook_not_found");
    admin.post("/api/execute", json!({"path": "demo/hello", "version": 9})).await.problem(404, "playbook_not_found");
    for (body, field) in [
        (json!({}), "path"),
        (json!({"path": "demo/hello", "payload": 5}), "payload"),
        (json!({"path": "demo/hello", "pathh": 5}), "pathh"),
    ] {
        assert_eq!(admin.post("/api/execute", body).await.problem(400, "invalid_body")["field"], field);
    }
    let large = json!({"path": "demo/hello", "payload": {"x": "y".repeat((1 << 20) + 1)}});
    admin.post("/api/execute", large).await.problem(413, "body_too_large");
    admin.get("/api/executions/12345").await.problem(404, "execution_not_found");
    admin.get("/api/executions/abc").await.problem(400, "invalid_parameter");
}

#[tokio::test]
async fn a_second_request_with_the_same_key_starts_nothing() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    let body = json!({"path": "demo/hello", "dedup": {"key": "order-7", "window_secs": 3600}});
    let first = admin.post("/api/execute", body.clone()).await.is(202).json();
    let second = admin.post("/api/execute", body.clone()).await.is(202).json();
    assert_eq!((&first["status"], &second["status"]), (&json!("started"), &json!("duplicate")));
    assert_eq!(first["execution_id"], second["execution_id"]);
    let waited = admin.post("/api/execute?wait=60", body).await.is(200).json();
    assert_eq!((&waited["execution_id"], &waited["status"]), (&first["execution_id"], &json!("completed")));
    let all = admin.get("/api/executions?consistency=strong").await.is(200).json();
    assert_eq!(rows(&all["executions"]).count(), 1);
}

#[tokio::test]
async fn waiting_ends_with_its_time_and_the_execution_goes_on() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let waited = admin.post("/api/execute?wait=1", json!({"path": "demo/asks"})).await.is(202).json();
    assert_eq!(waited["status"], "running");
    let id = waited["execution_id"].as_str().expect("an id");
    until_parked(&admin, id, "ask").await;
}

async fn page(api: &Api, query: &str) -> Value {
    api.get(&format!("/api/executions?consistency=strong{query}")).await.is(200).json()
}

#[tokio::test]
async fn executions_are_listed_newest_first_by_filter_and_page() {
    let server = server().await;
    let admin = server.admin();
    let child = json!([{"step": "start", "tool": {"kind": "playbook", "path": "a/hello", "return_result": true}}]);
    for text in [hello("a/hello"), fails("a/fails"), asks("b/asks"), playbook("b/parent", child)] {
        register(&admin, &text).await.is(201);
    }
    let mut ids = Vec::new();
    for path in ["a/hello", "a/fails", "b/parent"] {
        let ended = run(&admin, path, json!({})).await;
        ids.push(ended["execution_id"].as_str().expect("an id").to_owned());
    }
    ids.push(start(&admin, "b/asks").await);

    let all = page(&admin, "").await;
    assert_eq!(rows(&all["executions"]).count(), 5, "four were asked for and one is a child");
    assert!(all["as_of"].as_str().is_some_and(|text| text.parse::<u64>().is_ok()) && all["next"].is_null(), "{all}");
    assert_eq!(texts(&page(&admin, "&status=failed").await["executions"], "execution_id"), [&ids[1]]);
    assert_eq!(texts(&page(&admin, "&status=RUNNING").await["executions"], "execution_id"), [&ids[3]]);
    assert_eq!(texts(&page(&admin, "&path=b/*").await["executions"], "path"), ["b/asks", "b/parent"]);
    let children = page(&admin, &format!("&parent={}", ids[2])).await;
    assert_eq!(texts(&children["executions"], "parent_execution_id"), [&ids[2]]);
    assert_eq!(texts(&children["executions"], "path"), ["a/hello"]);
    let time = page(&admin, "&path=a/fails").await["executions"][0]["started_at"].clone();
    let time = time.as_str().expect("a time");
    for (filter, fits) in [("since", Ordering::is_ge as fn(Ordering) -> bool), ("until", Ordering::is_le)] {
        let some = page(&admin, &format!("&{filter}={time}")).await;
        // Times of this form are in the order of their text.
        assert!(texts(&some["executions"], "started_at").iter().all(|other| fits((*other).cmp(time))), "{some}");
        assert!(texts(&some["executions"], "execution_id").contains(&ids[1].as_str()), "{some}");
    }

    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = page(&admin, &format!("&limit=2{cursor}")).await;
        seen.extend(texts(&part["executions"], "execution_id").into_iter().map(str::to_owned));
        let Some(next) = part["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, texts(&all["executions"], "execution_id"), "pages are the list cut");
    assert_eq!(admin.get("/api/executions?cursor=x").await.problem(400, "invalid_parameter")["field"], "cursor");
}

#[tokio::test]
async fn a_batch_starts_many_and_each_item_fails_alone() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    let mut items: Vec<Value> = (0..300).map(|n| json!({"path": "demo/hello", "payload": {"name": n}})).collect();
    items[7] = json!({"path": "demo/nothing"});
    items[8] = json!({"path": "demo/hello", "wait": true});
    let answer = admin.post("/api/execute/batch", json!({"executions": items})).await.is(200).json();
    assert_eq!((&answer["count"], &answer["started"], &answer["failed"]), (&json!(300), &json!(298), &json!(2)));
    assert_eq!(answer["results"][7]["error"]["code"], "playbook_not_found");
    assert_eq!(answer["results"][8]["error"]["field"], "wait");
    assert!(rows(&answer["results"]).enumerate().all(|(index, row)| row["index"] == index));
    let last = answer["results"][299]["execution_id"].as_str().expect("an id");
    let shown = until_status(&admin, last, "COMPLETED").await;
    assert_eq!(shown["output"], json!({"hello": 299}), "native types are kept");

    let problem = admin.post("/api/execute/batch", json!({"executions": []})).await.problem(400, "invalid_body");
    assert_eq!(problem["field"], "executions");
    let many = vec![json!({"path": "demo/hello"}); 1001];
    admin.post("/api/execute/batch", json!({"executions": many})).await.problem(400, "invalid_body");
}
