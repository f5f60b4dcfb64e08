//! Planted secrets: more than twenty of them go out in every way a playbook can send one, to a server that tells back all it was
//! told, and in ways that fail; and they come in as data of a database and of NATS. The server gets the real values; no file,
//! line of the log, metric or answer of the API has one, in any encoding. What is no secret of the wallet is left alone
//! ([`unmasked`]).

mod echo;
mod given;
mod later;
mod planted;
mod search;
mod stores;
mod tools;
mod unmasked;
mod ways;

use noetl_tests::{Api, Server};
use serde_json::{Value, json};

use echo::Echo;
use planted::{PLANTED, Planted, percent};
use search::Search;
use stores::Stores;

/// A server whose components are ready.
async fn server() -> Server {
    let environment = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true"), ("NOETL_LOG_LEVEL", "debug")];
    let server = Server::start_with(&environment);
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    server
}

/// Puts every secret into the wallet, bound to these hosts.
async fn plant(api: &Api, hosts: &[&str]) {
    for planted in &PLANTED {
        let body = json!({
            "name": planted.alias, "type": planted.kind, "data": planted.data(), "hosts": hosts,
        });
        api.post("/api/credentials", body).await.is(201);
    }
}

async fn register(api: &Api) {
    for (path, text) in ways::playbooks() {
        let answer = api.send(api.request(reqwest::Method::POST, "/api/catalog/register").body(text)).await;
        assert!(answer.status < 300, "{path}: {}", answer.text());
    }
}

async fn run(api: &Api, path: &str, payload: Value) -> String {
    let answer = api.post("/api/execute?wait=60", json!({ "path": path, "payload": payload })).await.is(200);
    answer.json()["execution_id"].as_str().expect("an id").to_owned()
}

/// Everything the API says of an execution.
async fn look_at(api: &Api, id: &str, search: &Search) {
    let shown = ["", "?consistency=strong", "/status", "/commands", "/events", "/why"];
    let paths = shown.map(|part| format!("/api/executions/{id}{part}"));
    let replay = format!("/api/replay/state?execution_id={id}");
    for path in paths.iter().chain([&replay]) {
        let answer = api.get(path).await;
        assert!(answer.status < 400, "{} answered {}: {}", answer.what, answer.status, answer.text());
        search.text(&answer.what, &answer.bytes);
    }
}

#[tokio::test]
async fn no_secret_is_anywhere_but_where_it_was_sent() {
    let (echo, server) = (Echo::start().await, server().await);
    let (api, search) = (server.admin(), Search::new());
    let elsewhere = Echo::start().await;
    let closed = echo::closed_port().await;
    let stores = Stores::planted().await;
    plant(&api, &[&echo.host, &closed]).await;
    stores.credentials(&api).await;
    register(&api).await;

    let mut executions = Vec::new();
    for planted in &PLANTED {
        for way in ways::all() {
            let payload = json!({
                "alias": planted.alias, "field": planted.field, "header_field": planted.header_field(),
                "url": echo.url, "closed": format!("http://{closed}"), "elsewhere": elsewhere.url,
                "nats_url": stores.nats_url(),
            });
            let from = echo.received().len();
            let id = run(&api, &format!("canary/{way}"), payload).await;
            let received = echo.received()[from..].concat();
            if let Some(wanted) = ways::on_the_wire(way, planted) {
                assert!(
                    received.contains(&wanted),
                    "{way} of {}: {wanted:?} was not sent in\n{received}",
                    planted.alias
                );
            }
            executions.push(id);
        }
    }
    assert!(executions.len() >= 200, "{} executions", executions.len());
    assert_eq!(elsewhere.received(), Vec::<String>::new(), "no secret goes where it is not bound to");

    let lines = async |alias: &str| {
        let page = api.get(&format!("/api/credentials/{alias}/audit?limit=1000")).await.is(200).json();
        page["uses"].as_array().expect("lines").clone()
    };
    let refused = json!(format!("http://{}", elsewhere.host));
    assert!(
        lines("canary-00").await.iter().any(|line| line["event"] == "refused" && line["target"] == refused),
        "a use for another host is written down as what it was"
    );
    let named = |line: &Value| line["event"] == "opened" && line["target"].as_str().is_some_and(|to| to.contains(':'));
    assert!(lines("pg").await.iter().any(named), "with the host it was for");

    for id in &executions {
        look_at(&api, id, &search).await;
    }
    let tools = ["http", "postgres", "sqlite", "nats", "python", "javascript", "artifact", "shell", "transfer"];
    let logs = tools.map(|tool| format!("/api/plugins/tools/{tool}:logs?limit=1000"));
    let shown = ["/metrics", "/api/executions?limit=500", "/api/credentials"].map(str::to_owned);
    for path in shown.iter().chain(&logs) {
        let answer = api.get(path).await;
        assert!(answer.status < 400, "{} answered {}: {}", answer.what, answer.status, answer.text());
        search.text(&answer.what, &answer.bytes);
    }
    search.text("the server's log", server.said().as_bytes());
    let (data, said) = server.stop();
    search.text("the server's log", said.as_bytes());
    search.files(data.path());
}

