//! Who may do what: every route against tokens that must not reach it, tokens that cannot outgrow themselves, a tenant
//! that cannot take what is shared from another, and a server that cannot start says why.

use std::time::{SystemTime, UNIX_EPOCH};

use noetl_tests::{Api, Server, guest, with_manifest};
use reqwest::Method;
use serde_json::json;

fn in_an_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("fits") + 3_600_000
}

/// The guest `versioned` at a path.
fn versioned(path: &str, version: &str) -> Vec<u8> {
    let manifest = format!("path = \"{path}\"\nversion = \"{version}\"\nworld = \"transform\"\ncapabilities = []\n");
    with_manifest(&guest("versioned"), &manifest)
}

#[tokio::test]
async fn every_route_wants_a_token_and_every_change_the_right_tenant() {
    let server = Server::start();
    let admin = server.admin();
    admin.push(versioned("acme/thing", "1.0.0"), "").await.is(201);
    let secret =
        json!({"name": "shared", "type": "bearer", "data": {"token": "of acme"}, "hosts": ["api.example.com"]});
    admin.post("/api/credentials?tenant=acme", secret).await.is(201);
    let admin_id = admin.get("/api/whoami").await.is(200).json()["id"].as_str().expect("an id").to_owned();
    let foreign = server.with_token(&admin.token_for("other", "tenant").await);
    let stranger = server.with_token("noetl_thisisnotatoken");
    let document = server.nobody().get("/api/openapi.json").await.is(200).json();

    for (template, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            let open = operation["security"].as_array().is_none_or(Vec::is_empty);
            let method: Method = method.to_uppercase().parse().expect("a method");
            let id = if template.starts_with("/api/tokens") { admin_id.as_str() } else { "1" };
            let path = template.replace("{path}", "acme/thing").replace("{id}", id).replace("{code}", "trap");
            let path = path.replace("{name}", "shared");
            if open {
                assert_eq!(method, Method::GET, "{template} changes something and is open");
                let answer = server.nobody().get(&path).await;
                assert!(answer.status == 200 || template == "/ready", "{answer:?}");
                continue;
            }
            // On loopback the metrics are open; another test closes them.
            if template == "/metrics" {
                continue;
            }
            if operation["x-noetl-access"] == "service" {
                let answer = server.nobody().send(server.nobody().request(method.clone(), &path)).await;
                answer.problem(503, "internal_api_off");
                foreign.send(foreign.request(method.clone(), &path)).await.problem(403, "not_a_service");
                continue;
            }
            for api in [server.nobody(), stranger.clone()] {
                let answer = api.send(api.request(method.clone(), &path)).await;
                assert_eq!(answer.header("www-authenticate"), "Bearer", "{}", answer.what);
                answer.problem(401, "unauthenticated");
            }
            if template.starts_with("/api/plugins/{path}") {
                let answer = foreign.send(foreign.request(method.clone(), &path)).await;
                answer.problem(403, "forbidden_tenant");
            } else if template.starts_with("/api/executions/{id}") {
                let answer = foreign.send(foreign.request(method.clone(), &path)).await;
                answer.problem(404, "execution_not_found");
            } else if template.starts_with("/api/catalog/{path}") {
                // A path means something of the token's own tenant, who has none.
                let answer = foreign.send(foreign.request(method.clone(), &path)).await;
                answer.problem(404, "playbook_not_found");
                let answer = foreign.send(foreign.request(method.clone(), &format!("{path}?tenant=acme"))).await;
                answer.problem(403, "forbidden_tenant");
            } else if template.starts_with("/api/credentials/{name}") {
                // So does a name; who used another's credential is an empty list, since nobody of this tenant did.
                let answer = foreign.send(foreign.request(method.clone(), &path)).await;
                match template.ends_with("/audit") {
                    true => assert_eq!(answer.is(200).json()["uses"], json!([])),
                    false => drop(answer.problem(404, "credential_not_found")),
                }
                let answer = foreign.send(foreign.request(method.clone(), &format!("{path}?tenant=acme"))).await;
                answer.problem(403, "forbidden_tenant");
            } else if method != Method::GET {
                foreign_change(&foreign, &method, template, &path).await;
            }
        }
    }
    let shown = admin.get("/api/plugins/acme/thing").await.is(200).json();
    assert_eq!(shown["channels"]["stable"], "1.0.0", "nothing was changed");
    admin.get("/api/credentials/shared?tenant=acme").await.is(200);
}

