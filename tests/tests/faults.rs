//! Faults stay inside their call: each kind has its class, the server goes on, a version that keeps
//! faulting is set aside, and a bad new one is taken back.

use noetl_tests::{Server, guest, with_manifest, with_marker};

const PATH: &str = "main/faulty";

fn faulty(version: &str, extra: &str) -> Vec<u8> {
    let manifest = format!(
        "path = \"{PATH}\"\nversion = \"{version}\"\nworld = \"transform\"\ncapabilities = [\"log\"]\n\
         [limits]\ncpu_ms = 200\nwall_ms = 2000\nmemory_mb = 64\noutput_mb = 8\nhost_calls = 1000\n{extra}"
    );
    with_manifest(&guest("faulty"), &manifest)
}

const NEVER_QUARANTINE: &str = "[failure]\nquarantine_after = 0\n";

#[tokio::test]
async fn every_kind_of_fault_has_its_class_and_leaves_the_server_serving() {
    let server = Server::start();
    let api = server.admin();
    api.push(faulty("1.0.0", NEVER_QUARANTINE), "").await.is(201);
    let cases = [
        ("panic:out of cheese", 502, "trap", "out of cheese"),
        ("recurse", 502, "trap", "the guest trapped"),
        ("loop", 504, "timeout", "limits.cpu_ms"),
        ("alloc:100", 502, "memory", "limits.memory_mb"),
        ("output:9", 502, "output", "limits.output_mb"),
        ("hostcalls:2000", 502, "quota", "limits.host_calls"),
    ];
    for (input, status, code, says) in cases {
        let document = api.call(PATH, input).await.problem(status, code);
        let detail = document["detail"].as_str().expect("a detail");
        assert!(detail.contains(says) && detail.contains("main/faulty 1.0.0"), "{input}: {detail}");
        assert_eq!(api.call(PATH, "ok").await.is(200).text(), "ok");
    }
    let metrics = api.get("/metrics").await.is(200).text();
    for (_, _, class, _) in cases {
        let series = format!("noetl_plugin_faults_total{{plugin=\"{PATH}\",version=\"1.0.0\",class=\"{class}\"}}");
        assert!(metrics.lines().any(|line| line.starts_with(&series) && !line.ends_with(" 0")), "{series}\n{metrics}");
    }
}

#[tokio::test]
async fn a_failure_the_plugin_reports_is_an_answer_and_no_fault() {
    let server = Server::start();
    let api = server.admin();
    api.push(faulty("1.0.0", ""), "").await.is(201);
    for _ in 0..10 {
        let document = api.call(PATH, "fail:no_stock").await.problem(422, "plugin_failure");
        assert_eq!(document["failure"]["code"], "no_stock");
    }
    api.call(PATH, "ok").await.is(200);
}

