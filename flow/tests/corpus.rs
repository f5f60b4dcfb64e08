//! Fixed events give fixed checksums, in every build of this code.
//!
//! `corpus/<name>.jsonl` is a chain as it was written once: an event a line, an empty line between segments. These
//! files are never edited, because such events are in people's logs. `corpus/checksums.json` has what they come to: one
//! checksum a surface of the replay, one for all of it, and one each for the events in full and for the reason of the
//! outcome.
//!
//! A difference means that the same chain is now shown otherwise. If that is meant, take the new values from the
//! message.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use noetl_flow::view::{Cutoff, Segment, canonical, expand, explain, view};
use serde_json::{Map, Value as Json, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");

fn chains() -> BTreeMap<String, Vec<Segment>> {
    let mut chains = BTreeMap::new();
    for entry in fs::read_dir(FOLDER).expect("the corpus") {
        let file = entry.expect("a file").path();
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            let name = file.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            chains.insert(name, segments(&fs::read_to_string(&file).expect("text")));
        }
    }
    chains
}

fn segments(text: &str) -> Vec<Segment> {
    let segment = |(version, events): (u64, &str)| Segment {
        execution: 340_000_000_000_000_001,
        tenant: "main".to_owned(),
        version,
        position: version * 100,
        time_ms: 1_767_225_600_000,
        decided_by: "0".repeat(64),
        events: format!("{}\n", events.trim_end()).into_bytes(),
    };
    (1u64..).zip(text.split("\n\n")).map(segment).collect()
}

/// All that is vouched for.
fn checksums(segments: &[Segment]) -> Json {
    let replayed = view(segments, Cutoff::Head).expect("a chain that can be followed");
    let events = canonical::checksum(&expand(segments).into());
    let reason = canonical::checksum(&explain(segments).expect("a chain that can be followed"));
    let surfaces = &replayed["projection_checksums"];
    json!({"replay": replayed["checksum"], "surfaces": surfaces, "events": events, "reason": reason})
}

#[test]
fn the_corpus_has_the_checksums_it_always_had() {
    let text = fs::read_to_string(Path::new(FOLDER).join("checksums.json")).expect("checksums.json");
    let expected: Json = serde_json::from_str(&text).expect("JSON");
    let found: Map<String, Json> = chains().iter().map(|(name, chain)| (name.clone(), checksums(chain))).collect();
    let found = Json::Object(found);
    assert!(found == expected, "checksums.json should be:\n{}", serde_json::to_string_pretty(&found).expect("JSON"));
}

#[test]
fn every_kind_of_event_is_in_the_corpus() {
    let mut kinds: Vec<String> = Vec::new();
    for segment in chains().values().flatten() {
        for line in segment.events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Json = serde_json::from_slice(line).expect("an event");
            kinds.extend(line["e"].as_object().expect("an event").keys().cloned());
        }
    }
    kinds.sort();
    kinds.dedup();
    let known = [
        "adopted",
        "arrived",
        "cancel_requested",
        "child_started",
        "claimed",
        "entered",
        "failing",
        "finished",
        "issued",
        "loop_closed",
        "loop_opened",
        "loop_spilled",
        "lost",
        "parked",
        "reported",
        "resumed",
        "set",
        "skipped",
        "started",
    ];
    assert_eq!(kinds, known);
}

#[test]
fn a_chain_can_be_replayed_at_each_of_its_segments() {
    for (name, chain) in chains() {
        for end in 1..=chain.len() {
            let part = view(&chain[..end], Cutoff::Head).expect("a chain that can be followed");
            let cut = view(&chain, Cutoff::Position(chain[end - 1].position)).expect("a chain that can be followed");
            assert_eq!(part, cut, "{name} up to segment {end}");
        }
    }
}
