//! The life of a playbook in the catalog.

use noetl_tests::Api;
use serde_json::{Value, json};

use crate::support::{asks, hello, playbook, register, register_at, rows, server, start, texts, until_status};

/// Wrong in three places, on lines that are known.
const WRONG: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: wrong, path: demo/wrong}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: nowhere}]}
  - step: again
    tool: {kind: noop, timeout: soon}
  - step: again
    tool: {kind: noop}
";

#[tokio::test]
async fn a_text_with_mistakes_is_told_all_of_them_and_not_registered() {
    let server = server().await;
    let admin = server.admin();
    let checked = admin.post("/api/catalog/validate", json!({"content": WRONG})).await.is(200).json();
    assert_eq!(checked["valid"], false);
    let lines = |problems: &Value| {
        let errors = rows(problems).filter(|problem| problem["severity"] == "error");
        errors.map(|problem| problem["line"].as_u64().expect("a line")).collect::<Vec<_>>()
    };
    assert_eq!(lines(&checked["problems"]), [7, 9, 10], "{checked}");
    for problem in rows(&checked["problems"]) {
        assert!(problem["column"].is_u64() && problem["path"].is_string() && problem["message"].is_string());
    }

    let refused = register(&admin, WRONG).await.problem(422, "invalid_playbook");
    assert_eq!(refused["problems"], checked["problems"]);
    admin.get("/api/catalog/demo/wrong").await.problem(404, "playbook_not_found");

    let odd = hello("demo/odd").replacen("\"workload\"", "\"wrokload\"", 1);
    let warned = register(&admin, &odd).await.is(201).json();
    assert_eq!(rows(&warned["warnings"]).count(), 1, "{warned}");
    register_at(&admin, &odd, "?strict=true").await.problem(422, "invalid_playbook");
    let strict = admin.post("/api/catalog/validate?strict=true", json!({"content": odd})).await.is(200).json();
    assert_eq!(strict["valid"], false);
    let fine = admin.post("/api/catalog/validate", json!({"content": hello("a")})).await.is(200).json();
    assert_eq!(fine, json!({"valid": true, "problems": []}));
}

