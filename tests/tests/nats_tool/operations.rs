//! Values, objects and messages.

use noetl_tests::Nats;
use serde_json::{Value, json};

use crate::support::{at, call, envelope, run, server_with};

#[tokio::test]
async fn values_are_written_read_listed_and_removed() {
    let nats = Nats::start().await;
    nats.make_bucket("sessions").await.expect("a bucket");
    let server = server_with(&[]).await;
    let api = server.admin();
    let kv = async |name: &str, options: Value| call(&api, &format!("kv/{name}"), at(&nats, "nats", options)).await;
    let value = json!({"user": 1, "mail": "a@example.com", "none": null, "big": 12_345_678_901_234_567_890_u64});
    let put = kv("put", json!({"operation": "kv_put", "bucket": "sessions", "key": "s.1", "value": value})).await;
    assert_eq!(put, json!({"status": "success", "bucket": "sessions", "key": "s.1", "revision": 1}));
    let get = kv("get", json!({"operation": "kv_get", "bucket": "sessions", "key": "s.1"})).await;
    assert_eq!(get, json!({"status": "success", "bucket": "sessions", "key": "s.1", "value": value}));
    kv("text", json!({"operation": "kv_put", "bucket": "sessions", "key": "t", "value": "plain text"})).await;
    let text = kv("get-text", json!({"operation": "kv_get", "bucket": "sessions", "key": "t"})).await;
    assert_eq!(text["value"], "plain text");
    let keys = kv("keys", json!({"operation": "kv_keys", "bucket": "sessions", "pattern": "s.*"})).await;
    assert_eq!((&keys["keys"], &keys["count"]), (&json!(["s.1"]), &json!(1)));
    kv("delete", json!({"operation": "kv_delete", "bucket": "sessions", "key": "s.1"})).await;
    let gone = kv("gone", json!({"operation": "kv_get", "bucket": "sessions", "key": "s.1"})).await;
    assert_eq!(gone, json!({"status": "not_found", "bucket": "sessions", "key": "s.1", "value": null}));
    kv("purge", json!({"operation": "kv_purge", "bucket": "sessions", "key": "t"})).await;
    let rest = kv("rest", json!({"operation": "kv_keys", "bucket": "sessions"})).await;
    assert_eq!(rest["count"], 0);
}

