//! What stays behind when a server sends a request on to another: signatures, tokens and keys, also where the credential
//! may go to both.

use noetl_tests::Recorder;
use noetl_tests::recorder::Reply;
use serde_json::json;

use crate::support::{SECRET, failing, keep, reaching, step};

#[tokio::test]
async fn a_login_does_not_follow_to_another_host() {
    let (server, other) = (reaching().await, Recorder::echo().await);
    let to = format!("{}/there", other.url);
    let first = Recorder::start(move |_| Reply::redirect(to.clone())).await;
    let api = server.admin();
    let hosts = [first.host.as_str(), other.host.as_str()];
    let login = "authorization";
    let key = "x-the-key";
    for (name, kind, data, header) in [
        ("signs", "hmac", json!({"secret": SECRET, "header": key}), key),
        ("files", "s3", json!({"access_key": "AKIDEXAMPLE", "secret_key": SECRET}), login),
        ("token", "bearer", json!({"token": SECRET}), login),
        ("pair", "basic", json!({"user": "ada", "password": SECRET}), login),
        ("key", "api_key", json!({"key": SECRET, "header": key}), key),
    ] {
        keep(&api, name, kind, data, &hosts).await;
        let tool = json!({"kind": "http", "url": first.url, "auth": name, "follow_redirects": true});
        let answer = step(&api, &format!("follow/{name}"), tool).await;
        assert_eq!(answer["status_code"], 200, "{name}: {answer}");
        assert_ne!(first.last().header(header), "", "{name} logs in where it was sent");
        let asked = other.last();
        let secrets = [login, key, "x-amz-date", "x-amz-content-sha256"].map(|header| asked.header(header).to_owned());
        assert_eq!(secrets, ["", "", "", ""], "{name} stays behind");
        assert!(!asked.told().to_string().contains(SECRET), "{name}");
    }
    assert_eq!(other.asked().len(), 5);
}

#[tokio::test]
async fn a_hop_on_the_same_host_is_signed_for_itself() {
    let server = reaching().await;
    let receiver = Recorder::start(|asked| match asked.target.as_str() {
        "/first" => Reply::redirect("/second"),
        _ => Reply::json(200, asked.told()),
    })
    .await;
    let api = server.admin();
    let data = json!({"secret": SECRET, "message": "{path} {body}", "format": "{hex}"});
    keep(&api, "signs", "hmac", data, &[&receiver.host]).await;
    let url = format!("{}/first", receiver.url);
    step(&api, "follow/same", json!({"kind": "http", "url": url, "auth": "signs", "follow_redirects": true})).await;
    let asked = receiver.asked();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    for (asked, path) in asked.iter().zip(["/first", "/second"]) {
        let wanted = hex::encode(ring::hmac::sign(&key, format!("{path} ").as_bytes()));
        assert_eq!((asked.target.as_str(), asked.header("x-signature")), (path, wanted.as_str()));
    }
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn a_secret_in_an_address_goes_no_further_than_its_hosts() {
    let (server, other) = (reaching().await, Recorder::echo().await);
    let to = other.url.clone();
    // What it was told goes into where it sends the client next.
    let first = Recorder::start(move |asked| Reply::redirect(format!("{to}{}", asked.target))).await;
    let api = server.admin();
    keep(&api, "token", "bearer", json!({"token": SECRET}), &[&first.host]).await;
    let url = format!("{}/?t={{{{ keychain.token.token }}}}", first.url);
    let tool = json!({"kind": "http", "url": url, "follow_redirects": true});
    assert_eq!(failing(&api, "follow/address", tool).await.0, "denied");
    assert_eq!(first.last().target, format!("/?t={SECRET}"));
    assert!(other.asked().is_empty(), "nothing went there");
}
