//! Who may do what, beyond the matrix of routes: tokens cannot outgrow themselves, a tenant cannot take
//! what is shared from another, and a server that cannot start says why.

use std::time::{SystemTime, UNIX_EPOCH};

use noetl_tests::{Server, guest, with_manifest};
use serde_json::json;

fn in_an_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("fits") + 3_600_000
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
    let other = with_manifest(&guest("echo"), &manifest("description = \"other bytes\"\n"));
    api.push(other, "").await.problem(409, "version_taken");
    let metrics = api.get("/metrics").await.is(200).text();
    let compiled = metrics.lines().find(|line| line.starts_with("noetl_host_compiles_total")).expect("counted");
    // Two built-in components and the one that was taken; the refused one was never compiled.
    assert_eq!(compiled, "noetl_host_compiles_total 3");
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