/// Nothing that stops it from being registered, and three things its author should know.
const DOUBTFUL: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: doubtful, path: demo/doubtful}
workload: {pg_auth: orders_db}
workflow:
  - step: start
    tool: {kind: noop, result: \"{{ 1 | tojsn }}\"}
    next: {arcs: [{step: ask}]}
  - step: ask
    tool: {kind: postgres, auth: \"{{ pg_auth }}\", query: SELECT 1, qery: x}
";

#[tokio::test]
async fn what_would_fail_later_is_told_at_registration() {
    let server = server().await;
    let admin = server.admin();
    let warned = register(&admin, DOUBTFUL).await.is(201).json();
    let told: Vec<(u64, &str, &str)> = rows(&warned["warnings"])
        .map(|warning| {
            let text = |name: &str| warning[name].as_str().unwrap_or_default();
            assert_eq!(warning["severity"], "warning", "{warning}");
            (warning["line"].as_u64().unwrap_or(0), text("message"), text("suggestion"))
        })
        .collect();
    let has = |line: u64, message: &str, suggestion: &str| {
        told.iter().any(|(at, said, next)| *at == line && said.contains(message) && next.contains(suggestion))
    };
    assert!(has(7, "no filter `tojsn`", "`tojson`"), "{told:?}");
    assert!(has(10, "`qery`", "`query`"), "{told:?}");
    assert!(has(10, "no credential `orders_db`", "`noetl credential add orders_db --type postgres`"), "{told:?}");

    let credential = json!({"name": "orders_db", "type": "postgres",
        "data": {"host": "127.0.0.1", "user": "u", "password": "p4ssw0rd-of-a-test", "database": "d"}});
    let added = admin.post("/api/credentials", credential).await;
    assert!(matches!(added.status, 200 | 201), "{added:?}");
    let checked = admin.post("/api/catalog/validate", json!({"content": DOUBTFUL})).await.is(200).json();
    let still = rows(&checked["problems"]).filter(|problem| problem["message"].to_string().contains("no credential"));
    assert_eq!(still.count(), 0, "{checked}");
}

#[tokio::test]
async fn a_playbook_lives_from_its_first_version_to_its_removal() {
    let server = server().await;
    let admin = server.admin();
    let (first, second) = (hello("demo/hello"), asks("demo/hello"));
    let registered = register(&admin, &first).await.is(201);
    assert_eq!(registered.header("location"), "/api/catalog/demo/hello");
    let registered = registered.json();
    let told = ["path", "version", "catalog_id", "kind"].map(|name| registered[name].clone());
    assert_eq!(told, [json!("demo/hello"), json!(1), json!("demo/hello@1"), json!("Playbook")]);
    assert_eq!(register(&admin, &first).await.is(200).json()["version"], 1, "the same text is the same version");
    let body = json!({"content": second, "resource_type": "Playbook"});
    assert_eq!(admin.post("/api/catalog/register", body).await.is(201).json()["version"], 2);

    let path = "/api/catalog/demo/hello";
    let newest = admin.get(path).await.is(200).json();
    assert_eq!((&newest["version"], &newest["content"]), (&json!(2), &json!(second)));
    let old = admin.get(&format!("{path}?version=1")).await.is(200).json();
    assert_eq!(old["content"], json!(first));
    assert!(
        old["created_at"].as_str().is_some_and(|time| time.ends_with('Z')) && old["created_by"] == "admin",
        "{old}"
    );
    admin.get(&format!("{path}?version=3")).await.problem(404, "version_not_found");
    let versions = admin.get(&format!("{path}:versions")).await.is(200).json();
    assert_eq!(texts(&versions["versions"], "catalog_id"), ["demo/hello@1", "demo/hello@2"]);

    let removed = admin.delete(&format!("{path}?version=2")).await.is(200).json();
    assert_eq!((&removed["status"], &removed["count"]), (&json!("archived"), &json!(1)));
    assert_eq!(admin.get(path).await.is(200).json()["version"], 1, "the path means what is left");
    assert_eq!(admin.get(&format!("{path}?version=2")).await.is(200).json()["archived"], true);
    admin.delete(path).await.is(200);
    admin.get(path).await.problem(404, "playbook_not_found");
    admin.post("/api/execute", json!({"path": "demo/hello"})).await.problem(404, "playbook_not_found");
    let restored = admin.post(&format!("{path}:restore"), json!({})).await.is(200).json();
    assert_eq!(texts(&restored["changed"], "catalog_id"), ["demo/hello@1", "demo/hello@2"]);

    let id = start(&admin, "demo/hello").await;
    let problem = admin.delete(&format!("{path}?purge=true")).await.problem(409, "playbook_in_use");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(&id)), "{problem}");
    admin.delete(&format!("{path}?purge=true&version=1")).await.is(200);
    admin.post(&format!("/api/executions/{id}/cancel"), json!({})).await.is(200);
    until_status(&admin, &id, "CANCELLED").await;
    admin.delete(&format!("{path}?purge=true")).await.is(200);
    admin.get(&format!("{path}:versions")).await.problem(404, "playbook_not_found");
    assert_eq!(register(&admin, &first).await.is(201).json()["version"], 3, "numbers are not given again");
}

