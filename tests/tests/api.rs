//! The API of the real binary over real connections: what a tenant sees, the life of a plugin, problems and their
//! pages, streams of log lines, limits, and starting and stopping.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use noetl_contract::Digest;
use noetl_tests::{Server, guest, with_manifest, with_marker};
use reqwest::Method;
use serde_json::{Value, json};

fn manifest(path: &str, version: &str, rest: &str) -> String {
    format!("path = \"{path}\"\nversion = \"{version}\"\nworld = \"transform\"\n{rest}")
}

/// The guest `versioned` at a path, with a marker of its own for each version.
fn versioned(path: &str, version: &str, marker: u32) -> Vec<u8> {
    let rest = "overridable = true\ncapabilities = []\n";
    with_manifest(&with_marker(&guest("versioned"), marker), &manifest(path, version, rest))
}

fn faulty(path: &str, rest: &str) -> Vec<u8> {
    let rest = format!("capabilities = [\"log\"]\n{rest}");
    with_manifest(&guest("faulty"), &manifest(path, "1.0.0", &rest))
}

const FAULTY_LIMITS: &str =
    "[limits]\ncpu_ms = 200\nwall_ms = 2000\nmemory_mb = 64\noutput_mb = 8\nhost_calls = 1000\n";

#[tokio::test]
async fn a_tenant_sees_its_own_and_the_platforms_plugins_and_changes_only_its_own() {
    let server = Server::start();
    let admin = server.admin();
    for path in ["acme/thing", "other/thing", "system/thing"] {
        admin.push(versioned(path, "1.0.0", 1), "").await.is(201);
    }
    let acme = server.with_token(&admin.token_for("acme", "tenant").await);
    let listed = acme.get("/api/plugins").await.is(200).json();
    let paths: Vec<&str> =
        listed["plugins"].as_array().expect("a list").iter().filter_map(|row| row["entry"]["path"].as_str()).collect();
    assert!(paths.contains(&"acme/thing") && paths.contains(&"system/thing"), "{paths:?}");
    assert!(!paths.contains(&"other/thing"), "{paths:?}");

    acme.call("system/thing", "x").await.is(200);
    acme.get("/api/plugins/system/thing").await.is(200);
    acme.post_bytes("/api/plugins/acme/thing:call?tenant=other", vec![]).await.problem(403, "forbidden_tenant");
    for verb in ["channel", "rollback", "release"] {
        acme.post(&format!("/api/plugins/system/thing:{verb}"), json!({})).await.problem(403, "forbidden_tenant");
    }
    acme.delete("/api/plugins/system/thing?version=1.0.0").await.problem(403, "forbidden_tenant");
    let hidden = acme.get("/api/plugins/system/thing:history").await.is(200).json();
    assert_eq!(hidden["history"], json!([]));

    let reader = server.with_token(&admin.token_for("acme", "pure").await);
    reader.call("acme/thing", "x").await.is(200);
    reader.push(versioned("acme/thing", "2.0.0", 2), "").await.problem(403, "forbidden_privilege");
    let body = json!({"channel": "dev", "version": "1.0.0"});
    reader.post("/api/plugins/acme/thing:channel", body).await.problem(403, "forbidden_privilege");
}

