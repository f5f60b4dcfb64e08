//! Events by page and as a stream, and the state at any moment.

use noetl_tests::Api;
use serde_json::{Value, json};

use crate::support::{
    Stream, asks, hello, playbook, register, rows, run, server, start, texts, until_parked, until_status,
};

async fn events(api: &Api, id: &str, query: &str) -> Value {
    api.get(&format!("/api/executions/{id}/events{query}")).await.is(200).json()
}

#[tokio::test]
async fn events_are_read_in_pages_that_together_are_all() {
    let server = server().await;
    let admin = server.admin();
    let items: Vec<u32> = (0..40).collect();
    let workflow = json!([{"step": "start", "loop": {"in": items, "iterator": "n", "spec": {"mode": "parallel"}},
        "tool": {"kind": "noop", "result": "{{ n }}"}}]);
    register(&admin, &playbook("demo/loop", workflow)).await.is(201);
    let ended = run(&admin, "demo/loop", json!({})).await;
    let id = ended["execution_id"].as_str().expect("an id");
    let all = events(&admin, id, "?limit=1000").await;
    assert_eq!(all["complete"], true);
    let types = texts(&all["events"], "event_type");
    assert_eq!((types[0], types[types.len() - 1]), ("playbook.initialized", "playbook.completed"));
    assert_eq!(types.iter().filter(|kind| **kind == "loop.item").count(), 40);
    let ids: Vec<u64> = texts(&all["events"], "event_id").iter().map(|id| id.parse().expect("a number")).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    assert_eq!(all["last_event"], json!(ids[ids.len() - 1].to_string()));

    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let page = events(&admin, id, &format!("?after={after}&limit=7")).await;
        assert!(rows(&page["events"]).count() <= 7);
        seen.extend(rows(&page["events"]).cloned());
        after = page["last_event"].as_str().expect("an id").to_owned();
        if page["complete"] == true {
            break;
        }
    }
    assert_eq!(json!(seen), all["events"]);
    let nothing = events(&admin, id, &format!("?after={after}")).await;
    assert_eq!(nothing, json!({"events": [], "last_event": after, "complete": true}));
    admin.get(&format!("/api/executions/{id}/events?limit=1001")).await.problem(400, "invalid_parameter");
}

#[tokio::test]
async fn a_stream_follows_is_resumed_and_ends_with_the_execution() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let id = start(&admin, "demo/asks").await;
    let mut stream = Stream::open(&admin, &id, None).await;
    let before = stream.up_to("step.parked").await;
    assert!(before.iter().all(|told| told.data["event_id"] == told.id && told.data["event_type"] == told.kind));

    let body = json!({"step": "ask", "value": {"answer": "yes"}});
    admin.post(&format!("/api/executions/{id}/resume"), body).await.is(200);
    let after = stream.rest().await;
    assert_eq!(after.last().map(|told| told.kind.as_str()), Some("playbook.completed"));

    let whole: Vec<_> = before.iter().chain(&after).cloned().collect();
    let page = events(&admin, &id, "?limit=1000").await;
    assert_eq!(whole.iter().map(|told| &told.data).collect::<Vec<_>>(), rows(&page["events"]).collect::<Vec<_>>());
    let resumed = Stream::open(&admin, &id, Some(&before[1].id)).await.rest().await;
    assert_eq!(resumed, whole[2..], "nothing is missed and nothing comes twice");
    let last = &whole[whole.len() - 1].id;
    assert_eq!(Stream::ask(&admin, &id, Some(last)).await.status(), 204, "there is nothing to come back for");
    assert_eq!(Stream::ask(&admin, &id, Some("x")).await.status(), 400);
}

#[tokio::test]
async fn a_stream_does_not_hold_up_a_stop_and_goes_on_after_the_next_start() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let id = start(&admin, "demo/asks").await;
    let mut stream = Stream::open(&admin, &id, None).await;
    let seen = stream.up_to("step.parked").await;
    let (data, said) = tokio::task::spawn_blocking(move || server.stop()).await.expect("it stops");
    assert!(!said.contains("dropped"), "the stream ended by itself:\n{said}");
    assert_eq!(stream.rest().await, [], "it ended whole and without an event");

    let again = noetl_tests::Server::start_on(data, &[]);
    let admin = again.admin();
    let stream = Stream::open(&admin, &id, Some(&seen[seen.len() - 1].id)).await;
    let body = json!({"step": "ask", "value": {"answer": 1}});
    admin.post(&format!("/api/executions/{id}/resume"), body).await.is(200);
    let rest = stream.rest().await;
    assert_eq!(rest.first().map(|told| told.kind.as_str()), Some("step.resumed"));
    assert_eq!(rest.last().map(|told| told.kind.as_str()), Some("playbook.completed"));
}

