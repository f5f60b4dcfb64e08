use proptest::prelude::*;

use super::*;
use crate::event::Ending;
use crate::view::expand::expand;
use crate::view::samples::{self, START_MS, any_chain, chain};

#[test]
fn the_answer_has_the_fields_that_are_promised() {
    let answer = view(&samples::failing_loop(), Cutoff::Head).expect("a chain");
    let fields: Vec<_> = answer.as_object().expect("an object").keys().map(String::as_str).collect();
    let promised = ["tenant_id", "organization_id", "execution_id", "projection", "event_count", "last_event_id"]
        .into_iter()
        .chain(["last_event_type"])
        .chain(SURFACES)
        .chain(["upcaster_registry_digest", "checksum_algorithm", "projection_checksums", "checksum"]);
    assert_eq!(fields, promised.collect::<Vec<_>>());
    let events = expand(&samples::failing_loop());
    let last = events.last().expect("events");
    assert_eq!(answer["event_count"], events.len());
    assert_eq!((&answer["last_event_id"], &answer["last_event_type"]), (&last["event_id"], &last["event_type"]));
    for name in SURFACES {
        assert_eq!(answer["projection_checksums"][name], checksum(&answer[name]), "{name}");
    }
    assert_eq!(answer["execution"]["status"], "FAILED");
    assert_eq!(answer["execution"]["error"]["code"], "step_failed");
    assert_eq!(answer["stages"]["start#1"]["result"], json!({"status": "success", "context": {"data": {"n": 2}}}));
    assert_eq!(answer["frames"]["load#1[1]"]["attempts"], 2);
    assert_eq!(answer["business_objects"]["n"]["value"], 2);
    assert_eq!(answer["loops"]["load#1"]["mode"], "parallel");
}

#[test]
fn the_same_moment_can_be_asked_for_in_four_ways() {
    let segments = samples::failing_loop();
    // The second segment ends with event 10 of the execution.
    let by_position = view(&segments, Cutoff::Position(20)).expect("a chain");
    assert_eq!(by_position["last_event_id"], "87");
    assert_eq!(by_position["execution"]["status"], "RUNNING");
    assert_eq!(by_position, view(&segments, Cutoff::Event(87)).expect("a chain"));
    assert_eq!(by_position, view(&segments, Cutoff::TimeMs(START_MS + 10_999)).expect("a chain"));
    assert_eq!(by_position, view(&segments[..2], Cutoff::Head).expect("a chain"));
    assert_eq!(by_position["checksum"], view(&segments, Cutoff::Position(29)).expect("a chain")["checksum"]);
    assert_ne!(by_position["checksum"], view(&segments, Cutoff::Head).expect("a chain")["checksum"]);
}

#[test]
fn before_the_first_event_there_is_nothing() {
    let answer = view(&samples::failing_loop(), Cutoff::TimeMs(1)).expect("a chain");
    assert_eq!((&answer["event_count"], &answer["last_event_id"]), (&json!(0), &Json::Null));
    assert!(SURFACES.iter().all(|name| answer[*name] == json!({})));
}

#[test]
fn a_chain_that_is_not_whole_is_refused() {
    let mut segments = samples::failing_loop();
    assert_eq!(view(&[], Cutoff::Head), Err(Broken::Empty));
    assert_eq!(view(&segments[1..], Cutoff::Head), Err(Broken::Gap { expected: 1, found: 2 }));
    segments[1].execution += 1;
    assert!(matches!(view(&segments, Cutoff::Head), Err(Broken::Mixed { .. })));
    segments.remove(1);
    segments.iter_mut().zip(1u64..).for_each(|(segment, version)| segment.version = version);
    assert_eq!(view(&segments, Cutoff::Head), Err(Broken::Id { expected: 4, found: 11 }));
    segments[0].events = br#"{"id":1,"at":5,"e":{"dreamt":{}}}"#.to_vec();
    assert!(matches!(view(&segments, Cutoff::Head), Err(Broken::Line { version: 1, .. })));
}

/// Who reads an execution must not be able to write its placeholders.
#[test]
fn no_view_shows_the_seal() {
    let segments = samples::failing_loop();
    let seal = "never shown";
    assert!(String::from_utf8_lossy(&segments[0].events).contains(seal), "it is there");
    let shown = [
        view(&segments, Cutoff::Head).expect("a chain").to_string(),
        serde_json::to_string(&expand(&segments)).expect("JSON"),
        crate::view::explain::explain(&segments).expect("a chain").to_string(),
        format!("{:?}", crate::view::rows::project(&segments)),
    ];
    assert!(shown.iter().all(|text| !text.contains(seal)), "{shown:?}");
}

#[test]
fn a_registry_of_upcasters_shows_in_the_answer() {
    let segments = chain(vec![vec![samples::started()], vec![samples::finished(Ending::Completed, None, &[])]]);
    let upcasters = Upcasters::default().with("finished", 1, 2, |mut body| {
        body["failed_steps"] = json!(["old"]);
        body
    });
    let answer = view_with(&segments, Cutoff::Head, &upcasters.expect("raises")).expect("a chain");
    assert_eq!(answer["execution"]["failed_steps"], json!(["old"]));
    let plain = view(&segments, Cutoff::Head).expect("a chain");
    assert_ne!(answer["upcaster_registry_digest"], plain["upcaster_registry_digest"]);
    assert_ne!(answer["checksum"], plain["checksum"]);
}

#[test]
fn the_state_of_the_engine_is_vouched_for() {
    let segments = samples::failing_loop();
    let answer = view(&segments, Cutoff::Head).expect("a chain");
    let mut state = None;
    segments.iter().for_each(|segment| state::fold_lines(&mut state, &segment.events).expect("folds"));
    assert_eq!(answer["execution"]["state_checksum"], state::checksum(&state.expect("a state")));
    let unfounded = chain(vec![vec![samples::started()], vec![samples::done("never#1", json!(1))]]);
    assert!(matches!(view(&unfounded, Cutoff::Head), Err(Broken::State(_))));
}

/// The answer for a chain that an engine would not write, so that it has no state.
fn shown(segments: &[Segment], cutoff: Cutoff) -> Json {
    let upcasters = Upcasters::current();
    let mut events = follow(segments, &upcasters).expect("a chain");
    events.truncate(events.partition_point(|event| within(event, cutoff)));
    reply(&segments[0], &events, Surfaces::of(&events), &upcasters)
}

proptest! {
    #[test]
    fn how_a_chain_is_asked_for_does_not_change_the_answer(segments in any_chain(), cut in 1usize..8) {
        let cut = cut.min(segments.len());
        let before = shown(&segments[..cut], Cutoff::Head);
        let position = segments[cut - 1].position;
        prop_assert_eq!(&before, &shown(&segments, Cutoff::Position(position)));
        let last = before["last_event_id"].as_str().expect("text").parse().expect("a number");
        prop_assert_eq!(before, shown(&segments, Cutoff::Event(last)));
    }
}