#[tokio::test]
async fn a_plugin_lives_from_push_to_delete() {
    let server = Server::start();
    let admin = server.admin();
    let (first, second) = (versioned("acme/orders/enrich", "1.0.0", 1), versioned("acme/orders/enrich", "1.1.0", 2));
    let path = "/api/plugins/acme/orders/enrich";

    let pushed = admin.push(first.clone(), "?reason=first").await.is(201);
    assert_eq!(pushed.header("location"), path);
    let pushed = pushed.json();
    assert_eq!((&pushed["version"], &pushed["channel"]), (&json!("1.0.0"), &json!("stable")));
    assert_eq!(pushed["digest"], Digest::of(&first).to_string());
    assert_eq!(admin.push(first.clone(), "").await.is(200).json()["created"], false);
    admin.push(versioned("acme/orders/enrich", "1.0.0", 9), "").await.problem(409, "version_taken");

    let answer = admin.call("acme/orders/enrich", "hi").await.is(200);
    assert_eq!(answer.json(), json!({"marker": "NOETL-MARKER-000001", "echo": "hi"}));
    assert_eq!(answer.header("noetl-plugin-path"), "acme/orders/enrich");
    assert_eq!(answer.header("noetl-plugin-version"), "1.0.0");
    assert_eq!(answer.header("noetl-plugin-digest"), Digest::of(&first).to_string());
    assert_eq!(answer.header("noetl-resolved-by"), "channel");
    assert!(answer.header("noetl-duration-us").parse::<u64>().is_ok());

    let marker = async |query: &str| {
        let answer = admin.post_bytes(&format!("{path}:call{query}"), vec![]).await.is(200);
        (
            answer.json()["marker"].as_str().expect("a marker")[13..].to_owned(),
            answer.header("noetl-resolved-by").to_owned(),
        )
    };
    let is = |number: u32, by: &str| (format!("{number:06}"), by.to_owned());
    assert_eq!(admin.push(second.clone(), "").await.is(201).json()["previous"], "1.0.0");
    assert_eq!(marker("").await, is(2, "channel"));
    assert_eq!(marker("?version=1.0.0").await.0, "000001");

    let moved = admin.post(&format!("{path}:rollback"), json!({"reason": "worse"})).await.is(200).json();
    assert_eq!((&moved["from"], &moved["to"], &moved["channel"]), (&json!("1.1.0"), &json!("1.0.0"), &json!("stable")));
    assert_eq!(marker("").await, is(1, "channel"));
    admin.post(&format!("{path}:rollback"), json!({})).await.problem(409, "nothing_before");

    let body = json!({"channel": "canary", "version": "1.1.0", "reason": "try"});
    admin.post(&format!("{path}:channel"), body).await.is(200);
    assert_eq!(marker("?channel=canary").await, is(2, "channel"));
    admin.post_bytes(&format!("{path}:call?channel=nightly"), vec![]).await.problem(404, "channel_not_found");

    admin.post(&format!("{path}:pin"), json!({"version": "1.1.0"})).await.is(200);
    assert_eq!(marker("").await, is(2, "pin"));
    admin.post(&format!("{path}:pin"), json!({})).await.problem(400, "invalid_body");
    admin.post(&format!("{path}:pin"), json!({"version": null})).await.is(200);
    assert_eq!(marker("").await, is(1, "channel"));

    admin.delete(&format!("{path}?version=1.1.0")).await.problem(409, "version_in_use");
    admin.post(&format!("{path}:channel"), json!({"channel": "canary", "version": "1.0.0"})).await.is(200);
    admin.delete(&format!("{path}?version=1.1.0&reason=done")).await.is(200);
    admin.post_bytes(&format!("{path}:call?version=1.1.0"), vec![]).await.problem(404, "version_not_found");
    admin.delete(path).await.problem(400, "invalid_parameter");

    let history = admin.get(&format!("{path}:history")).await.is(200).json();
    let history = history["history"].as_array().expect("a list");
    assert!(history.iter().all(|change| change["position"].is_string()), "ids are strings");
    assert!(history.iter().any(|change| change["reason"] == "worse" && change["actor"] == "admin"), "{history:?}");
}

