//! Credentials over HTTP.

use noetl_tests::Server;
use serde_json::{Value, json};

use crate::support::{SECRET, bearer, files_with, with_reveal};

#[tokio::test]
async fn a_credential_is_kept_replaced_and_deleted_and_its_value_is_never_answered() {
    let server = Server::start();
    let api = server.admin();
    let kept = api.post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    assert!(!kept.text().contains(SECRET));
    assert_eq!((&kept.json()["data"]["token"], &kept.json()["warning"]), (&json!("[REDACTED]"), &Value::Null));
    let first = kept.json()["revision"].as_u64().expect("a revision");

    for path in ["/api/credentials", "/api/credentials/crm", "/api/credentials?type=bearer&tag=demo"] {
        let answer = api.get(path).await.is(200);
        assert!(answer.text().contains("crm") && !answer.text().contains(SECRET), "{}", answer.text());
    }
    assert_eq!(api.get("/api/credentials?type=postgres").await.is(200).json()["credentials"], json!([]));

    let replaced = api.post("/api/credentials", bearer("crm", "another-value-of-it")).await.is(200).json();
    assert!(replaced["revision"].as_u64().expect("a revision") > first);
    api.delete("/api/credentials/crm").await.is(200);
    api.get("/api/credentials/crm").await.problem(404, "credential_not_found");
    api.delete("/api/credentials/crm").await.problem(404, "credential_not_found");

    let (data, said) = server.stop();
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(files_with(data.path(), SECRET), Vec::<String>::new());
}

#[tokio::test]
async fn spellings_of_playbooks_are_understood_and_what_is_public_is_shown() {
    let server = Server::start();
    let api = server.admin();
    let data = json!({"db_host": "db.example.com", "db_port": 5433, "db_user": "app", "db_password": SECRET, "db_name": "shop"});
    let kept =
        api.post("/api/credentials", json!({"name": "pg", "type": "postgres", "data": data})).await.is(201).json();
    let wanted =
        json!({"database": "shop", "host": "db.example.com", "password": "[REDACTED]", "port": "5433", "user": "app"});
    assert_eq!((&kept["data"], &kept["hosts"]), (&wanted, &json!(["db.example.com:5433"])));
    let nowhere = json!({"name": "x", "type": "bearer", "data": {"access_token": SECRET}});
    let nowhere = api.post("/api/credentials", nowhere).await.is(201).json();
    assert!(nowhere["warning"].as_str().is_some_and(|text| text.contains("go nowhere")), "{nowhere}");
}

#[tokio::test]
async fn what_is_wrong_with_a_credential_is_named_and_nothing_of_it_repeated() {
    let server = Server::start();
    let api = server.admin();
    for (body, field) in [
        (json!({"name": "a", "type": "bearer", "data": {"tokn": SECRET}}), "data.tokn"),
        (json!({"name": "a", "type": "bearer", "data": {"token": format!("{SECRET}\n")}}), "data.token"),
        (json!({"name": "a", "type": "bearer", "data": {}}), "data.token"),
        (json!({"name": "a", "type": "bearer", "data": {(SECRET): "token"}}), "data"),
        (json!({"name": "a", "type": "cookie", "data": {"token": SECRET}}), "type"),
        (json!({"name": "a/b", "type": "bearer", "data": {"token": SECRET}}), "name"),
        (json!({"name": "a", "type": "postgres", "data": {"url": format!("mysql://u:{SECRET}@h/d")}}), "data.url"),
    ] {
        let answer = api.post("/api/credentials", body).await;
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
        assert_eq!(answer.problem(400, "invalid_credential")["field"], field);
    }
    for (body, field) in [
        (json!({"name": "a", "type": "bearer", "data": {"token": SECRET}, "hosts": ["https://x"]}), json!("hosts[0]")),
        (json!({"name": "a", "type": "bearer", "data": SECRET}), json!("data")),
        (json!({"name": "a", "type": "bearer", "data": [SECRET]}), json!("data")),
        (json!({"name": "a", "type": {"token": SECRET}, "data": {}}), json!("type")),
        (json!({"name": "a", "type": "bearer", "data": {"token": SECRET}, "hosts": SECRET}), json!("hosts")),
        (
            json!({"name": "a", "type": "bearer", "data": {"token": SECRET}, "hosts": [format!("u:{SECRET}@h")]}),
            json!("hosts[0]"),
        ),
        (json!({"name": "a", "type": "bearer", "data": {"token": "x"}, (SECRET): 1}), Value::Null),
        (json!(SECRET), Value::Null),
    ] {
        let answer = api.post("/api/credentials", body).await;
        assert!(!answer.text().contains(SECRET), "{}", answer.text());
        assert_eq!(answer.problem(400, "invalid_body")["field"], field);
    }
    let broken = format!("{{\"name\": \"a\", \"data\": {{\"token\": {SECRET}}}}}");
    let request = api.request(reqwest::Method::POST, "/api/credentials").header("content-type", "application/json");
    let answer = api.send(request.body(broken)).await;
    assert!(!answer.text().contains(SECRET), "{}", answer.text());
    answer.problem(400, "invalid_body");
    assert_eq!(api.get("/api/credentials").await.is(200).json()["credentials"], json!([]));
}

