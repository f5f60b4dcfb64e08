//! One tenant against another: taking everything, and looking into what is not one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use noetl_tests::{Api, guest, made, with_manifest};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::scene::{HOSTILE, Scene};

const ALL: [&str; 6] = ["log", "metrics", "kv", "payload", "objects", "http-client"];

const CALLERS: usize = 200;
/// Calls of the flooder's that may end for each of the bystander's. In the order they came there would be one for each of its
/// callers; in turn by tenant it is about one, and ten times that is room for what the machine does besides.
const FOR_EACH: usize = CALLERS / 20;

fn hostile_at(path: &str, extra: &str) -> Vec<u8> {
    with_manifest(&guest("hostile"), &made::manifest(path, &ALL, extra))
}

/// Calls without end on many connections, until told to stop.
struct Flood {
    callers: Vec<tokio::task::JoinHandle<()>>,
    answered: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Flood {
    fn start(api: impl Fn() -> Api, connections: usize, path: &'static str, input: &'static str) -> Self {
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let caller = |_| {
            let (api, over, answered) = (api(), over.clone(), answered.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    api.call(path, input).await;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Self { callers: (0..connections).map(caller).collect(), answered, over }
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    /// Goes away with everything that is still asked for.
    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        self.callers.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

#[tokio::test]
async fn a_tenant_that_saturates_everything_leaves_the_other_its_turn() {
    let scene = Scene::start().await;
    let limits = "[limits]\ncpu_ms = 300\nmemory_mb = 16\n[failure]\nquarantine_after = 0\n";
    scene.mallory.push(hostile_at(HOSTILE, limits), "").await.is(201);
    // A cheap call waits for nothing that is given out by turns, only for the processor: what is judged of it is that all
    // of the bystander's are answered.
    for (name, input, most) in
        [("200 callers that compute without end", "loop", FOR_EACH), ("200 callers of a cheap call", "ok", usize::MAX)]
    {
        let secret = scene.server.admin().token_for("mallory", "tenant").await;
        let flood = Flood::start(|| scene.server.with_token(&secret), CALLERS, HOSTILE, input);
        // Until the first of them has been served, so that the bystander finds them all there.
        scene.mallory.call(HOSTILE, "ok").await;
        let before = flood.answered();
        let bystander = scene.attack(name, || async { "both served".to_owned() }).await;
        let flooder = flood.answered() - before;
        flood.stop();
        assert!(
            flooder <= (bystander + 1).saturating_mul(most),
            "{name}: {bystander} calls of the one were answered while the other had {flooder}"
        );
    }
}

#[tokio::test]
async fn a_tenant_that_reaches_many_hosts_leaves_the_descriptors_to_others() {
    const HOSTS: usize = 200;
    let scene = Scene::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]).await;
    scene.mallory.push(hostile_at(HOSTILE, "[http]\nallow = [\"*\"]\n"), "").await.is(201);
    // One server at all the addresses, which never closes a connection.
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
                }
            });
        }
    });
    let open = || std::fs::read_dir(format!("/proc/{}/fd", scene.server.pid())).expect("its descriptors").count();
    let before = open();
    scene
        .attack("connections to 200 hosts", || async {
            for host in 1..=HOSTS {
                let fetched =
                    scene.mallory.call(HOSTILE, &format!("fetch:http://127.7.0.{host}:{port}/")).await.is(200);
                assert_eq!(fetched.text(), "200 hello");
            }
            "answered, few connections kept".to_owned()
        })
        .await;
    let kept = open().saturating_sub(before);
    assert!(kept < HOSTS / 2, "{kept} descriptors more than before");
}

#[tokio::test]
async fn calls_that_wait_for_memory_are_served_in_turn_by_tenant() {
    // Room for one call at a time: what is judged is the order in which they get it.
    let scene =
        Scene::start_with(&[("NOETL_HOST_MEMORY_BUDGET_MB", "100"), ("NOETL_HOST_SYSTEM_RESERVE_MB", "0")]).await;
    let limits = "[limits]\ncpu_ms = 30000\nwall_ms = 60000\nmemory_mb = 64\n";
    scene.mallory.push(hostile_at(HOSTILE, limits), "").await.is(201);
    scene.alice.push(hostile_at("alice/hostile", limits), "").await.is(201);
    let done = Arc::new(std::sync::Mutex::new(Vec::new()));
    let call = |api: &Api, path: &'static str, input: &'static str| {
        let (api, done) = (api.clone(), done.clone());
        tokio::spawn(async move {
            api.call(path, input).await.is(200);
            done.lock().expect("nobody panics here").push(path);
        })
    };
    let mut calls: Vec<_> = (0..20).map(|_| call(&scene.mallory, HOSTILE, "spin:40")).collect();
    // The first is served when all the others are queued or about to be.
    while done.lock().expect("nobody panics here").is_empty() {
        tokio::task::yield_now().await;
    }
    calls.push(call(&scene.alice, "alice/hostile", "ok"));
    for call in calls {
        call.await.expect("served");
    }
    let order = done.lock().expect("nobody panics here").clone();
    let place = order.iter().position(|path| *path == "alice/hostile").expect("served");
    assert!(place < order.len() - 8, "behind a few of the other's, not behind all twenty: {place} of {order:?}");
}