#[tokio::test]
async fn bytes_are_fetched_once_and_then_only_asked_about() {
    let server = Server::start();
    let admin = server.admin();
    let component = versioned("acme/thing", "1.0.0", 1);
    let tag = format!("\"{}\"", Digest::of(&component));
    admin.push(component.clone(), "").await.is(201);
    admin.push(versioned("acme/thing", "2.0.0", 2), "?channel=canary").await.is(201);

    let fetched = admin.get("/api/plugins/acme/thing:fetch").await.is(200);
    assert_eq!(fetched.header("etag"), tag);
    assert_eq!(fetched.header("content-type"), "application/wasm");
    assert_eq!(fetched.header("content-length"), component.len().to_string());
    assert!(fetched.bytes == component, "the bytes that were pushed");
    let request = |query: &str| admin.request(Method::GET, &format!("/api/plugins/acme/thing:fetch{query}"));
    let same = admin.send(request("").header("if-none-match", &tag)).await.is(304);
    assert!(same.bytes.is_empty());
    admin.send(request("?channel=canary").header("if-none-match", &tag)).await.is(200);
    admin.send(request("?version=1.0.0").header("if-none-match", &tag)).await.is(304);
    let head = admin.send(admin.request(Method::HEAD, "/api/plugins/acme/thing:fetch")).await.is(200);
    assert_eq!((head.header("etag"), head.bytes.len()), (tag.as_str(), 0));

    let right = Digest::of(&component);
    admin.get(&format!("/api/plugins/acme/thing:fetch?digest={right}")).await.is(200);
    let wrong = Digest::of(b"other");
    let problem = admin.get(&format!("/api/plugins/acme/thing:fetch?digest={wrong}")).await;
    assert_eq!(problem.problem(409, "digest_mismatch")["digest"], right.to_string());
    admin.get("/api/plugins/acme/none:fetch").await.problem(404, "plugin_not_found");
}

#[tokio::test]
async fn a_binding_serves_one_tenant_and_nobody_else() {
    let server = Server::start();
    let admin = server.admin();
    admin.push(versioned("system/greet", "1.0.0", 1), "").await.is(201);
    admin.push(versioned("acme/system/greet", "1.0.0", 2), "").await.is(201);
    let acme = server.with_token(&admin.token_for("acme", "tenant").await);
    let weak = server.with_token(&admin.token_for("acme", "user").await);
    let body = || json!({"to": "acme/system/greet", "reason": "ours"});
    weak.post("/api/plugins/system/greet:bind", body()).await.problem(403, "forbidden_privilege");
    admin.post("/api/plugins/system/greet:bind", body()).await.problem(400, "invalid_body");
    acme.post("/api/plugins/system/greet:bind", body()).await.is(200);

    let answer = acme.call("system/greet", "").await.is(200);
    assert_eq!(answer.header("noetl-resolved-by"), "binding");
    assert_eq!(answer.header("noetl-plugin-path"), "acme/system/greet");
    let other = server.with_token(&admin.token_for("other", "user").await);
    assert_eq!(other.call("system/greet", "").await.is(200).header("noetl-plugin-path"), "system/greet");
    let shown = other.get("/api/plugins/system/greet").await.is(200).json();
    assert_eq!(shown["bindings"], json!({}), "another tenant's binding is none of its business");

    acme.post("/api/plugins/system/greet:bind", json!({"to": null})).await.is(200);
    assert_eq!(acme.call("system/greet", "").await.is(200).header("noetl-plugin-path"), "system/greet");
    acme.post("/api/plugins/system/greet:bind", json!({"to": "other/thing"})).await.problem(403, "foreign_tenant");
}

#[tokio::test]
async fn more_capabilities_need_a_grant() {
    let server = Server::start();
    let admin = server.admin();
    let with = |version: &str, capabilities: &str| {
        let rest = format!("capabilities = [{capabilities}]\n");
        with_manifest(&guest("versioned"), &manifest("acme/thing", version, &rest))
    };
    admin.push(with("1.0.0", ""), "").await.is(201);
    let wanting = with("1.1.0", "\"clock\", \"log\"");
    let problem = admin.push(wanting.clone(), "").await.problem(409, "needs_grant");
    assert_eq!(problem["added"], json!(["log", "clock"]));
    let problem = admin.push(wanting.clone(), "?grant=log").await.problem(409, "needs_grant");
    assert_eq!(problem["added"], json!(["clock"]));
    assert_eq!(admin.get("/api/plugins/acme/thing").await.json()["channels"]["stable"], "1.0.0");
    admin.push(wanting, "?grant=log,clock").await.is(201);
    admin.push(with("1.2.0", "\"clock\", \"log\", \"random\""), "?grant=all").await.is(201);
    admin.push(with("1.3.0", ""), "?grant=telepathy").await.problem(400, "invalid_parameter");
    admin.push(b"not a component".to_vec(), "").await.problem(422, "not_a_component");
}

