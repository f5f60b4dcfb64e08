//! Who sees what: tenants among each other, tokens that only look, and services.

use noetl_tests::{Api, Server};
use reqwest::Method;
use serde_json::json;

use crate::support::{
    Stream, asks, hello, register, register_at, rows, run, server, server_with, start, texts, until_parked,
};

async fn tenant(server: &Server, name: &str, privilege: &str) -> Api {
    server.with_token(&server.admin().token_for(name, privilege).await)
}

#[tokio::test]
async fn a_tenant_does_not_learn_that_anothers_playbooks_and_executions_exist() {
    let server = server().await;
    let admin = server.admin();
    let (acme, other) = (tenant(&server, "acme", "user").await, tenant(&server, "other", "user").await);
    register(&acme, &asks("orders/ask")).await.is(201);
    register(&other, &hello("orders/ask")).await.is(201);
    let id = start(&acme, "orders/ask").await;
    until_parked(&acme, &id, "ask").await;
    let own = run(&other, "orders/ask", json!({})).await;
    assert_eq!(own["output"], json!({"hello": "world"}), "the same path is another playbook");

    assert_eq!(texts(&other.get("/api/catalog").await.is(200).json()["entries"], "tenant"), ["other"]);
    let listed = other.get("/api/executions?consistency=strong").await.is(200).json();
    assert_eq!(texts(&listed["executions"], "tenant"), ["other"]);
    let children = other.get(&format!("/api/executions?consistency=strong&parent={id}")).await.is(200).json();
    assert_eq!(children["executions"], json!([]));
    for (method, rest) in [
        (Method::GET, ""),
        (Method::GET, "/status"),
        (Method::GET, "/commands"),
        (Method::GET, "/events"),
        (Method::GET, "/why"),
        (Method::POST, "/cancel"),
        (Method::POST, "/resume"),
        (Method::POST, "/retry"),
        (Method::DELETE, ""),
    ] {
        let foreign = other.send(other.request(method.clone(), &format!("/api/executions/{id}{rest}"))).await;
        let foreign = foreign.problem(404, "execution_not_found");
        let unknown = other.send(other.request(method.clone(), &format!("/api/executions/1{rest}"))).await;
        let unknown = unknown.problem(404, "execution_not_found");
        let detail = foreign["detail"].as_str().expect("a detail").replace(&id, "1");
        assert_eq!(unknown["detail"], detail, "{method} {rest}: the two cannot be told apart");
    }
    assert_eq!(Stream::ask(&other, &id, None).await.status(), 404);
    other.get(&format!("/api/replay/state?execution_id={id}")).await.problem(404, "execution_not_found");
    let wanted = format!("/api/replay/state?execution_id={id}&tenant_id=acme");
    other.get(&wanted).await.problem(403, "forbidden_tenant");
    let event = json!({"execution_id": id, "event_type": "call.done", "payload": {"command_id": "ask#1"}});
    other.post("/api/events", event.clone()).await.problem(404, "execution_not_found");
    let batch = json!({"execution_id": id, "events": [{"event_type": "call.done"}]});
    other.post("/api/events/batch", batch).await.problem(404, "execution_not_found");
    for path in ["/api/catalog", "/api/executions", "/api/catalog/orders/ask"] {
        other.get(&format!("{path}?tenant=acme")).await.problem(403, "forbidden_tenant");
    }
    other.post("/api/execute?tenant=acme", json!({"path": "orders/ask"})).await.problem(403, "forbidden_tenant");
    register_at(&other, &hello("x"), "?tenant=acme").await.problem(403, "forbidden_tenant");

    let all = admin.get("/api/executions?consistency=strong").await.is(200).json();
    assert_eq!(rows(&all["executions"]).count(), 2, "an administrator sees both");
    let one = admin.get("/api/executions?consistency=strong&tenant=acme").await.is(200).json();
    assert_eq!(texts(&one["executions"], "execution_id"), [id.as_str()]);
    assert_eq!(admin.get("/api/catalog").await.is(200).json()["entries"], json!([]), "`main` has none");
    admin.post(&format!("/api/executions/{id}/cancel"), json!({})).await.is(200);
}

#[tokio::test]
async fn a_token_that_only_looks_starts_and_changes_nothing() {
    let server = server().await;
    let (user, reader) = (tenant(&server, "acme", "user").await, tenant(&server, "acme", "pure").await);
    register(&user, &asks("orders/ask")).await.is(201);
    let id = start(&user, "orders/ask").await;
    reader.get(&format!("/api/executions/{id}")).await.is(200);
    reader.get("/api/catalog/orders/ask").await.is(200);
    reader.post("/api/catalog/validate", json!({"content": hello("a")})).await.is(200);
    register(&reader, &hello("a")).await.problem(403, "forbidden_privilege");
    reader.post("/api/execute", json!({"path": "orders/ask"})).await.problem(403, "forbidden_privilege");
    reader.post(&format!("/api/executions/{id}/cancel"), json!({})).await.problem(403, "forbidden_privilege");
    reader.delete(&format!("/api/executions/{id}")).await.problem(403, "forbidden_privilege");
    reader.delete("/api/catalog/orders/ask").await.problem(403, "forbidden_privilege");
}

