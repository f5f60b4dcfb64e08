//! Requests that the server signs: what a receiver gets can be checked with the key, and nobody in between ever had it.

use std::collections::BTreeMap;

use noetl_tests::recorder::{Asked, Reply};
use noetl_tests::{Recorder, Server};
use ring::hmac;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{SECRET, failing, files_with, keep, reaching, run_steps, step};

fn mac(algorithm: hmac::Algorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(algorithm, key), message).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Nothing of it is on disk, in the log, or in this answer.
fn nowhere(server: Server, secrets: &[&str], answer: &Value) {
    let (data, said) = server.stop();
    for secret in secrets {
        assert!(!said.contains(secret), "{secret} is in the log: {said}");
        assert!(!answer.to_string().contains(secret), "{secret} came back: {answer}");
        assert_eq!(files_with(data.path(), secret), Vec::<String>::new(), "{secret}");
    }
}

#[tokio::test]
async fn a_receiver_can_check_who_sent_a_request_and_when() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    let api = server.admin();
    keep(&api, "partner", "hmac", json!({"secret": SECRET, "key_id": "k1"}), &[&receiver.host]).await;
    let url = format!("{}/orders?dry=1", receiver.url);
    let tool = json!({"kind": "http", "url": url, "method": "POST", "json": {"id": 7}, "auth": "partner"});
    let answer = step(&api, "sign/request", tool).await;

    let asked = receiver.last();
    let header = asked.header("x-signature").to_owned();
    let parts: BTreeMap<_, _> = header.split(',').filter_map(|part| part.split_once('=')).collect();
    assert_eq!(parts.get("id"), Some(&"k1"), "{header}");
    let message = format!("POST\n/orders?dry=1\n{}\n{}", parts["t"], sha256(&asked.body));
    let wanted = hex::encode(mac(hmac::HMAC_SHA256, SECRET.as_bytes(), message.as_bytes()));
    assert_eq!(parts.get("sha256"), Some(&wanted.as_str()), "{header}");
    let uses = api.get("/api/credentials/partner/audit").await.is(200).json();
    let target = format!("http://{}", receiver.host);
    let opened = uses["uses"].as_array().expect("lines").iter().any(|line| line["target"] == target);
    assert!(opened, "the use is written down with its target: {uses}");
    nowhere(server, &[SECRET, &wanted], &answer);
}

#[tokio::test]
async fn a_hook_gets_the_signature_of_its_body_whatever_is_in_it_and_however_large_it_is() {
    let big = "0123456789abcdef".repeat(128 << 10);
    let large = Recorder::start(move |_| Reply {
        status: 200,
        headers: vec![("content-type", "application/octet-stream".to_owned())],
        body: big.clone(),
    })
    .await;
    let (server, receiver) = (reaching().await, Recorder::start(|_| Reply::json(200, json!({}))).await);
    let api = server.admin();
    let hook = json!({"secret": SECRET, "message": "body", "header": "X-Hub-Signature-256"});
    keep(&api, "hook", "hmac", hook, &[&receiver.host]).await;
    keep(&api, "token", "bearer", json!({"token": "the-token-in-the-body"}), &[&receiver.host]).await;
    let check = |asked: &Asked| {
        let wanted = hex::encode(mac(hmac::HMAC_SHA256, SECRET.as_bytes(), &asked.body));
        assert_eq!(asked.header("x-hub-signature-256"), format!("sha256={wanted}"));
    };
    // What is signed is what is sent, with the secrets in it.
    let body = json!({"token": "{{ keychain.token.token }}", "text": "ä"});
    let tool = json!({"kind": "http", "url": receiver.url, "method": "POST", "json": body, "auth": "hook"});
    step(&api, "sign/hook", tool).await;
    let asked = receiver.last();
    assert!(asked.text().contains("the-token-in-the-body"), "{}", asked.text());
    check(&asked);

    let ended = run_steps(
        &api,
        "sign/large",
        json!([
            {"step": "start", "tool": {"kind": "http", "url": large.url, "response_type": "binary"},
             "next": {"arcs": [{"step": "send"}]}},
            {"step": "send", "tool": {"kind": "http", "url": receiver.url, "method": "PUT",
             "body_ref": "{{ start._ref }}", "auth": "hook"}},
        ]),
    )
    .await;
    assert_eq!(ended["status"], "completed", "{ended}");
    let asked = receiver.last();
    assert_eq!((asked.method.as_str(), asked.body.len()), ("PUT", 2 << 20));
    check(&asked);
}

#[tokio::test]
async fn a_scheme_of_ones_own_is_signed_as_it_is_written_down() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    let api = server.admin();
    let data = json!({"secret": SECRET, "algorithm": "sha512", "message": "v0:{timestamp}:{body}", "header": "X-Sign",
                      "format": "v0={base64}", "timestamp_header": "X-Request-Timestamp"});
    keep(&api, "own", "hmac", data, &[&receiver.host]).await;
    step(&api, "sign/own", json!({"kind": "http", "url": receiver.url, "text": "hello", "auth": "own"})).await;
    let asked = receiver.last();
    let message = format!("v0:{}:hello", asked.header("x-request-timestamp"));
    let wanted = mac(hmac::HMAC_SHA512, SECRET.as_bytes(), message.as_bytes());
    use base64::Engine as _;
    let wanted = base64::engine::general_purpose::STANDARD.encode(wanted);
    assert_eq!(asked.header("x-sign"), format!("v0={wanted}"));

    let wrong = json!({"name": "bad", "type": "hmac", "data": {"secret": SECRET, "message": "{path}"}});
    assert_eq!(api.post("/api/credentials", wrong).await.problem(400, "invalid_credential")["field"], "data.message");
}