#[tokio::test]
async fn what_goes_wrong_in_a_plugin_is_a_problem_of_that_call() {
    let server = Server::start();
    let admin = server.admin();
    let rest = format!("{FAULTY_LIMITS}[failure]\nquarantine_after = 0\n");
    admin.push(faulty("acme/faulty", &rest), "").await.is(201);
    for (input, status, code) in [
        ("panic:it broke", 502, "trap"),
        ("loop", 504, "timeout"),
        ("alloc:500", 502, "memory"),
        ("output:20", 502, "output"),
        ("hostcalls:5000", 502, "quota"),
    ] {
        let problem = admin.call("acme/faulty", input).await.problem(status, code);
        assert_eq!(problem["class"], code, "{problem}");
    }
    let failed = admin.call("acme/faulty", "fail:nope").await.is(422);
    assert_eq!(failed.header("noetl-plugin-version"), "1.0.0");
    let failure = failed.problem(422, "plugin_failure")["failure"].clone();
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("nope"), &json!(false)));
    assert_eq!(admin.call("acme/faulty", "ok").await.is(200).text(), "ok");
    let secret = admin.call("acme/faulty", "panic:Authorization: Bearer abcdef0123456789").await.is(502);
    assert!(!secret.text().contains("abcdef0123456789"), "{}", secret.text());
}

#[tokio::test]
async fn a_plugin_in_quarantine_says_when_to_come_back_and_can_be_released() {
    let server = Server::start();
    let admin = server.admin();
    let rest = format!("{FAULTY_LIMITS}[failure]\nquarantine_after = 2\nquarantine_secs = 600\n");
    admin.push(faulty("acme/faulty", &rest), "").await.is(201);
    for _ in 0..2 {
        admin.call("acme/faulty", "panic:x").await.problem(502, "trap");
    }
    let closed = admin.call("acme/faulty", "ok").await.is(503);
    assert!(closed.header("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=600).contains(&seconds)));
    closed.problem(503, "quarantined");
    let shown = admin.get("/api/plugins/acme/faulty").await.is(200).json();
    assert_eq!(shown["quarantine"]["versions"], json!(["1.0.0"]));
    let released = admin.post("/api/plugins/acme/faulty:release", json!({"reason": "looked at it"})).await.is(200);
    assert_eq!(released.json()["released"], true);
    admin.call("acme/faulty", "ok").await.is(200);
}

#[tokio::test]
async fn every_problem_has_a_help_page_and_says_what_was_wrong() {
    let server = Server::start();
    let (admin, nobody) = (server.admin(), server.nobody());
    let index = nobody.get("/errors").await.is(200).text();
    let codes: Vec<&str> = index.lines().filter_map(|line| line.strip_prefix("- ")?.split(':').next()).collect();
    assert!(codes.len() > 40, "{index}");
    for code in codes {
        let page = nobody.get(&format!("/errors/{code}")).await.is(200).text();
        assert!(page.starts_with("# ") && page.contains("## What to do"), "{code}: {page}");
    }
    nobody.get("/errors/nonsense").await.problem(404, "not_found");

    let problem = nobody.get("/api/nonsense").await.problem(404, "unknown_route");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("/api/openapi.json")));
    nobody.get(problem["type"].as_str().expect("a page")).await.is(200);
    let wrong = admin.send(admin.request(Method::PUT, "/api/plugins")).await;
    assert_eq!(wrong.header("allow"), "GET, POST");
    wrong.problem(405, "method_not_allowed");
    assert_eq!(admin.get("/api/plugins?prefx=a").await.problem(400, "invalid_parameter")["field"], "prefx");
    assert_eq!(admin.get("/api/plugins/Acme/x").await.problem(400, "invalid_path")["field"], "path");
    assert_eq!(admin.get("/api/plugins/acme/x:logs?limit=x").await.problem(400, "invalid_parameter")["field"], "limit");
    let body = json!({"channel": "stable", "version": 1});
    let problem = admin.post("/api/plugins/acme/x:channel", body).await.problem(400, "invalid_body");
    assert_eq!(problem["field"], "version");
    let request = admin.request(Method::POST, "/api/tokens").header("content-type", "application/json").body("{");
    admin.send(request).await.problem(400, "invalid_body");

    let answer = admin.send(admin.request(Method::GET, "/api/nonsense").header("x-request-id", "mine-1")).await;
    assert_eq!(answer.header("x-request-id"), "mine-1");
    assert_eq!(answer.json()["request_id"], "mine-1");
}