#[tokio::test]
async fn objects_pass_through_without_being_read() {
    let nats = Nats::start().await;
    nats.make_object_store("files").await.expect("a bucket");
    let server = server_with(&[]).await;
    let api = server.admin();
    let put =
        at(&nats, "nats", json!({"operation": "object_put", "bucket": "files", "name": "a/b.json", "data": {"a": 1}}));
    assert_eq!(call(&api, "object/put", put).await["size"], 7);
    let get = |encoding: &str| {
        at(
            &nats,
            "nats",
            json!({"operation": "object_get", "bucket": "files", "name": "a/b.json", "encoding": encoding}),
        )
    };
    assert_eq!(call(&api, "object/get", get("auto")).await["data"], json!({"a": 1}));
    let workflow = json!([
        {"step": "start", "tool": get("reference"), "next": {"arcs": [{"step": "copy"}]}},
        {"step": "copy", "tool": at(&nats, "nats", json!({"operation": "object_put", "bucket": "files", "name": "copy",
         "body_ref": "{{ start._ref }}"})), "next": {"arcs": [{"step": "list"}]}},
        {"step": "list", "tool": at(&nats, "nats", json!({"operation": "object_list", "bucket": "files"}))},
    ]);
    let listed = run(&api, "object/copy", workflow).await;
    let mut sizes: Vec<(String, u64)> = listed["output"]["objects"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"))
        .iter()
        .map(|object| (object["name"].as_str().expect("a name").to_owned(), object["size"].as_u64().expect("a size")))
        .collect();
    sizes.sort();
    assert_eq!(sizes, [("a/b.json".to_owned(), 7), ("copy".to_owned(), 7)]);
    let delete = at(&nats, "nats", json!({"operation": "object_delete", "bucket": "files", "name": "copy"}));
    call(&api, "object/delete", delete).await;
    let info = at(&nats, "nats", json!({"operation": "object_info", "bucket": "files", "name": "copy"}));
    assert_eq!(call(&api, "object/info", info).await["status"], "not_found");
}

#[tokio::test]
async fn messages_are_published_once_looked_up_and_consumed() {
    let nats = Nats::start().await;
    nats.make_stream("ORDERS", &["orders.>"], "worker").await.expect("a stream");
    let server = server_with(&[]).await;
    let api = server.admin();
    let js = async |name: &str, options: Value| call(&api, &format!("js/{name}"), at(&nats, "nats", options)).await;
    let publish =
        json!({"operation": "js_publish", "subject": "orders.new", "data": {"n": 1}, "headers": {"Trace": "t"}});
    let first = js("publish", publish).await;
    assert_eq!((&first["stream"], &first["seq"], &first["duplicate"]), (&json!("ORDERS"), &json!(1), &json!(false)));
    js("second", json!({"operation": "js_publish", "subject": "orders.old", "data": "text"})).await;
    let found = js("get", json!({"operation": "js_get_msg", "stream": "ORDERS", "seq": 1})).await;
    assert_eq!((&found["message"]["data"]["n"], &found["message"]["headers"]["trace"]), (&json!(1), &json!("t")));
    let last = js("last", json!({"operation": "js_get_msg", "stream": "ORDERS", "last": "orders.old"})).await;
    assert_eq!(last["message"]["data"], "text");
    let none = js("none", json!({"operation": "js_get_msg", "stream": "ORDERS", "seq": 99})).await;
    assert_eq!(none["status"], "not_found");
    let info = js("info", json!({"operation": "js_stream_info", "stream": "ORDERS"})).await;
    assert_eq!((&info["messages"], &info["last_seq"], &info["consumers"]), (&json!(2), &json!(2), &json!(1)));
    let consume = json!({"operation": "js_consume", "stream": "ORDERS", "consumer": "worker", "timeout_ms": 500});
    let came = js("consume", consume.clone()).await;
    assert_eq!((&came["count"], &came["acked"]), (&json!(2), &json!(2)));
    assert_eq!(js("empty", consume).await["count"], 0);
}

#[tokio::test]
async fn a_pipeline_that_comes_back_publishes_again() {
    let nats = Nats::start().await;
    nats.make_stream("ROUNDS", &["rounds.>"], "worker").await.expect("a stream");
    let server = server_with(&[]).await;
    let api = server.admin();
    let mut publish = at(
        &nats,
        "nats",
        json!({"operation": "js_publish", "subject": "rounds.new", "data": {"n": "{{ iter.n | default(1) }}"}}),
    );
    publish["name"] = json!("say");
    let rules = json!([{"when": "{{ (iter.n | default(1)) < 3 }}",
        "then": {"do": "jump", "to": "say", "set": {"iter.n": "{{ (iter.n | default(1)) + 1 }}"}}}]);
    let back = json!({"name": "back", "kind": "noop", "spec": {"policy": {"rules": rules}}});
    let ended = run(&api, "js/rounds", json!([{"step": "start", "tool": [publish, back]}])).await;
    assert_eq!(ended["output"]["say"]["seq"], 3, "{ended}");
    let consume = json!({"operation": "js_consume", "stream": "ROUNDS", "consumer": "worker", "timeout_ms": 500});
    let came = call(&api, "js/rounds_consumed", at(&nats, "nats", consume)).await;
    let numbers: Value =
        came["messages"].as_array().into_iter().flatten().map(|message| message["data"]["n"].clone()).collect();
    assert_eq!(numbers, json!([1, 2, 3]));
}

#[tokio::test]
async fn what_goes_wrong_has_its_class() {
    let nats = Nats::start().await;
    let server = server_with(&[]).await;
    let api = server.admin();
    let get = |options: Value| {
        let mut tool = json!({"kind": "nats", "operation": "kv_get", "bucket": "gone", "key": "k"});
        tool.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
        tool
    };
    let login = json!({"url": nats.url(), "user": nats.user, "password": nats.password});
    for (number, (tool, class)) in [
        (get(login.clone()), "not_found"),
        (get(json!({"url": nats.url(), "user": nats.user, "password": "wrong"})), "connect"),
        (get(json!({"url": "nats://127.0.0.1:1"})), "connect"),
        (get(json!({"url": "nats://169.254.169.254:4222"})), "denied"),
        (get(json!({"auth": "nobody"})), "credential"),
        (get(json!({})), "invalid_input"),
        (at(&nats, "nats", json!({"operation": "kv_gett"})), "invalid_input"),
    ]
    .into_iter()
    .enumerate()
    {
        let seen = envelope(&api, &format!("wrong/{number}"), tool.clone()).await;
        assert_eq!(seen["error"]["code"], class, "{tool}: {seen}");
    }
    let closed = noetl_tests::Server::start();
    while closed.nobody().get("/ready").await.status != 200 {}
    let seen = envelope(&closed.admin(), "wrong/private", get(login)).await;
    assert_eq!(seen["error"]["code"], "denied", "the private network is closed: {seen}");
}

#[tokio::test]
async fn a_credential_is_used_by_its_alias_and_goes_where_it_may() {
    let nats = Nats::start().await;
    nats.make_bucket("sessions").await.expect("a bucket");
    let server = server_with(&[]).await;
    let api = server.admin();
    let data = json!({"url": nats.url(), "user": nats.user, "password": nats.password});
    let credential = |hosts: Value| json!({"name": "nats_credential", "type": "nats", "data": data, "hosts": hosts});
    api.post("/api/credentials", credential(json!(["127.0.0.1"]))).await.is(201);
    let get =
        json!({"kind": "nats", "auth": "nats_credential", "operation": "kv_get", "bucket": "sessions", "key": "k"});
    assert_eq!(call(&api, "alias/get", get.clone()).await["status"], "not_found");
    let put = api.post("/api/credentials", credential(json!(["elsewhere.example.com"]))).await;
    assert!(put.status < 300, "{}", put.text());
    let seen = envelope(&api, "alias/elsewhere", get).await;
    assert_eq!(seen["error"]["code"], "credential", "{seen}");
    assert!(!seen.to_string().contains(&nats.password), "{seen}");
}
