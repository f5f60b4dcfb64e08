//! The components fold as the same code does natively: what the server replays from its log, with its component, has the
//! checksums that a program which links the pure core computes from the same bytes. And nothing on the way to a decision
//! ever read the tables.

use std::collections::BTreeMap;

use noetl_flow::view::{Cutoff, Segment, view};
use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::log::{self, Log as _};
use noetl_tests::load::{finish, register};
use noetl_tests::{Outside, Server};
use serde_json::Value;

/// What the kernel puts before the events of a segment: format, flags, root, deciding component, tenant.
fn decode(segment: &log::Segment) -> Segment {
    let body = &segment.body;
    assert_eq!(body[0], 1, "the format of the header");
    let events = 43 + usize::from(body[42]);
    Segment {
        execution: segment.stream.as_str()[2..].parse().expect("an id"),
        tenant: String::from_utf8(body[43..events].to_vec()).expect("a name"),
        version: segment.version,
        position: segment.position,
        time_ms: segment.time_ms,
        decided_by: body[10..42].iter().map(|byte| format!("{byte:02x}")).collect(),
        events: body[events..].to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn native_and_component_folds_have_equal_checksums() {
    let outside = Outside::start().await;
    let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let api = server.admin();
    register(&api).await;
    let mut replayed: BTreeMap<String, Value> = BTreeMap::new();
    for number in 0..9 {
        let execution = finish(&api, &outside, number).await;
        let path = format!("/api/replay/state?execution_id={execution}");
        replayed.insert(execution, api.get(&path).await.is(200).json());
    }
    let metrics = api.get("/metrics").await.is(200).text();
    let number = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.split(' ').next() == Some(name));
        let line = line.unwrap_or_else(|| panic!("{name} is not in the metrics"));
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number")
    };
    assert!(number("noetl_engine_inputs_total") > 50.0, "the drive was busy");
    assert_eq!(number("noetl_event_hotpath_reads_total"), 0.0);
    let (folder, _) = server.stop();
    let log = FileLog::open(folder.path().join("log"), FileLogOptions::default()).expect("the log opens");
    for (execution, component) in replayed {
        let stream = log::StreamId::new(format!("x/{execution}"));
        let chain = log.read_stream(&stream, 1, 10_000).expect("the chain can be read");
        let segments: Vec<Segment> = chain.iter().map(decode).collect();
        let native = view(&segments, Cutoff::Head).expect("it folds");
        for key in ["checksum", "projection_checksums", "event_count", "upcaster_registry_digest"] {
            assert!(!native[key].is_null(), "{key} is in {native}");
            assert_eq!(native[key], component[key], "{execution}: {key}");
        }
    }
}
