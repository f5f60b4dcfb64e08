//! Every capability in every ring: what the table grants works, what it does not is refused at the push
//! and at the call, with a message that says why.

use noetl_contract::{Capability, Ring};
use noetl_tests::{Answer, Api, Server, guest, with_manifest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve};

/// What the manifest must list for a probe to work.
fn needed(capability: Capability) -> Vec<&'static str> {
    let mut names = vec![capability.name()];
    names.extend(capability.needs().iter().map(|needed| needed.name()));
    names
}

fn path(ring: Ring, capability: Capability) -> String {
    let name = capability.name();
    match ring {
        Ring::Pure => format!("main/pure-probe/{name}"),
        Ring::User => format!("main/probe/{name}"),
        Ring::Tenant => format!("main/system/{name}"),
        Ring::System => format!("system/probe-{name}"),
    }
}

fn probe(path: &str, capability: Capability, listed: &[&str]) -> Vec<u8> {
    let http = if listed.contains(&"http-client") { "[http]\nallow = [\"127.0.0.1\"]\n" } else { "" };
    let manifest =
        format!("path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = {listed:?}\n{http}");
    with_manifest(&guest(&format!("probe-{}", capability.name())), &manifest)
}

async fn push(api: &Api, ring: Ring, component: Vec<u8>) -> Answer {
    let query = if ring == Ring::Pure { "?ring=pure" } else { "" };
    api.push(component, query).await
}

/// Answers every request with `hello`.
async fn hello_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.is_ok() {
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    });
    format!("http://{address}/")
}

fn says(document: &serde_json::Value, parts: &[&str]) {
    let detail = document["detail"].as_str().expect("a detail");
    for part in parts {
        assert!(detail.contains(part), "{detail:?} does not say {part:?}");
    }
}

#[tokio::test]
async fn granted_works_and_ungranted_is_refused_for_every_capability_in_every_ring() {
    let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let api = server.admin();
    let input = hello_server().await;
    for ring in Ring::ALL {
        for capability in Capability::ALL {
            let path = path(ring, capability);
            let component = probe(&path, capability, &needed(capability));
            let answer = push(&api, ring, component).await;
            if !capability.rings().contains(&ring) {
                let document = answer.problem(422, "capability_denied");
                // A capability that speaks in another's types brings that one's import, which may come first.
                let detail = document["detail"].as_str().expect("a detail");
                let refused = std::iter::once(&capability).chain(capability.needs());
                let refused = refused.copied().find(|one| detail.contains(one.package())).expect("one of its imports");
                let allowed = refused.rings().iter().map(|ring| ring.name()).collect::<Vec<_>>().join(", ");
                says(&document, &["import `", &format!("`{refused}`"), &format!("`{ring}`"), &allowed]);
                continue;
            }
            answer.is(201);
            let answered = api.call(&path, &input).await.is(200);
            if capability == Capability::HttpClient {
                assert_eq!(answered.text(), "200 hello");
            }
            let narrowed =
                api.post_bytes(&format!("/api/plugins/{path}:call?capabilities="), input.clone().into()).await;
            says(&narrowed.problem(403, "capability_denied"), &["import `noetl:", "this call does not grant"]);
        }
    }
}

#[tokio::test]
async fn an_import_the_manifest_does_not_list_is_refused_at_the_push() {
    let server = Server::start();
    for capability in Capability::ALL {
        let component = probe("main/probe/unlisted", capability, &[]);
        let document = push(&server.admin(), Ring::User, component).await.problem(422, "capability_denied");
        says(&document, &["import `noetl:", "plugin.toml does not list"]);
    }
}

#[tokio::test]
async fn what_the_operator_denies_is_refused_for_everybody() {
    let server = Server::start_with(&[("NOETL_POLICY_DENY_CAPABILITIES", "kv")]);
    let component = probe("main/probe/kv", Capability::Kv, &["kv"]);
    let document = push(&server.admin(), Ring::User, component).await.problem(422, "capability_denied");
    says(&document, &["noetl:kv", "policy.deny_capabilities"]);
}

#[tokio::test]
async fn private_addresses_and_unlisted_hosts_are_out_of_reach() {
    let server = Server::start();
    let api = server.admin();
    let (path, input) = ("main/probe/http-client", hello_server().await);
    push(&api, Ring::User, probe(path, Capability::HttpClient, &["http-client", "payload"])).await.is(201);
    let document = api.call(path, &input).await.problem(422, "plugin_failure");
    assert!(document.to_string().contains("not a public address"), "{document}");
    let document = api.call(path, "http://example.com/").await.problem(422, "plugin_failure");
    assert!(document.to_string().contains("http.allow"), "{document}");
}

#[tokio::test]
async fn the_pure_ring_links_no_wasi_and_the_others_only_its_harmless_part() {
    let server = Server::start();
    let api = server.admin();
    let document = api.push(guest("wasi"), "?ring=pure").await.problem(422, "capability_denied");
    says(&document, &["wasi:", "ring `pure`"]);
    api.push(guest("wasi"), "").await.is(201);
    let saw = api.call("main/wasi", "aab").await.is(200).json();
    assert_eq!(saw["distinct_bytes"], 2);
    assert!(saw["unix_seconds"].as_u64().is_some_and(|seconds| seconds > 1_700_000_000), "a real clock: {saw}");
    assert_eq!(saw["environment"], serde_json::json!([]));
    assert!(saw["passwd_bytes"].is_null() && saw["could_write"] == false, "{saw}");
    let lines = api.get("/api/plugins/main/wasi:logs").await.is(200).text();
    assert!(lines.contains("a line on standard output") && lines.contains("a line on standard error"), "{lines}");
}

/// A component made from an altered copy of the contract.
fn skewed(package: &str, from: &str, to: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    for source in noetl_contract::packages::SOURCES {
        let text = if source.package == package { source.text.replace(from, to) } else { source.text.to_owned() };
        resolve.push_source(source.file, &text).expect("altered WIT");
    }
    let mut packages = resolve.packages.iter();
    let world = packages.find_map(|(_, package)| package.worlds.get("transform").copied()).expect("the world");
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Standard32);
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("metadata");
    let component = ComponentEncoder::default().module(&module).expect("a module").encode().expect("a component");
    let all: Vec<_> = Capability::ALL.iter().map(|capability| capability.name()).collect();
    let manifest =
        format!("path = \"main/skewed\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = {all:?}\n");
    with_manifest(&component, &manifest)
}

#[tokio::test]
async fn a_version_skew_prints_a_structural_diff() {
    let server = Server::start();
    let component = skewed("noetl:kv", "get: func(key: string)", "get: func(key: u32)");
    let document = server.admin().push(component, "").await.problem(422, "contract_skew");
    says(&document, &["noetl:kv/kv@0.1.0: function `get` has parameter `key: u32`, the host has `key: string`"]);
    let fitting = skewed("noetl:kv", "nothing of this kind", "is replaced");
    server.admin().push(fitting, "").await.is(201);
}