#[tokio::test]
async fn pushes_that_wait_for_the_compiler_are_served_in_turn_by_tenant() {
    let scene = Scene::start().await;
    let done = Arc::new(std::sync::Mutex::new(Vec::new()));
    let push = |api: &Api, tenant: &'static str, component: Vec<u8>| {
        let (api, done) = (api.clone(), done.clone());
        tokio::spawn(async move {
            api.push(component, "").await.is(201);
            done.lock().expect("nobody panics here").push(tenant);
        })
    };
    let large = |number: u32| made::compile_bomb(40, 2_000, &made::manifest(&format!("mallory/made{number}"), &[], ""));
    let mut pushes: Vec<_> = (0..10).map(|number| push(&scene.mallory, "mallory", large(number))).collect();
    while done.lock().expect("nobody panics here").is_empty() {
        tokio::task::yield_now().await;
    }
    pushes.push(push(&scene.alice, "alice", with_manifest(&guest("echo"), &made::manifest("alice/late", &[], ""))));
    for push in pushes {
        push.await.expect("pushed");
    }
    let order = done.lock().expect("nobody panics here").clone();
    let place = order.iter().position(|tenant| *tenant == "alice").expect("pushed");
    assert!(place < order.len() - 3, "in its turn, not behind all of the other's: {place} of {order:?}");
}

#[tokio::test]
async fn nothing_of_another_tenant_can_be_read() {
    let scene = Scene::start().await;
    // The same code at a path of each, and one that both share.
    scene.mallory.push(hostile_at(HOSTILE, ""), "").await.is(201);
    scene.alice.push(hostile_at("alice/hostile", ""), "").await.is(201);
    scene.server.admin().push(hostile_at("system/hostile", ""), "").await.is(201);
    for path in ["alice/hostile", "system/hostile"] {
        scene.alice.call(path, "put:alices-treasure").await.is(200);
        assert!(scene.alice.call(path, "get:secret").await.is(200).text().contains("alices-treasure"));
    }
    scene
        .attack("another tenant's kv and objects", || async {
            for path in [HOSTILE, "system/hostile"] {
                let found = scene.mallory.call(path, "get:secret").await.is(200).text();
                assert_eq!(found, "", "{path} found something of another tenant's");
            }
            "nothing found".to_owned()
        })
        .await;
    scene
        .attack("another tenant's plugin, logs and bytes", || async {
            for path in ["", ":logs", ":history", ":fetch"] {
                let answer = scene.mallory.get(&format!("/api/plugins/alice/hostile{path}")).await;
                answer.problem(403, "forbidden_tenant");
            }
            let shared = scene.mallory.get("/api/plugins/system/hostile:logs").await.is(200).text();
            assert!(!shared.contains("alices-treasure"), "{shared}");
            scene.mallory.call("alice/hostile", "get:secret").await.problem(403, "forbidden_tenant");
            let other =
                scene.mallory.post_bytes("/api/plugins/system/hostile:call?tenant=alice", b"get:secret".to_vec());
            other.await.problem(403, "forbidden_tenant");
            "forbidden_tenant".to_owned()
        })
        .await;
}

#[tokio::test]
async fn no_payload_or_execution_of_another_tenant_can_be_asked_for() {
    let scene = Scene::start().await;
    let content = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: kept\n  path: kept\nworkflow:\n  \
                   - step: start\n    tool:\n      kind: noop\n";
    for api in [&scene.alice, &scene.mallory] {
        api.post("/api/catalog/register", json!({"content": content})).await.is(201);
    }
    // Known by its digest as an object, and given to an execution besides.
    let treasure = "alices-treasure ".repeat(1_000);
    let run = async |api: &Api, payload: serde_json::Value| {
        let ended = api.post("/api/execute?wait=60", json!({"path": "kept", "payload": payload})).await.is(200).json();
        ended["execution_id"].as_str().expect("an id").to_owned()
    };
    let alices = run(&scene.alice, json!({"treasure": treasure})).await;
    scene.alice.push(hostile_at("alice/hostile", ""), "").await.is(201);
    scene.alice.call("alice/hostile", &format!("put:{treasure}")).await.is(200);
    // Whoever knows the digest of something knows that it is there, and no more.
    let digest = noetl_contract::Digest::of(treasure.as_bytes()).hex();
    let reference = json!({"sha256": digest, "bytes": treasure.len(), "size": treasure.len()});
    let mallorys = run(&scene.mallory, json!({"reference": reference})).await;
    scene
        .attack("another tenant's execution and payloads", || async {
            for place in ["", "/status", "/commands", "/events", "/why"] {
                let answer = scene.mallory.get(&format!("/api/executions/{alices}{place}")).await;
                answer.problem(404, "execution_not_found");
            }
            let replay = |execution: &str| format!("/api/replay/state?execution_id={execution}&resolve_payloads=true");
            scene.mallory.get(&replay(&alices)).await.problem(404, "execution_not_found");
            for own in [replay(&mallorys), format!("/api/executions/{mallorys}/events")] {
                let shown = scene.mallory.get(&own).await.is(200).text();
                assert!(!shown.contains("alices-treasure"), "{own} shows something of another tenant's");
            }
            "execution_not_found".to_owned()
        })
        .await;
}