async fn listed(api: &Api, query: &str) -> (Vec<String>, Option<String>) {
    let page = api.get(&format!("/api/catalog{query}")).await.is(200).json();
    let paths = texts(&page["entries"], "path").into_iter().map(str::to_owned).collect();
    (paths, page["next"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn the_catalog_is_listed_in_pages_and_bad_texts_are_refused() {
    let server = server().await;
    let admin = server.admin();
    for path in ["a/one", "a/two", "b/three"] {
        register(&admin, &hello(path)).await.is(201);
    }
    let (first, next) = listed(&admin, "?prefix=a/&limit=1").await;
    assert_eq!(first, ["a/one"]);
    let (second, end) = listed(&admin, &format!("?prefix=a/&limit=1&cursor={}", next.expect("there is more"))).await;
    assert_eq!((second, end), (vec!["a/two".to_owned()], None));
    admin.delete("/api/catalog/b/three").await.is(200);
    assert!(!listed(&admin, "").await.0.contains(&"b/three".to_owned()));
    assert!(listed(&admin, "?archived=true").await.0.contains(&"b/three".to_owned()));
    assert_eq!(admin.get("/api/catalog?limit=0").await.problem(400, "invalid_parameter")["field"], "limit");

    let body = json!({"content": hello("a"), "resource_type": "Credential"});
    let problem = admin.post("/api/catalog/register", body).await.problem(400, "invalid_body");
    assert_eq!(problem["field"], "resource_type");
    let large = playbook("a/large", json!([{"step": "start", "tool": {"kind": "noop"}, "desc": "x".repeat(4 << 20)}]));
    register(&admin, &large).await.problem(413, "playbook_too_large");
    admin.get("/api/catalog/a//b").await.problem(400, "invalid_path");
}

/// Six credentials that nobody has, none of them in a plain `auth`.
const UNKNOWN: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: unknown, path: demo/unknown}
keychain:
  - {name: mydb, credential: declared_pg}
  - {name: spare, credential: spare_pg}
workflow:
  - step: start
    tool:
      - {kind: http, url: \"https://example.com\", headers: {x: \"{{ keychain.nope.token }}\"}}
      - {kind: nats, auth: {credential: bus}, operation: js_publish, subject: s}
      - kind: transfer
        source: {type: postgres, auth: from_pg, query: SELECT 1}
        target: {type: postgres, auth: {credential: to_pg}, table: t}
      - {kind: postgres, auth: mydb, query: SELECT 1}
";

#[tokio::test]
async fn a_credential_that_is_missing_is_told_wherever_it_is_named() {
    let server = server().await;
    let admin = server.admin();
    let warned = register(&admin, UNKNOWN).await.is(201).json();
    let mut told: Vec<(&str, u64)> = Vec::new();
    for warning in rows(&warned["warnings"]) {
        let (message, line) = (warning["message"].as_str().unwrap_or_default(), warning["line"].as_u64().unwrap_or(0));
        let name = message.strip_prefix("there is no credential `").and_then(|rest| rest.split('`').next());
        told.push((name.unwrap_or(message), line));
    }
    let expected = [("spare_pg", 6), ("nope", 10), ("bus", 11), ("from_pg", 13), ("to_pg", 14), ("declared_pg", 15)];
    assert_eq!(told, expected, "{warned}");
}

#[tokio::test]
async fn a_field_that_another_one_calls_for_is_missed_at_registration() {
    let server = server().await;
    let admin = server.admin();
    let target = json!({"type": "postgres", "auth": "pg", "table": "t"});
    for (tool, says) in [
        (json!({"kind": "artifact"}), "`result_ref` is missing for `action: get`"),
        (json!({"kind": "nats", "operation": "kv_get", "key": "k"}), "`bucket` is missing for `operation: kv_get`"),
        (
            json!({"kind": "transfer", "source": {"type": "http"}, "target": target}),
            "`url` is missing for `type: http`",
        ),
    ] {
        let text = playbook("demo/lacking", json!([{"step": "start", "tool": tool}]));
        let refused = register(&admin, &text).await.problem(422, "invalid_playbook");
        assert!(refused["problems"].to_string().contains(says), "{refused}");
    }
    let input = json!({"kind": "artifact", "input": {"result_ref": "{{ fetch._ref }}"}});
    register(&admin, &playbook("demo/given", json!([{"step": "start", "tool": input}]))).await.is(201);
}