async fn replay(api: &Api, id: &str, query: &str) -> Value {
    api.get(&format!("/api/replay/state?execution_id={id}{query}")).await.is(200).json()
}

const SURFACES: [&str; 6] = ["execution", "stages", "frames", "commands", "business_objects", "loops"];

#[tokio::test]
async fn the_state_at_any_moment_is_folded_again_with_checksums() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &asks("demo/asks")).await.is(201);
    let id = start(&admin, "demo/asks").await;
    until_parked(&admin, &id, "ask").await;
    let parked = replay(&admin, &id, "").await;
    assert_eq!(parked["execution"]["status"], "RUNNING");
    assert_eq!(parked["stages"]["ask#1"]["status"], "PARKED", "{parked}");
    let position = admin.get("/api/executions?consistency=strong").await.is(200).json()["as_of"].clone();
    let position = position.as_str().expect("a position").to_owned();

    let body = json!({"step": "ask", "value": {"answer": "yes"}});
    admin.post(&format!("/api/executions/{id}/resume"), body).await.is(200);
    let shown = until_status(&admin, &id, "COMPLETED").await;
    let head = replay(&admin, &id, "").await;
    assert_eq!((&head["execution"]["status"], &head["tenant_id"]), (&json!("COMPLETED"), &json!("main")));
    assert_eq!(head["last_event_id"], shown["last_event_id"]);
    let hex = |value: &Value| value.as_str().is_some_and(|text| text.len() == 64);
    assert!(hex(&head["checksum"]) && hex(&head["upcaster_registry_digest"]), "{head}");
    assert_eq!(head["checksum_algorithm"], "sha256");
    let checksums = head["projection_checksums"].as_object().expect("checksums");
    assert_eq!(checksums.keys().collect::<Vec<_>>(), SURFACES);
    assert!(checksums.values().all(hex));
    assert_eq!(replay(&admin, &id, "").await, head, "the same again");

    let event = parked["last_event_id"].as_str().expect("an id");
    let time = shown["ended_at"].as_str().expect("a time");
    assert_eq!(replay(&admin, &id, &format!("&as_of_event_id={event}")).await, parked);
    assert_eq!(replay(&admin, &id, &format!("&as_of_position={position}")).await, parked);
    assert_eq!(replay(&admin, &id, &format!("&as_of_time={time}")).await, head);
    let before = replay(&admin, &id, "&as_of_time=1000").await;
    assert_eq!(before["event_count"], 0);

    let stages = replay(&admin, &id, "&projection=stage").await;
    assert_eq!((&stages["projection"], &stages["stages"]), (&json!("stage"), &head["stages"]));
    assert_eq!(stages["projection_checksums"], head["projection_checksums"]);
    assert!(SURFACES.iter().filter(|name| stages.get(**name).is_some()).eq(["stages"].iter()), "{stages}");
    let short = replay(&admin, &id, "&limit=1").await;
    assert_eq!(
        (short["stages"].as_object().map(serde_json::Map::len), &short["checksum"]),
        (Some(1), &head["checksum"])
    );
    assert!(rows(&short["truncated"]).any(|name| name == "stages"), "{short}");
    let resolved = replay(&admin, &id, "&resolve_payloads=true").await;
    assert_eq!(resolved["payload_resolution_summary"]["all_resolved"], true, "{resolved}");
}

#[tokio::test]
async fn a_replay_that_is_asked_for_wrongly_is_refused() {
    let server = server().await;
    let admin = server.admin();
    register(&admin, &hello("demo/hello")).await.is(201);
    let ended = run(&admin, "demo/hello", json!({})).await;
    let id = ended["execution_id"].as_str().expect("an id");
    for (query, field) in [
        ("&as_of_event_id=8&as_of_position=1", "as_of_position"),
        ("&projection=everything", "projection"),
        ("&as_of_time=yesterday", "as_of_time"),
        ("&limit=0", "limit"),
    ] {
        let answer = admin.get(&format!("/api/replay/state?execution_id={id}{query}")).await;
        assert_eq!(answer.problem(400, "invalid_parameter")["field"], field);
    }
    admin.get("/api/replay/state").await.problem(400, "invalid_parameter");
    for query in ["&tenant_id=other", "&organization_id=other"] {
        let answer = admin.get(&format!("/api/replay/state?execution_id={id}{query}")).await;
        answer.problem(404, "execution_not_found");
    }
    replay(&admin, id, "&tenant_id=main&organization_id=default").await;
}