#[tokio::test]
async fn what_is_under_system_is_everybodys_and_the_platforms_to_change() {
    let server = server().await;
    let admin = server.admin();
    let acme = tenant(&server, "acme", "tenant").await;
    let wanted = json!({"name": "operator", "privilege": "user"});
    let made = admin.post("/api/tokens", wanted).await.is(201).json();
    let operator = server.with_token(made["secret"].as_str().expect("a secret"));
    register(&admin, &hello("system/hello")).await.is(201);
    for weak in [&acme, &operator] {
        register(weak, &hello("system/hello")).await.problem(403, "forbidden");
        weak.delete("/api/catalog/system/hello").await.problem(403, "forbidden");
    }
    assert_eq!(acme.get("/api/catalog/system/hello").await.is(200).json()["tenant"], "system");
    assert_eq!(run(&acme, "system/hello", json!({"name": "acme"})).await["output"], json!({"hello": "acme"}));
    register_at(&operator, &hello("own"), "?tenant=acme").await.is(201);
    acme.get("/api/catalog/own").await.is(200);
}

const ROUTES: [(&str, &str); 5] = [
    ("POST", "/api/internal/outbox/claim"),
    ("POST", "/api/internal/outbox/mark-published"),
    ("POST", "/api/internal/outbox/mark-failed"),
    ("GET", "/api/internal/outbox/pending-count"),
    ("POST", "/api/internal/events/project"),
];

async fn refused_everywhere(api: &Api, status: u16, code: &str) {
    for (method, path) in ROUTES {
        let method: Method = method.parse().expect("a method");
        api.send(api.request(method, path)).await.problem(status, code);
    }
}

#[tokio::test]
async fn the_internal_routes_are_for_services() {
    let closed = Server::start();
    refused_everywhere(&closed.nobody(), 503, "internal_api_off").await;
    refused_everywhere(&closed.with_token("guess"), 503, "internal_api_off").await;
    refused_everywhere(&tenant(&closed, "acme", "tenant").await, 403, "not_a_service").await;
    closed.admin().get("/api/internal/outbox/pending-count").await.is(200);

    let secret = "a-service-token-of-the-operator";
    let server = server_with(&[("NOETL_INTERNAL_API_TOKEN", secret)]).await;
    for wrong in [server.nobody(), server.with_token("guess"), server.with_token(&secret[1..])] {
        refused_everywhere(&wrong, 403, "not_a_service").await;
    }
    refused_everywhere(&tenant(&server, "acme", "tenant").await, 403, "not_a_service").await;
    let service = server.with_token(secret);
    service.get("/api/executions").await.problem(401, "unauthenticated");
    let ready = service.post("/api/internal/events/project", json!({})).await.is(200).json();
    assert!(ready["position"].is_string(), "{ready}");
    let problem = service.post("/api/internal/outbox/mark-published", json!({"outbox_ids": []})).await;
    assert_eq!(problem.problem(400, "invalid_body")["field"], "outbox_ids");
}

#[tokio::test]
async fn what_was_appended_is_handed_out_until_it_is_published() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    let ended = run(&admin, "demo/hello", json!({})).await;
    let id = ended["execution_id"].as_str().expect("an id");
    let claim = async || admin.post("/api/internal/outbox/claim?limit=100", json!({})).await.is(200).json();
    let (mut about, mut ids) = (0, Vec::new());
    loop {
        let claimed = claim().await;
        if claimed["claimed"] == 0 {
            break;
        }
        for row in rows(&claimed["rows"]) {
            assert!(row["subject"].is_string() && row["key"].is_string() && row["payload_codec"] == "json", "{row}");
            about += usize::from(row["payload"].as_str().is_some_and(|text| text.contains(id)));
            ids.push(row["outbox_id"].as_str().expect("an id").to_owned());
        }
    }
    assert!(about > 0, "the execution is among what was handed out");
    ids.dedup();
    let body = json!({"outbox_ids": ids});
    let marked = admin.post("/api/internal/outbox/mark-published", body.clone()).await.is(200).json();
    assert_eq!(marked["marked"], ids.len());
    assert_eq!(admin.post("/api/internal/outbox/mark-published", body).await.is(200).json()["marked"], 0);
    let pending = admin.get("/api/internal/outbox/pending-count").await.is(200).json();
    assert!(pending["pending"].as_u64().is_some_and(|left| left < 10), "{pending}");
}