/// The signature of a request as it came, by the rules of S3.
fn s3_signature(asked: &Asked, secret_key: &str) -> String {
    let login = asked.header("authorization");
    let part = |name: &str| {
        let at = login.find(name).unwrap_or_else(|| panic!("no {name} in {login}")) + name.len();
        login[at..].split(',').next().unwrap_or_default().to_owned()
    };
    let (credential, names) = (part("Credential="), part("SignedHeaders="));
    let scope: Vec<&str> = credential.split('/').skip(1).collect();
    let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
    let headers: String = names.split(';').map(|name| format!("{name}:{}\n", asked.header(name))).collect();
    let sent = asked.header("x-amz-content-sha256");
    assert_eq!(sent, sha256(&asked.body), "the hash is the body's own");
    let canonical = [asked.method.as_str(), path, query, headers.as_str(), names.as_str(), sent].join("\n");
    let date = asked.header("x-amz-date");
    let message = format!("AWS4-HMAC-SHA256\n{date}\n{}\n{}", scope.join("/"), sha256(canonical.as_bytes()));
    let mut key = format!("AWS4{secret_key}").into_bytes();
    for part in scope {
        key = mac(hmac::HMAC_SHA256, &key, part.as_bytes());
    }
    hex::encode(mac(hmac::HMAC_SHA256, &key, message.as_bytes()))
}

#[tokio::test]
async fn a_store_that_speaks_s3_lets_a_step_in() {
    let (server, store) = (reaching().await, Recorder::echo().await);
    let api = server.admin();
    let data = json!({"endpoint": store.url, "region": "eu-central-1", "access_key_id": "AKIDEXAMPLE",
                      "secret_access_key": SECRET, "session_token": "the-token-of-the-session"});
    // Bound to its endpoint by itself.
    api.post("/api/credentials", json!({"name": "files", "type": "s3", "data": data})).await.is(201);
    let put = json!({"kind": "http", "method": "PUT", "url": format!("{}/bucket/a key (1)+ö.txt", store.url),
                     "text": "hello", "headers": {"X-Amz-Meta-Of": "a  test"}, "auth": "files"});
    let answer = step(&api, "s3/put", put).await;
    let asked = store.last();
    assert_eq!(asked.target, "/bucket/a%20key%20%281%29%2B%C3%B6.txt");
    assert_eq!(asked.header("x-amz-security-token"), "the-token-of-the-session");
    // As the rules have it: blanks inside of a value count once.
    let mut read = asked.clone();
    read.headers.insert("x-amz-meta-of".to_owned(), "a test".to_owned());
    let signature = s3_signature(&read, SECRET);
    let login = asked.header("authorization");
    assert!(login.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{login}");
    assert!(login.ends_with(&format!("Signature={signature}")), "{login}, and not {signature}");

    let list = json!({"kind": "http", "url": format!("{}/bucket", store.url), "auth": "files",
                      "params": {"prefix": "a b/", "list-type": 2, "delimiter": "/"}});
    step(&api, "s3/list", list).await;
    let asked = store.last();
    assert_eq!(asked.target, "/bucket?delimiter=%2F&list-type=2&prefix=a%20b%2F");
    let login = asked.header("authorization");
    assert!(login.ends_with(&format!("Signature={}", s3_signature(&asked, SECRET))), "{login}");
    nowhere(server, &[SECRET, "the-token-of-the-session", &signature], &answer);
}

#[tokio::test]
async fn a_key_signs_nothing_for_a_host_it_is_not_bound_to() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    let api = server.admin();
    keep(&api, "partner", "hmac", json!({"secret": SECRET}), &["api.example.com"]).await;
    keep(&api, "token", "bearer", json!({"token": SECRET}), &[&receiver.host]).await;
    let tool = json!({"kind": "http", "url": receiver.url, "auth": "partner"});
    assert_eq!(failing(&api, "sign/elsewhere", tool).await.0, "denied");
    let tool = json!({"kind": "http", "url": receiver.url, "headers": {"x": "{{ keychain.token.signature }}"}});
    assert_eq!(failing(&api, "sign/token", tool).await.0, "denied", "a token signs nothing");
    let tool = json!({"kind": "http", "url": format!("{}/{{{{ keychain.partner.signature }}}}", receiver.url)});
    assert_eq!(failing(&api, "sign/address", tool).await.0, "denied");
    let data = json!({"host": "127.0.0.1", "user": "app", "password": SECRET, "database": "shop"});
    keep(&api, "pg", "postgres", data, &[&receiver.host]).await;
    let tool = json!({"kind": "http", "url": receiver.url, "auth": "pg"});
    assert_eq!(failing(&api, "sign/database", tool).await, ("unsupported_credential".to_owned(), "false".to_owned()));
    assert!(receiver.asked().is_empty(), "nothing was sent");
}