/// Reads server-sent events until there are `count` with data, as (event, id, data).
async fn events(response: reqwest::Response, count: usize) -> Vec<(String, String, String)> {
    let mut stream = response.bytes_stream();
    let (mut text, mut found) = (String::new(), Vec::new());
    while found.len() < count {
        let piece = stream.next().await.expect("the stream goes on").expect("readable");
        text.push_str(&String::from_utf8_lossy(&piece));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let line = event.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim_start().to_owned()
            };
            if !field("data:").is_empty() {
                found.push((field("event:"), field("id:"), field("data:")));
            }
            text = rest.to_owned();
        }
    }
    found
}

#[tokio::test]
async fn log_lines_are_read_followed_and_resumed_and_stay_within_the_tenant() {
    let server = Server::start();
    let admin = server.admin();
    let quiet = format!("{FAULTY_LIMITS}[failure]\nquarantine_after = 0\n");
    admin.push(faulty("system/faulty", &quiet), "").await.is(201);
    let acme = server.with_token(&admin.token_for("acme", "user").await);
    let other = server.with_token(&admin.token_for("other", "user").await);
    acme.call("system/faulty", "hostcalls:2").await.is(200);
    other.call("system/faulty", "hostcalls:1").await.is(200);

    let path = "/api/plugins/system/faulty:logs";
    let lines = acme.get(path).await.is(200).json()["lines"].clone();
    let lines = lines.as_array().expect("a list");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line["tenant"] == "acme" && line["seq"].is_string() && line["call"].is_string()));
    assert_eq!(admin.get(path).await.is(200).json()["lines"].as_array().map(Vec::len), Some(3));
    assert_eq!(acme.get(&format!("{path}?level=error")).await.is(200).json()["lines"], json!([]));
    acme.get(&format!("{path}?tenant=other")).await.problem(403, "forbidden_tenant");

    let follow = async |last: Option<&str>| {
        let request = acme.request(Method::GET, &format!("{path}?follow=true"));
        let request = last.iter().fold(request, |request, id| request.header("last-event-id", *id));
        let response = request.send().await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        response
    };
    let following = follow(None).await;
    other.call("system/faulty", "hostcalls:1").await.is(200);
    acme.call("system/faulty", "hostcalls:1").await.is(200);
    let seen = events(following, 3).await;
    assert!(seen.iter().all(|(event, id, data)| {
        let line: Value = serde_json::from_str(data).expect("a line is JSON");
        event == "log" && line["tenant"] == "acme" && line["seq"] == *id
    }));
    let resumed = events(follow(Some(&seen[0].1)).await, 2).await;
    assert_eq!(resumed, seen[1..]);
}

