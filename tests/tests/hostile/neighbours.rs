//! One tenant against another: taking everything, and looking into what is not one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use noetl_tests::{Api, guest, made, with_manifest};

use crate::scene::{HOSTILE, Scene};

const ALL: [&str; 6] = ["log", "metrics", "kv", "payload", "objects", "http-client"];

fn hostile_at(path: &str, extra: &str) -> Vec<u8> {
    with_manifest(&guest("hostile"), &made::manifest(path, &ALL, extra))
}

/// Calls without end on many connections, until told to stop.
struct Flood {
    callers: Vec<tokio::task::JoinHandle<()>>,
    over: Arc<AtomicBool>,
}

impl Flood {
    fn start(api: impl Fn() -> Api, connections: usize, path: &'static str, input: &'static str) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let caller = |_| {
            let (api, over) = (api(), over.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    api.call(path, input).await;
                }
            })
        };
        Self { callers: (0..connections).map(caller).collect(), over }
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
    for (name, connections, input) in
        [("200 callers that compute without end", 200, "loop"), ("200 callers of a cheap call", 200, "ok")]
    {
        let secret = scene.server.admin().token_for("mallory", "tenant").await;
        let flood = Flood::start(|| scene.server.with_token(&secret), connections, HOSTILE, input);
        // Until the first of them has been served, so that the bystander finds them all there.
        scene.mallory.call(HOSTILE, "ok").await;
        scene.attack(name, || async { "both served".to_owned() }).await;
        flood.stop();
    }
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
