//! What a plugin can reach from inside: names it was not given, addresses behind names, and where redirects lead.

use std::sync::{Arc, Mutex};

use noetl_tests::{guest, made, with_manifest};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::scene::{HOSTILE, Scene};

/// A server that answers everything the same way and remembers what it was asked.
pub struct Upstream {
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    async fn start(answer: impl Into<String>) -> Self {
        Self::start_at("127.0.0.1:0", answer).await
    }

    pub async fn start_at(address: &str, answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (seen, answer) = (Arc::new(Mutex::new(Vec::new())), answer.into());
        let kept = seen.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 8192];
                let count = stream.read(&mut request).await.unwrap_or(0);
                kept.lock().expect("nobody panics here").push(String::from_utf8_lossy(&request[..count]).into_owned());
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { url, seen }
    }

    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("nobody panics here").clone()
    }

    fn authority(&self) -> &str {
        self.url.trim_start_matches("http://")
    }
}

pub fn hello() -> String {
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello".to_owned()
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

pub fn hostile(allow: &[&str]) -> Vec<u8> {
    let all = ["log", "metrics", "kv", "payload", "objects", "http-client"];
    let extra = format!("[failure]\nquarantine_after = 0\n[http]\nallow = {allow:?}\n");
    with_manifest(&guest("hostile"), &made::manifest(HOSTILE, &all, &extra))
}

pub async fn denied(scene: &Scene, input: &str) -> String {
    let document = scene.mallory.call(HOSTILE, input).await.problem(422, "plugin_failure");
    assert_eq!(document["failure"]["code"], "denied", "{input}: {document}");
    "denied".to_owned()
}

#[tokio::test]
async fn addresses_inside_are_out_of_reach_however_they_are_written() {
    let scene = Scene::start().await;
    scene.mallory.push(hostile(&["*"]), "").await.is(201);
    let upstream = Upstream::start(hello()).await;
    let port = upstream.url.rsplit(':').next().expect("a port").to_owned();
    let forms = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "[fc00::1]",
        "[fe80::1]",
    ];
    scene
        .attack("addresses inside, in 19 forms", || async {
            for form in forms {
                denied(&scene, &format!("fetch:http://{form}:{port}/")).await;
            }
            "denied".to_owned()
        })
        .await;
    assert_eq!(upstream.seen(), Vec::<String>::new(), "not even a connection was made");
}

#[tokio::test]
async fn services_with_credentials_are_out_of_reach_even_where_the_network_is_open() {
    let scene = Scene::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]).await;
    scene.mallory.push(hostile(&["*"]), "").await.is(201);
    scene
        .attack("metadata services", || async {
            for address in
                ["169.254.169.254", "168.63.129.16", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"]
            {
                denied(&scene, &format!("fetch:http://{address}/latest/meta-data/")).await;
            }
            "denied".to_owned()
        })
        .await;
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_first_request_and_carries_no_secret_to_another_host() {
    let scene = Scene::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]).await;
    let outside = Upstream::start(hello()).await;
    let to_outside = Upstream::start(redirect(&outside.url)).await;
    let to_metadata = Upstream::start(redirect("http://169.254.169.254/latest/")).await;
    let in_circles = Upstream::start(redirect("/again")).await;
    let allow = [to_outside.authority(), to_metadata.authority(), in_circles.authority(), "169.254.169.254"];

    scene.mallory.push(hostile(&allow), "").await.is(201);
    scene
        .attack("redirect to a host that is not allowed", || async {
            denied(&scene, &format!("follow:{}/", to_outside.url)).await
        })
        .await;
    assert_eq!(outside.seen(), Vec::<String>::new(), "the second host was never asked");
    scene
        .attack("redirect to a metadata service", || async {
            denied(&scene, &format!("follow:{}/", to_metadata.url)).await
        })
        .await;
    scene
        .attack("redirects in circles", || async {
            let document = scene.mallory.call(HOSTILE, &format!("follow:{}/", in_circles.url)).await;
            let document = document.problem(422, "plugin_failure");
            assert_eq!(document["failure"]["code"], "redirect", "{document}");
            "redirect".to_owned()
        })
        .await;

    let manifest = made::manifest(
        "mallory/allowed",
        &["log", "metrics", "kv", "payload", "objects", "http-client"],
        &format!("[http]\nallow = {:?}\n", [to_outside.authority(), outside.authority()]),
    );
    scene.mallory.push(with_manifest(&guest("hostile"), &manifest), "").await.is(201);
    let followed = scene.mallory.call("mallory/allowed", &format!("follow:{}/", to_outside.url)).await.is(200);
    assert_eq!(followed.text(), "200 hello");
    let first = to_outside.seen().pop().expect("asked").to_ascii_lowercase();
    let second = outside.seen().pop().expect("asked").to_ascii_lowercase();
    assert!(first.contains("authorization: bearer of-the-first-host"), "{first}");
    assert!(!second.contains("authorization"), "{second}");
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_ignored() {
    let proxy = Upstream::start(hello()).await;
    let scene = Scene::start_with(&[
        ("HTTP_PROXY", proxy.url.as_str()),
        ("http_proxy", proxy.url.as_str()),
        ("ALL_PROXY", proxy.url.as_str()),
        ("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true"),
    ])
    .await;
    let upstream = Upstream::start(hello()).await;
    scene.mallory.push(hostile(&["127.0.0.1"]), "").await.is(201);
    let answered = scene.mallory.call(HOSTILE, &format!("fetch:{}/", upstream.url)).await.is(200);
    assert_eq!((answered.text().as_str(), upstream.seen().len()), ("200 hello", 1));
    assert_eq!(proxy.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_version_that_reaches_further_needs_somebodys_word() {
    let scene = Scene::start().await;
    scene.mallory.push(hostile(&["api.example.com", "*.example.org"]), "").await.is(201);
    let next = |allow: &[&str]| noetl_tests::with_version(&hostile(allow), "1.1.0");
    let further = next(&["api.example.com", "evil.example.net"]);
    let refused = scene.mallory.push(further.clone(), "").await.problem(409, "needs_grant");
    assert_eq!(refused["added_hosts"], serde_json::json!(["evil.example.net"]), "{refused}");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("evil.example.net")), "{refused}");
    let pushed = scene.mallory.push(further, "?grant=http-client").await.is(201).json();
    assert_eq!(pushed["added_hosts"], serde_json::json!(["evil.example.net"]));
    let fewer = noetl_tests::with_version(&hostile(&["api.example.com"]), "1.2.0");
    scene.mallory.push(fewer, "").await.is(201);
}