#[tokio::test]
async fn a_stream_of_log_lines_does_not_hold_up_a_stop() {
    let server = Server::start();
    let admin = server.admin();
    admin.push(versioned("acme/thing", "1.0.0", 1), "").await.is(201);
    let request = admin.request(Method::GET, "/api/plugins/acme/thing:logs?follow=true");
    let response = request.send().await.expect("an answer");
    let (_, said) = tokio::task::spawn_blocking(move || server.stop()).await.expect("it stops");
    assert!(!said.contains("dropped"), "the stream ended by itself:\n{said}");
    let rest: Vec<_> = response.bytes_stream().collect().await;
    assert!(rest.iter().all(Result::is_ok), "the stream ended whole: {rest:?}");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_with_the_name_of_the_limit() {
    let server = Server::start_with(&[("NOETL_SERVER_MAX_COMPONENT_MB", "1"), ("NOETL_SERVER_MAX_CALL_MB", "1")]);
    let admin = server.admin();
    let problem = admin.push(vec![0; (1 << 20) + 1], "").await.problem(413, "component_too_large");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("server.max_component_mb")), "{problem}");
    assert_eq!(problem["limit_bytes"], 1 << 20);
    // Without a length in advance the limit is met on the way.
    let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0u8; 64 << 10])).take(40);
    let request = admin.request(Method::POST, "/api/plugins").body(reqwest::Body::wrap_stream(pieces));
    admin.send(request).await.problem(413, "component_too_large");
    admin.push(vec![0; 1 << 20], "").await.problem(422, "not_a_component");

    // The announced length is enough: not a byte of the body is waited for.
    let address = server.url.trim_start_matches("http://");
    let mut raw = TcpStream::connect(address).expect("connects");
    let token = server.admin_token();
    write!(
        raw,
        "POST /api/plugins HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 9999999\r\n\r\n"
    )
    .expect("writes");
    let mut head = [0; 12];
    raw.read_exact(&mut head).expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 413");
    assert!(std::fs::read_dir(server.data().join("payloads/tmp")).is_ok_and(|mut files| files.next().is_none()));
}

#[tokio::test]
async fn tokens_are_made_listed_and_revoked_within_their_reach() {
    let server = Server::start();
    let admin = server.admin();
    let file = std::fs::metadata(server.data().join("admin.token")).expect("made at the first start");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);

    let secret = admin.token_for("acme", "tenant").await;
    let acme = server.with_token(&secret);
    let own = acme.get("/api/whoami").await.is(200).json();
    assert_eq!((&own["tenant"], &own["privilege"], &own["admin"]), (&json!("acme"), &json!("tenant"), &json!(false)));
    assert!(own["id"].is_string() && own.get("secret").is_none());
    let made = acme.post("/api/tokens", json!({"name": "second", "privilege": "user"})).await.is(201).json();
    assert_eq!(made["tenant"], "acme");
    let weak = server.with_token(made["secret"].as_str().expect("a secret"));
    weak.post("/api/tokens", json!({"name": "x", "privilege": "tenant"})).await.problem(403, "forbidden_privilege");
    acme.post("/api/tokens", json!({"name": "x", "privilege": "system"})).await.problem(403, "forbidden_privilege");
    admin
        .post("/api/tokens", json!({"name": "x", "tenant": "acme", "privilege": "system"}))
        .await
        .problem(400, "invalid_body");
    admin.post("/api/tokens", json!({"name": ""})).await.problem(400, "invalid_body");
    admin.post("/api/tokens", json!({"name": "x", "expires_at_ms": 1})).await.problem(400, "invalid_body");

    let names = |list: &Value| {
        let rows = list["tokens"].as_array().expect("a list").clone();
        rows.iter().map(|row| row["tenant"].as_str().unwrap_or("all").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&acme.get("/api/tokens").await.is(200).json()), ["acme", "acme"]);
    assert_eq!(names(&admin.get("/api/tokens").await.is(200).json()).len(), 3);
    weak.delete(&format!("/api/tokens/{}", own["id"].as_str().expect("an id")))
        .await
        .problem(403, "forbidden_privilege");

    let id = made["id"].as_str().expect("an id");
    assert_eq!(acme.delete(&format!("/api/tokens/{id}")).await.is(200).json()["own"], false);
    weak.get("/api/whoami").await.problem(401, "unauthenticated");
    let revoked = acme.delete(&format!("/api/tokens/{}", own["id"].as_str().expect("an id"))).await.is(200).json();
    assert_eq!(revoked["own"], true);
    acme.get("/api/whoami").await.problem(401, "unauthenticated");

    let soon = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64 + 3_600_000;
    let lasting = admin.post("/api/tokens", json!({"name": "x", "expires_at_ms": soon})).await.is(201).json();
    assert_eq!(lasting["expires_at_ms"], soon);

    let admin_secret = server.admin_token();
    let (_, said) = server.stop();
    assert!(said.contains("answered"), "requests are logged:\n{said}");
    for secret in [secret, admin_secret] {
        assert!(!said.contains(&secret), "a secret is in the server's log");
    }
}