#[tokio::test]
async fn guests_that_loop_do_not_keep_others_from_being_served() {
    let server = Server::start();
    let api = server.admin();
    api.push(faulty("1.0.0", NEVER_QUARANTINE), "").await.is(201);
    let loops: Vec<_> = (0..8)
        .map(|_| {
            let api = server.admin();
            tokio::spawn(async move { api.call(PATH, "loop").await })
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(api.call(PATH, "ok").await.is(200).text(), "ok");
        api.get("/health").await.is(200);
    }
    for looping in loops {
        looping.await.expect("a call").problem(504, "timeout");
    }
}

#[tokio::test]
async fn a_version_that_keeps_faulting_is_set_aside_until_released() {
    let server = Server::start();
    let api = server.admin();
    api.push(faulty("1.0.0", "[failure]\nquarantine_after = 3\nquarantine_secs = 600\n"), "").await.is(201);
    for _ in 0..3 {
        api.call(PATH, "panic:x").await.problem(502, "trap");
    }
    let refused = api.call(PATH, "ok").await;
    assert!(refused.header("retry-after").parse::<u64>().is_ok_and(|seconds| seconds > 0));
    refused.problem(503, "quarantined");
    api.post(&format!("/api/plugins/{PATH}:release"), serde_json::json!({"reason": "fixed outside"})).await.is(200);
    assert_eq!(api.call(PATH, "ok").await.is(200).text(), "ok");
}

#[tokio::test]
async fn a_new_version_that_faults_is_taken_back_by_itself_visibly() {
    let server = Server::start_with(&[("NOETL_ROLLBACK_MAX_FAILURES", "3")]);
    let api = server.admin();
    let good = "path = \"main/faulty\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = [\"log\"]\n";
    api.push(with_manifest(&with_marker(&guest("versioned"), 1), good), "").await.is(201);
    api.push(faulty("2.0.0", ""), "").await.is(201);
    for _ in 0..3 {
        api.call(PATH, "panic:new and broken").await.problem(502, "trap");
    }
    let answer = api.call(PATH, "panic:new and broken").await.is(200);
    assert_eq!(answer.header("noetl-plugin-version"), "1.0.0");
    let history = api.get(&format!("/api/plugins/{PATH}:history")).await.is(200).text();
    assert!(history.contains("faulted 3 times within its first 20 calls"), "{history}");
    let metrics = api.get("/metrics").await.is(200).text();
    assert!(metrics.lines().any(|line| line == "noetl_rollbacks_total 1"), "{metrics}");
}

#[tokio::test]
async fn staged_writes_are_kept_with_success_only_and_never_lost_to_a_race() {
    let server = Server::start();
    let api = server.admin();
    api.push(guest("counter"), "").await.is(201);
    let path = "main/counter";
    api.call(path, "fail-after:n").await.problem(422, "plugin_failure");
    assert_eq!(api.call(path, "n").await.is(200).text(), "1", "the failed call's write must not be there");
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let api = server.admin();
            tokio::spawn(async move {
                let mut counted = 0;
                while counted < 25 {
                    let answer = api.call(path, "n").await;
                    match answer.status {
                        200 => counted += 1,
                        // Another call was first; its own words or the kernel's say so.
                        409 | 422 => {}
                        _ => drop(answer.is(200)),
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("all calls counted");
    }
    assert_eq!(api.call(path, "n").await.is(200).text(), "102");
}

#[tokio::test]
async fn a_resident_instance_is_made_anew_after_every_kind_of_fault() {
    let server = Server::start();
    let api = server.admin();
    let resident = |path: &str| {
        let manifest = format!(
            "path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = [\"log\"]\ninstance = \"resident\"\n\
             [limits]\ncpu_ms = 200\nmemory_mb = 64\noutput_mb = 8\nhost_calls = 1000\n{NEVER_QUARANTINE}"
        );
        with_manifest(&guest("faulty"), &manifest)
    };
    let refused = api.push(resident("main/resident"), "").await.problem(422, "capability_denied");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("resident")), "{refused}");
    api.push(resident("system/resident"), "").await.is(201);
    for (input, status, code) in [
        ("panic:gone", 502, "trap"),
        ("loop", 504, "timeout"),
        ("alloc:100", 502, "memory"),
        ("output:9", 502, "output"),
        ("hostcalls:2000", 502, "quota"),
    ] {
        assert_eq!(api.call("system/resident", "ok").await.is(200).text(), "ok");
        api.call("system/resident", input).await.problem(status, code);
    }
    assert_eq!(api.call("system/resident", "ok").await.is(200).text(), "ok");
    let metrics = api.get("/metrics").await.is(200).text();
    let alive = metrics.lines().find(|line| line.starts_with("noetl_plugin_instances{plugin=\"system/resident\""));
    assert!(alive.is_some_and(|line| !line.ends_with(" 0")), "an instance is kept: {alive:?}");
}

#[tokio::test]
async fn a_tool_takes_and_gives_bulk_beside_its_json() {
    let server = Server::start();
    let api = server.admin();
    let answer = api.post("/api/plugins/tools/noop:call", serde_json::json!({"result": {"a": 1}})).await.is(200);
    assert_eq!(answer.json(), serde_json::json!({"a": 1}));
    assert_eq!(answer.header("noetl-resolved-by"), "embedded");
    api.push(guest("mirror"), "").await.is(201);
    let bulk = vec![7; 3 << 20];
    let path = "/api/plugins/main/mirror:call?arguments=%7B%22a%22%3A1%7D";
    let answer = api.post_bytes(path, bulk.clone()).await.is(200);
    assert_eq!((answer.json(), answer.header("noetl-body-size")), (serde_json::json!({"a": 1}), "3145728"));
    let answer = api.post_bytes(&format!("{path}&answer=body"), bulk.clone()).await.is(200);
    assert!(answer.bytes == bulk, "the bulk did not come back as it was");
}
