//! Guests that want more than a call has.

use noetl_tests::made;

use crate::scene::{HOSTILE, Scene, ended};

const LIMITS: &str =
    "[limits]\ncpu_ms = 200\nwall_ms = 2000\nmemory_mb = 64\noutput_mb = 8\n[failure]\nquarantine_after = 0\n";
const MADE: &str = "mallory/made";

fn manifest(capabilities: &[&str]) -> String {
    made::manifest(MADE, capabilities, LIMITS)
}

#[tokio::test]
async fn an_endless_loop_ends_with_its_processor_time() {
    let scene = Scene::with_guest().await;
    scene.attack("endless loop", || scene.call("loop", 504, "timeout")).await;
}

#[tokio::test]
async fn an_endless_loop_while_the_instance_is_made_ends_too() {
    let scene = Scene::start().await;
    let parts = "(func $start (loop $again (br $again))) (start $start)";
    scene.mallory.push(made::with_parts(parts, "(i32.const 0)", &manifest(&[])), "").await.is(201);
    scene
        .attack("endless loop before the first call", || async {
            ended(scene.mallory.call(MADE, "x").await, 504, "timeout")
        })
        .await;
}

#[tokio::test]
async fn endless_recursion_ends_with_the_guests_stack() {
    let scene = Scene::with_guest().await;
    scene.attack("endless recursion", || scene.call("recurse", 502, "trap")).await;
}

#[tokio::test]
async fn one_memory_that_grows_is_stopped_at_its_limit() {
    let scene = Scene::with_guest().await;
    scene.attack("memory bomb, one memory", || scene.call("memory:4000", 502, "memory")).await;
}

#[tokio::test]
async fn more_memories_than_a_module_may_have_are_refused_at_the_push() {
    let scene = Scene::start().await;
    for more in [1, 15, 60] {
        let component = made::with_parts(&"(memory 1)".repeat(more), "(i32.const 0)", &manifest(&[]));
        scene
            .attack(&format!("{} memories in a module", more + 1), || async {
                ended(scene.mallory.push(component.clone(), "").await, 422, "not_a_component")
            })
            .await;
    }
}

#[tokio::test]
async fn memories_of_many_instances_count_together() {
    let scene = Scene::start().await;
    // Each takes 16 MiB as soon as it is there, of 64 for all.
    let one = "(module (memory 1) (func $grow (if (i32.eq (memory.grow (i32.const 255)) (i32.const -1)) \
               (then unreachable))) (start $grow))";
    let honest = made::with_parts("", "(i32.const 0)", &manifest(&[]));
    scene.mallory.push(made::with_instances(&honest, one, 18), "").await.is(201);
    scene
        .attack("memory bomb, 18 memories of 16 MiB", || async {
            ended(scene.mallory.call(MADE, "x").await, 502, "memory")
        })
        .await;
    let few = noetl_tests::with_version(&made::with_instances(&honest, one, 2), "1.1.0");
    scene.mallory.push(few, "").await.is(201);
    scene.mallory.call(MADE, "x").await.is(200);
}

#[tokio::test]
async fn what_the_host_keeps_for_a_guest_counts_as_its_memory() {
    let scene = Scene::with_guest().await;
    scene.attack("300 MiB of staged writes", || scene.call("staged:300", 502, "memory")).await;
    scene.attack("250 MB of small payloads", || scene.call("payloads:1000", 502, "memory")).await;
}

#[tokio::test]
async fn an_answer_that_claims_4_gib_is_refused_before_anything_is_allocated() {
    let scene = Scene::start().await;
    scene.mallory.push(made::any_answer(&manifest(&[])), "").await.is(201);
    let word = |number: u32| number.to_le_bytes();
    let answer_of =
        |tag: u32, at: u32, length: u32| [word(tag), word(at), word(length), word(0), word(0), word(0)].concat();
    for (name, claim) in [
        ("answer of 4 GiB", answer_of(0, 0, u32::MAX)),
        ("answer beyond its memory", answer_of(0, u32::MAX - 1, 16)),
        ("failure with a code of 4 GiB", answer_of(1, 0, u32::MAX)),
        ("answer of no known kind", answer_of(7, 0, 0)),
    ] {
        let call = || async {
            let answer = scene.mallory.post_bytes(&format!("/api/plugins/{MADE}:call"), claim.clone()).await;
            ended(answer, 502, "trap")
        };
        scene.attack(name, call).await;
    }
}

#[tokio::test]
async fn an_answer_larger_than_its_limit_is_refused() {
    let scene = Scene::with_guest().await;
    scene.attack("answer of 32 MiB", || scene.call("output:32", 502, "output")).await;
}

#[tokio::test]
async fn a_flood_of_host_calls_ends_with_their_number() {
    let scene = Scene::with_guest().await;
    scene.attack("flood of host calls", || scene.call("calls:1000000", 502, "quota")).await;
}