/// What is too large for an event is kept as a payload, and is searched like everything else.
#[tokio::test]
async fn no_result_by_reference_has_a_secret() {
    let (echo, server, stores) = (Echo::start().await, server().await, Stores::planted().await);
    let (api, search) = (server.admin(), Search::new());
    plant(&api, &[&echo.host]).await;
    stores.credentials(&api).await;
    register(&api).await;
    for planted in &PLANTED[..3] {
        for way in std::iter::once("auth").chain(tools::BY_REFERENCE) {
            let payload = json!({"alias": planted.alias, "field": planted.field, "url": echo.url});
            let id = run(&api, &format!("canary/{way}"), payload).await;
            look_at(&api, &id, &search).await;
        }
    }
    let (data, _) = server.stop();
    search.files(data.path());
}

/// The search itself finds what it is for.
#[test]
fn the_search_finds_a_secret_in_every_encoding() {
    let search = Search::new();
    for planted in &PLANTED {
        let secret = planted.secret;
        let base64 = |text: String| planted::base64(&text);
        for text in [
            secret.to_owned(),
            format!("x={}&", percent(secret)),
            json!({ "a": secret }).to_string(),
            base64(secret.to_owned()),
            base64(format!("a{secret}")),
            base64(format!("ab{secret}z")),
            planted::dotnet(secret),
            planted::gson(secret),
            planted::wrapped(secret),
            json!(planted::wrapped(secret)).to_string(),
            planted::every_byte(secret, "%", ""),
            planted::every_byte(secret, "", ":"),
        ] {
            assert!(search.found(text.as_bytes()).is_some(), "{secret} in {text}");
        }
    }
    assert_eq!(search.found(b"nothing of the sort"), None);
    assert!(
        PLANTED.iter().map(|planted: &Planted| planted.alias).collect::<std::collections::BTreeSet<_>>().len() >= 20
    );
}

/// What a playbook writes and what the host looks for is one text.
#[test]
fn templates_and_the_host_agree_on_placeholders() {
    for (alias, field) in [("a", "token"), ("my cred/ü", "x.y"), ("A-b_9", "~")] {
        let seal = noetl_contract::placeholder::Seal::of(b"a key", "acme");
        let written = noetl_flow::keychain::placeholder(Some(seal.text()), alias, field);
        assert_eq!(written, seal.write(alias, field));
        assert_eq!(noetl_flow::keychain::SEAL, noetl_contract::placeholder::SEAL);
        let found = noetl_contract::placeholder::find(&written);
        assert!(seal.is_on(&found[0]));
        assert_eq!((found[0].alias.as_str(), found[0].field.as_str()), (alias, field));
    }
}
