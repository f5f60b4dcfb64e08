//! What the log holds: history, restarts, and events that cannot be understood.

use super::*;
use crate::ledger::{Event, FoldError, LedgerError};
use event::{CatalogEvent, PushedVersion, What};

const ENRICH: &str = "acme/orders/enrich";

#[tokio::test]
async fn the_history_says_who_when_what_and_why_and_outlives_a_restart() {
    let bench = Bench::with(vec![embedded("system/auth", "0.1.0")]);
    bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    bench.push(ENRICH, "1.1.0", "b").await.expect("pushes");
    bench.rollback(ENRICH, None).await.expect("rolls back");
    bench.pin("acme", ENRICH, Some("1.1.0")).await.expect("pins");
    let before = bench.catalog.history(&path(ENRICH));
    let told: Vec<(&str, &str, &str)> =
        before.iter().map(|change| (change.actor.as_str(), change.what.as_str(), change.reason.as_str())).collect();
    assert_eq!(told[1].1, format!("pushed 1.1.0 ({}, ring user) to channel `stable`", Digest::of(b"b").short()));
    assert_eq!(told[2], ("root", "rolled channel `stable` back to 1.0.0", "bad"));
    assert_eq!(told[3], ("root", "pinned tenant `acme` to 1.1.0", "careful"));
    assert!(before.windows(2).all(|pair| pair[0].position < pair[1].position && pair[0].time_ms <= pair[1].time_ms));
    let state = bench.catalog.ledger.state();
    let bench = bench.reopen();
    assert_eq!(bench.catalog.history(&path(ENRICH)), before);
    assert_eq!(*bench.catalog.ledger.state(), *state);
    assert_eq!(bench.events(), 4);
}

#[tokio::test]
async fn a_change_wakes_whoever_watches_after_it_can_be_seen() {
    let bench = Bench::new();
    let mut revision = bench.catalog.revision();
    revision.mark_unchanged();
    bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    revision.changed().await.expect("the catalog is there");
    assert_eq!(*revision.borrow_and_update(), 1);
    assert!(bench.serves("acme", ENRICH).is_ok());
}

#[tokio::test]
async fn a_change_whose_caller_goes_away_is_still_folded() {
    let bench = Bench::new();
    let mut revision = bench.catalog.revision();
    let new = bench.new_version(manifest(ENRICH, "1.0.0"), "a").await;
    let actor = admin();
    let mut push = Box::pin(bench.catalog.push(&actor, new));
    // One poll hands the append to the log; then the caller is gone.
    assert!(futures_poll(&mut push).is_pending());
    drop(push);
    revision.wait_for(|revision| *revision == 1).await.expect("the catalog is there");
    assert!(bench.serves("acme", ENRICH).is_ok());
}

fn futures_poll<F: Future>(future: &mut std::pin::Pin<Box<F>>) -> std::task::Poll<F::Output> {
    future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

async fn append_raw(bench: &Bench, body: &str) {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let append = Append { stream: StreamId::new(STREAM), expected: Expected::Any, key: None, body };
    bench.log.append(append).await.expect("appends");
}

fn reopening(bench: &Bench) -> FoldError {
    match Catalog::open(bench.log.clone(), bench.payloads.clone(), Vec::new()).map(|_| ()) {
        Err(OpenError::Ledger(LedgerError::Fold(error))) => error,
        other => panic!("the fold was to fail: {other:?}"),
    }
}

#[tokio::test]
async fn an_event_of_a_newer_version_stops_the_catalog_with_a_clear_message() {
    let bench = Bench::new();
    append_raw(&bench, r#"{"type":"quantum_entangled","by":"x","by_tenant":null,"reason":""}"#).await;
    let text = reopening(&bench).to_string();
    assert!(text.contains("`quantum_entangled`") && text.contains("written by a newer version"), "{text}");
}

#[tokio::test]
async fn events_that_are_damaged_or_contradict_each_other_stop_the_catalog() {
    let bench = Bench::new();
    append_raw(&bench, "no json").await;
    assert!(matches!(reopening(&bench), FoldError::Malformed { version: 1, .. }));
    let bench = Bench::new();
    append_raw(
        &bench,
        r#"{"type":"channel_moved","path":"acme/x","channel":"stable","to":"1.0.0","by":"x","by_tenant":null,"reason":""}"#,
    )
    .await;
    assert!(matches!(reopening(&bench), FoldError::Contradiction { version: 1, .. }));
}

#[tokio::test]
async fn what_others_wrote_meanwhile_is_folded_before_a_change_is_decided() {
    let bench = Bench::new();
    let other = Catalog::open(bench.log.clone(), bench.payloads.clone(), Vec::new()).expect("opens");
    bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    let late = bench.new_version(manifest(ENRICH, "2.0.0"), "b").await;
    let outcome = other.push(&admin(), late).await.expect("pushes after folding the tail");
    assert_eq!(outcome.previous, Some(version("1.0.0")));
}

#[test]
fn every_kind_of_event_is_known_and_survives_its_json() {
    let (at, who) = (path(ENRICH), tenant("acme"));
    let kinds = [
        What::VersionPushed(Box::new(PushedVersion {
            manifest: manifest_with(ENRICH, "1.0.0", "capabilities = [\"log\"]\n[contract]\n\"noetl:log\" = \"0.1\""),
            digest: Digest::of(b"a"),
            size: 1,
            ring: Ring::User,
            imports: vec!["noetl:log/log@0.1.0".to_owned()],
            interpreter: Some(Digest::of(b"i")),
            channel: ChannelName::stable(),
            attestations: Vec::new(),
        })),
        What::ChannelMoved { path: at.clone(), channel: name("canary"), to: Some(version("1.0.0")) },
        What::RolledBack { path: at.clone(), channel: name("canary"), to: None },
        What::Pinned { tenant: who.clone(), path: at.clone(), version: version("1.0.0") },
        What::Unpinned { tenant: who.clone(), path: at.clone() },
        What::Bound { tenant: who.clone(), service: path("system/auth"), to: at.clone() },
        What::Unbound { tenant: who.clone(), service: path("system/auth") },
        What::VersionDeleted { path: at.clone(), version: version("1.0.0") },
        What::VersionAttested { path: at, version: version("1.0.0"), attestations: Vec::new() },
    ];
    let mut seen = Vec::new();
    for what in kinds {
        let event =
            CatalogEvent { what, by: "root".to_owned(), by_tenant: Some(who.clone()), reason: "why".to_owned() };
        let json = serde_json::to_value(&event).expect("json");
        seen.push(json["type"].as_str().expect("a tag").to_owned());
        assert_eq!((&json["by"], &json["reason"]), (&"root".into(), &"why".into()));
        assert_eq!(serde_json::from_value::<CatalogEvent>(json).expect("reads back"), event);
    }
    assert_eq!(seen, CatalogEvent::KINDS);
}