/// Changes that are not about a plugin path of the request: each needs its own case, so a new one fails here.
async fn foreign_change(foreign: &Api, method: &Method, template: &str, path: &str) {
    match (method.as_str(), template) {
        ("POST", "/api/plugins") => {
            foreign.push(versioned("acme/thing", "2.0.0"), "").await.problem(403, "forbidden_tenant");
            foreign.push(versioned("system/thing", "2.0.0"), "").await.problem(403, "reserved_path");
        }
        ("POST", "/api/tokens") => {
            let body = json!({"name": "x", "tenant": "acme"});
            foreign.post(path, body).await.problem(403, "forbidden_tenant");
        }
        ("POST", "/api/credentials") => {
            let body = json!({"name": "shared", "type": "bearer", "data": {"token": "mine-alone"}});
            foreign.post(&format!("{path}?tenant=acme"), body).await.problem(403, "forbidden_tenant");
        }
        ("POST", "/api/wallet/rotate") => drop(foreign.post(path, json!({})).await.problem(403, "forbidden_tenant")),
        // A foreign token is not found rather than forbidden, so that ids cannot be tested.
        ("DELETE", "/api/tokens/{id}") => drop(foreign.delete(path).await.problem(404, "token_not_found")),
        ("POST", "/api/catalog/register" | "/api/execute" | "/api/execute/batch") => {
            foreign.post(&format!("{path}?tenant=acme"), json!({})).await.problem(403, "forbidden_tenant");
        }
        // Only looks at the text it is sent.
        ("POST", "/api/catalog/validate") => {}
        ("POST", "/api/events" | "/api/events/batch") => {
            let event = json!({"event_type": "call.done", "payload": {"command_id": "a#1"}});
            let body = match template {
                "/api/events" => json!({"execution_id": "1", "event_type": "call.done"}),
                _ => json!({"execution_id": "1", "events": [event]}),
            };
            foreign.post(path, body).await.problem(404, "execution_not_found");
        }
        _ => panic!("{method} {template} changes something and has no case here"),
    }
}

#[tokio::test]
async fn a_token_cannot_make_one_that_outlives_or_outranks_it() {
    let server = Server::start();
    let ends = in_an_hour();
    let wanted = json!({"name": "short", "tenant": "acme", "privilege": "user", "expires_at_ms": ends});
    let short = server.admin().post("/api/tokens", wanted).await.is(201).json();
    let short = server.with_token(short["secret"].as_str().expect("a secret"));
    let child = short.post("/api/tokens", json!({"name": "child"})).await.is(201).json();
    assert_eq!(child["expires_at_ms"].as_u64(), Some(ends), "{child}");
    short.post("/api/tokens", json!({"name": "high", "privilege": "tenant"})).await.is(403);
    let reader = server.admin().token_for("acme", "pure").await;
    server.with_token(&reader).post("/api/tokens", json!({"name": "more"})).await.is(403);
}

#[tokio::test]
async fn one_tenants_faults_do_not_take_a_shared_plugin_from_another() {
    let server = Server::start();
    let manifest = "path = \"system/faulty\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = [\"log\"]\n\
                    [failure]\nquarantine_after = 3\nquarantine_secs = 600\n";
    server.admin().push(with_manifest(&guest("faulty"), manifest), "").await.is(201);
    let of = async |tenant: &str| server.with_token(&server.admin().token_for(tenant, "user").await);
    let (bad, good) = (of("bad").await, of("good").await);
    for _ in 0..3 {
        bad.call("system/faulty", "panic:x").await.problem(502, "trap");
    }
    bad.call("system/faulty", "ok").await.problem(503, "quarantined");
    assert_eq!(good.call("system/faulty", "ok").await.is(200).text(), "ok");
}

#[tokio::test]
async fn a_system_service_that_keeps_faulting_is_served_by_the_version_before() {
    let server = Server::start();
    let api = server.admin();
    let manifest = |version: &str| {
        format!(
            "path = \"system/service\"\nversion = \"{version}\"\nworld = \"transform\"\ncapabilities = [\"log\"]\n\
             [failure]\nquarantine_after = 2\nquarantine_secs = 600\nrollback = false\n"
        )
    };
    api.push(with_manifest(&guest("versioned"), &manifest("1.0.0")), "").await.is(201);
    api.push(with_manifest(&guest("faulty"), &manifest("2.0.0")), "").await.is(201);
    for _ in 0..2 {
        api.call("system/service", "panic:x").await.problem(502, "trap");
    }
    let answer = api.call("system/service", "panic:x").await.is(200);
    assert_eq!(answer.header("noetl-plugin-version"), "1.0.0");
    let named = api.post_bytes("/api/plugins/system/service:call?version=2.0.0", b"ok".to_vec()).await;
    named.problem(503, "quarantined");
}

#[tokio::test]
async fn a_refused_push_leaves_no_module_behind() {
    let server = Server::start();
    let api = server.admin();
    // Until then the built-in components are being compiled, which is counted too.
    while api.get("/ready").await.status != 200 {}
    let manifest = |text: &str| format!("path = \"main/taken\"\nversion = \"1.0.0\"\nworld = \"transform\"\n{text}");
    api.push(with_manifest(&guest("echo"), &manifest("")), "").await.is(201);
    let compiled = async || {
        let metrics = api.get("/metrics").await.is(200).text();
        let line = metrics.lines().find(|line| line.starts_with("noetl_host_compiles_total")).expect("counted");
        line.to_owned()
    };
    let before = compiled().await;
    let other = with_manifest(&guest("echo"), &manifest("description = \"other bytes\"\n"));
    api.push(other, "").await.problem(409, "version_taken");
    assert_eq!(compiled().await, before, "the refused one was never compiled");
}

#[test]
fn a_start_that_fails_says_why_and_does_not_panic() {
    let data = tempfile::tempdir().expect("a folder");
    std::fs::write(data.path().join("admin.token"), "").expect("written");
    let ended = Server::command(data.path(), &[]).output().expect("it runs and ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && !said.contains("panicked"), "{said}");
    assert!(said.contains("admin.token"), "{said}");
}