#[tokio::test]
async fn huge_arguments_of_host_calls_end_with_their_sum() {
    let scene = Scene::with_guest().await;
    scene.attack("host-call arguments of 20 MiB", || scene.call("argument:20", 502, "quota")).await;
}

#[tokio::test]
async fn arguments_that_lie_about_their_place_trap_the_guest_and_nothing_else() {
    let scene = Scene::start().await;
    scene.mallory.push(made::any_arguments(&manifest(&["log", "kv"])), "").await.is(201);
    let lie: Vec<u8> = [0_u32, 0, u32::MAX, 0, u32::MAX, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
    scene
        .attack("host-call argument of 4 GiB that is not there", || async {
            let answer = scene.mallory.post_bytes(&format!("/api/plugins/{MADE}:call"), lie.clone()).await;
            ended(answer, 502, "trap")
        })
        .await;
}

#[tokio::test]
async fn a_guest_that_waits_in_a_host_call_ends_with_its_time() {
    let scene = Scene::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]).await;
    scene.mallory.push(noetl_tests::guest("hostile"), "").await.is(201);
    // Accepts, and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let input = format!("fetch:http://{}/", silent.local_addr().expect("bound"));
    scene
        .attack("sleep inside a host call", || async {
            // The guest sets no time for the request: the end of its own is what it meets.
            ended(scene.mallory.call(HOSTILE, &input).await, 504, "timeout")
        })
        .await;
}

#[tokio::test]
async fn a_panic_with_a_message_of_10_mb_is_told_in_short() {
    let scene = Scene::with_guest().await;
    scene
        .attack("panic with 10 MB of message", || async {
            let answer = scene.mallory.call(HOSTILE, "panic:10").await;
            assert!(answer.bytes.len() < 100_000, "{} bytes of answer", answer.bytes.len());
            ended(answer, 502, "trap")
        })
        .await;
}

#[tokio::test]
async fn a_flood_of_log_lines_costs_others_none_of_theirs() {
    let scene = Scene::start().await;
    let all = ["log", "metrics", "kv", "payload", "objects", "http-client"];
    let patient = made::manifest(HOSTILE, &all, "[limits]\ncpu_ms = 20000\nwall_ms = 60000\n");
    scene.mallory.push(noetl_tests::with_manifest(&noetl_tests::guest("hostile"), &patient), "").await.is(201);
    let seen = || async {
        let lines = scene.alice.get("/api/plugins/alice/hostile:logs").await.is(200);
        lines.text().contains("keeping alices-line")
    };
    let manifest = made::manifest("alice/hostile", &all, "");
    scene.alice.push(noetl_tests::with_manifest(&noetl_tests::guest("hostile"), &manifest), "").await.is(201);
    scene.alice.call("alice/hostile", "put:alices-line").await.is(200);
    scene
        .attack("log flood", || async {
            // More lines than are kept.
            for _ in 0..6 {
                scene.mallory.call(HOSTILE, "log:2500").await.is(200);
            }
            "answered, lines dropped".to_owned()
        })
        .await;
    assert!(seen().await, "the flood took another tenant's line");
    let metrics = scene.server.admin().get("/metrics").await.is(200).text();
    let dropped = metrics.lines().find(|line| line.starts_with("noetl_plugin_log_lines_dropped_total"));
    assert!(dropped.is_some_and(|line| !line.ends_with(" 0")), "{dropped:?}");
}

#[tokio::test]
async fn more_series_than_a_plugin_may_have_are_refused() {
    let scene = Scene::with_guest().await;
    scene
        .attack("4000 metric series", || async {
            let refused = scene.mallory.call(HOSTILE, "series:4000").await.is(200).text();
            assert_eq!(refused, "3800");
            "answered, series refused".to_owned()
        })
        .await;
}

#[tokio::test]
async fn a_component_that_traps_on_every_call_is_set_aside() {
    let scene = Scene::start().await;
    let limits = "[failure]\nquarantine_after = 5\nquarantine_secs = 600\n";
    let component = made::with_parts("", "(unreachable)", &made::manifest(MADE, &[], limits));
    scene.mallory.push(component, "").await.is(201);
    for _ in 0..5 {
        scene.mallory.call(MADE, "x").await.problem(502, "trap");
    }
    let calls = async || {
        let metrics = scene.server.admin().get("/metrics").await.is(200).text();
        let series = format!("noetl_plugin_calls_total{{plugin=\"{MADE}\"");
        metrics.lines().find(|line| line.starts_with(&series)).map(str::to_owned)
    };
    let before = calls().await;
    scene
        .attack("trap on every call", || async { ended(scene.mallory.call(MADE, "x").await, 503, "quarantined") })
        .await;
    assert_eq!(calls().await, before, "a version that is set aside costs no call");
}