/// What cannot be masked is not taken: it would be shown wherever it is told back.
#[tokio::test]
async fn a_secret_that_is_too_short_is_refused_with_the_reason() {
    let server = Server::start();
    let api = server.admin();
    for short in ["abc", "12345", " abcd ", "REDACTED"] {
        let problem = api.post("/api/credentials", bearer("crm", short)).await.problem(400, "invalid_credential");
        assert_eq!(problem["field"], "data.token");
        let detail = problem["detail"].as_str().expect("a text");
        assert!(detail.contains("at least 6 bytes") && detail.contains("masked"), "{detail}");
        let mut risky = bearer("risky", short);
        risky["allow_short"] = json!(true);
        assert!([200, 201].contains(&api.post("/api/credentials", risky).await.status), "{short}");
    }
    api.post("/api/credentials", bearer("crm", "123456")).await.is(201);
    let patch = async |data: Value| {
        api.send(api.request(reqwest::Method::PATCH, "/api/credentials/crm").json(&json!({ "data": data }))).await
    };
    patch(json!({"access_token": "abc"})).await.problem(400, "invalid_credential");
    assert_eq!(patch(json!({"access_token": "another-value"})).await.is(200).json()["name"], "crm");
    patch(json!({"password": SECRET})).await.problem(400, "invalid_credential");
    // One that is part of an address is a secret too.
    let nats = json!({"name": "mq", "type": "nats", "data": {"url": "nats://bob:a-good-password@127.0.0.1:4222"}});
    api.post("/api/credentials", nats).await.is(201);
    let short = json!({"data": {"url": "nats://bob:abc@127.0.0.1:4222"}});
    let request = api.request(reqwest::Method::PATCH, "/api/credentials/mq").json(&short);
    api.send(request).await.problem(400, "invalid_credential");
    // Lines of the log about a tenant could not be read any more.
    let acme = server.with_token(&api.token_for("acme-of-tests", "tenant").await);
    let mut named = bearer("crm", "ACME-of-tests");
    named["allow_short"] = json!(true);
    acme.post("/api/credentials", named).await.problem(400, "invalid_credential");
    api.send(api.request(reqwest::Method::PATCH, "/api/credentials/nobody").json(&json!({})))
        .await
        .problem(404, "credential_not_found");
    // A name may be short, and a password may be missing.
    let basic = json!({"name": "b", "type": "basic", "data": {"user": "bob", "password": ""}});
    api.post("/api/credentials", basic).await.is(201);
}

/// Whoever says where a kept secret goes can have it sent to himself.
#[tokio::test]
async fn to_send_a_kept_secret_elsewhere_one_must_be_allowed_to_see_it() {
    let server = Server::start();
    let acme = server.with_token(&server.admin().token_for("acme", "user").await);
    acme.post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    let oauth2 = json!({"name": "sso", "type": "oauth2", "data": {"token_url": "https://sso.example.com/token",
        "client_id": "c", "client_secret": SECRET}});
    acme.post("/api/credentials", oauth2).await.is(201);
    let patch = async |name: &str, body: Value| {
        let path = format!("/api/credentials/{name}");
        acme.send(acme.request(reqwest::Method::PATCH, &path).json(&body)).await
    };
    for (name, body) in [
        ("crm", json!({"hosts": ["evil.example.com"]})),
        ("crm", json!({"hosts": ["*"]})),
        ("sso", json!({"data": {"token_url": "https://evil.example.com/token"}})),
    ] {
        let problem = patch(name, body.clone()).await.problem(403, "forbidden_privilege");
        assert_eq!(problem["needed"], "credential:reveal", "{body}");
    }
    patch("crm", json!({"hosts": ["api.example.com"], "data": {"token": "a-new-value"}})).await.is(200);
    let kept =
        patch("sso", json!({"data": {"token_url": "https://new.example.com/token", "client_secret": "another-one"}}));
    assert_eq!(kept.await.is(200).json()["hosts"], json!(["new.example.com:443"]));
    patch("crm", json!({"type": "basic"})).await.problem(400, "invalid_body");
}