#[tokio::test]
async fn the_description_is_whole_and_ids_are_strings() {
    let server = Server::start();
    let admin = server.admin();
    let document = server.nobody().get("/api/openapi.json").await.is(200).json();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")));
    let mut references = Vec::new();
    collect(&document, &mut |name, value| {
        if name == "$ref" {
            references.push(value.as_str().expect("a reference is text").to_owned());
        }
    });
    assert!(!references.is_empty());
    for reference in references {
        let target = document.pointer(reference.strip_prefix('#').expect("references stay within the document"));
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    let mut names: Vec<String> = Vec::new();
    for item in document["paths"].as_object().expect("paths").values() {
        for operation in item.as_object().expect("operations").values() {
            assert!(operation["responses"].as_object().is_some_and(|responses| !responses.is_empty()));
            names.push(format!("{}{}", operation["tags"], operation["operationId"]));
        }
    }
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "operation ids are unique within their tag");

    admin.push(faulty("acme/faulty", FAULTY_LIMITS), "").await.is(201);
    admin.call("acme/faulty", "hostcalls:1").await.is(200);
    for path in [
        "/api/plugins",
        "/api/plugins/acme/faulty",
        "/api/plugins/acme/faulty:history",
        "/api/plugins/acme/faulty:logs",
        "/api/tokens",
        "/api/whoami",
    ] {
        collect(&admin.get(path).await.is(200).json(), &mut |name, value| {
            let is_id = matches!(name, "id" | "seq" | "position" | "call" | "request_id");
            assert!(!is_id || value.is_string(), "{path}: {name} is {value}");
        });
    }
}

/// Calls `see` with every member of every object.
fn collect(value: &Value, see: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            see(name, member);
            collect(member, see);
        }),
        Value::Array(items) => items.iter().for_each(|item| collect(item, see)),
        _ => {}
    }
}

#[tokio::test]
async fn health_readiness_and_metrics_answer() {
    let server = Server::start();
    let nobody = server.nobody();
    for name in ["/health", "/api/health"] {
        assert_eq!(nobody.get(name).await.is(200).json()["status"], "ok", "{name}");
    }
    let ready = nobody.get("/ready").await;
    assert!(matches!(ready.status, 200 | 503), "{ready:?}");
    assert_eq!(ready.json()["ready"], ready.status == 200);
    let text = nobody.get("/metrics").await.is(200).text();
    assert!(text.contains("noetl_http_requests_total{route=\"/health\",method=\"GET\",status=\"2xx\"} 2"), "{text}");
    assert!(
        text.contains("noetl_http_requests_total{route=\"/api/plugins/{path}:call\",method=\"POST\",status=\"5xx\"} 0")
    );
    assert_eq!(text.matches("# EOF").count(), 1);

    let closed = Server::start_with(&[("NOETL_SERVER_METRICS_OPEN", "never")]);
    closed.nobody().get("/metrics").await.problem(401, "unauthenticated");
    let tenant = closed.with_token(&closed.admin().token_for("acme", "tenant").await);
    tenant.get("/metrics").await.problem(403, "forbidden_tenant");
    closed.admin().get("/metrics").await.is(200);
}

#[tokio::test]
async fn a_folder_has_one_server_at_a_time_and_keeps_what_it_was_told() {
    let server = Server::start();
    let component = versioned("acme/thing", "1.0.0", 7);
    server.admin().push(component.clone(), "").await.is(201);
    let second = Server::command(server.data(), &[]).output().expect("the binary starts");
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains(&server.pid().to_string()), "the message names the process that has the folder:\n{said}");

    let token = server.admin_token();
    let (data, _) = server.stop();
    let again = Server::start_on(data, &[]);
    assert_eq!(again.admin_token(), token);
    let answer = again.admin().call("acme/thing", "hi").await.is(200);
    assert_eq!(answer.json()["marker"], "NOETL-MARKER-000007");
    assert_eq!(answer.header("noetl-plugin-digest"), Digest::of(&component).to_string());
}