#[tokio::test]
async fn another_tenant_sees_nothing() {
    let server = Server::start();
    let acme = server.with_token(&server.admin().token_for("acme", "user").await);
    let other = server.with_token(&server.admin().token_for("other", "tenant").await);
    acme.post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    assert_eq!(other.get("/api/credentials").await.is(200).json()["credentials"], json!([]));
    other.get("/api/credentials/crm").await.problem(404, "credential_not_found");
    other.delete("/api/credentials/crm").await.problem(404, "credential_not_found");
    other.get("/api/credentials/crm?tenant=acme").await.problem(403, "forbidden_tenant");
    with_reveal(&server, Some("other"))
        .await
        .get("/api/credentials/crm?include_data=true")
        .await
        .problem(404, "credential_not_found");
    assert_eq!(other.get("/api/credentials/crm/audit").await.is(200).json()["uses"][0]["event"], "unknown");
    // The same name is another credential.
    other.post("/api/credentials", bearer("crm", "the-value-of-the-other")).await.is(201);
    let shown = with_reveal(&server, Some("acme")).await.get("/api/credentials/crm?include_data=true").await.is(200);
    assert_eq!(shown.json()["data"]["token"], SECRET);
    let all = server.admin().get("/api/credentials").await.is(200).json();
    assert_eq!(all["credentials"].as_array().map(Vec::len), Some(2));
    // A token that only reads sees which there are, and changes none.
    let reader = server.with_token(&server.admin().token_for("acme", "pure").await);
    reader.get("/api/credentials/crm").await.is(200);
    reader.post("/api/credentials", bearer("more", SECRET)).await.problem(403, "forbidden_privilege");
}

#[tokio::test]
async fn a_value_is_shown_with_the_right_for_it_alone_and_every_time_is_written_down() {
    let server = Server::start();
    let admin = server.admin();
    admin.post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    let refused = admin.get("/api/credentials/crm?include_data=true").await.problem(403, "forbidden_privilege");
    assert_eq!(refused["needed"], "credential:reveal", "not even the administrator's token has it");
    let reveals = with_reveal(&server, None).await;
    let shown = reveals.get("/api/credentials/crm?include_data=true&execution_id=17").await.is(200);
    assert_eq!(shown.json()["data"]["token"], SECRET);
    assert_eq!(shown.header("cache-control"), "no-store");

    let uses = admin.get("/api/credentials/crm/audit").await.is(200).json();
    let events: Vec<_> = uses["uses"].as_array().expect("lines").iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["revealed", "added"], "a refused request opened nothing");
    assert_eq!((&uses["uses"][0]["by"], &uses["uses"][0]["call"]), (&json!("token reveals"), &json!("17")));
    let page = admin.get("/api/credentials/crm/audit?limit=1").await.is(200).json();
    let next = page["next"].as_str().expect("more");
    let rest = admin.get(&format!("/api/credentials/crm/audit?limit=1&cursor={next}")).await.is(200).json();
    assert_eq!(rest["uses"][0]["event"], "added");

    // Who has the right may pass it on; a tenant who has it not can neither use nor give it.
    let tenant = server.with_token(&admin.token_for("acme", "tenant").await);
    let body = json!({"name": "x", "rights": ["credential:reveal"]});
    tenant.post("/api/tokens", body.clone()).await.problem(403, "forbidden_privilege");
    with_reveal(&server, Some("acme")).await.post("/api/tokens", body).await.is(201);
}

#[tokio::test]
async fn a_restart_keeps_credentials_and_their_audit() {
    let server = Server::start();
    server.admin().post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    let (data, _) = server.stop();
    let mut server = Server::start_on(data.clone(), &[]);
    let shown = with_reveal(&server, None).await.get("/api/credentials/crm?include_data=true").await.is(200).json();
    assert_eq!(shown["data"]["token"], SECRET);
    server.kill();
    let server = Server::start_on(data, &[]);
    let uses = server.admin().get("/api/credentials/crm/audit").await.is(200).json();
    assert_eq!(uses["uses"].as_array().map(Vec::len), Some(2), "the end of a process takes no line: {uses}");
}
