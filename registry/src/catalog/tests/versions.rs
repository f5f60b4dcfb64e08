//! Versions, channels, rollback, deletion and pins.

use super::*;

const ENRICH: &str = "acme/orders/enrich";

#[tokio::test]
async fn a_push_is_served_at_once_and_says_what_it_replaced() {
    let bench = Bench::new();
    let first = bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    assert!(first.created && first.previous.is_none());
    let second = bench.push(ENRICH, "1.1.0", "b").await.expect("pushes");
    assert_eq!(second.previous, Some(version("1.0.0")));
    assert_eq!((second.entry.pushed_by.as_str(), second.entry.digest), ("root", Digest::of(b"b")));
    assert!(second.entry.pushed_at_ms > 0);
    assert_eq!(bench.serves("acme", ENRICH), served(ENRICH, "1.1.0", Source::Channel));
}

#[tokio::test]
async fn a_version_means_the_same_bytes_for_ever() {
    let bench = Bench::new();
    bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    let again = bench.push(ENRICH, "1.0.0", "a").await.expect("the same bytes are no error");
    assert!(!again.created);
    assert_eq!(bench.events(), 1, "nothing changed, so nothing was written");
    let other = bench.push(ENRICH, "1.0.0", "b").await.expect_err("other bytes");
    assert!(
        matches!(other, CatalogError::VersionTaken { existing, deleted: false, .. } if existing == Digest::of(b"a"))
    );

    // Pushing known bytes moves the channel back to them.
    bench.push(ENRICH, "1.1.0", "b").await.expect("pushes");
    let back = bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    assert_eq!((back.created, back.previous), (false, Some(version("1.1.0"))));
    assert_eq!(bench.serves("acme", ENRICH), served(ENRICH, "1.0.0", Source::Channel));

    let mut lowered = bench.new_version(manifest(ENRICH, "1.0.0"), "a").await;
    lowered.ring = Ring::Pure;
    assert!(matches!(bench.push_as(&admin(), lowered).await, Err(CatalogError::RingTaken { .. })));
}

#[tokio::test]
async fn a_version_whose_bytes_are_not_stored_is_refused() {
    let bench = Bench::new();
    let mut new = bench.new_version(manifest(ENRICH, "1.0.0"), "a").await;
    new.digest = Digest::of(b"never stored");
    assert!(matches!(bench.push_as(&admin(), new).await, Err(CatalogError::BytesMissing { .. })));
    assert_eq!(bench.events(), 0);
}

#[tokio::test]
async fn of_two_pushes_of_one_version_exactly_one_wins() {
    let bench = Bench::new();
    // A second catalog on the same log has a snapshot and a writer of its own: only the expected version
    // of the stream can keep the two apart.
    let other = Catalog::open(bench.log.clone(), bench.payloads.clone(), Vec::new()).expect("opens");
    for round in 0..20 {
        let number = format!("1.{round}.0");
        let (left, right) = (
            bench.new_version(manifest(ENRICH, &number), &format!("left {round}")).await,
            bench.new_version(manifest(ENRICH, &number), &format!("right {round}")).await,
        );
        let (mine, theirs) = (admin(), admin());
        let (left, right) = tokio::join!(bench.catalog.push(&mine, left), other.push(&theirs, right));
        assert_eq!(left.is_ok() as u32 + right.is_ok() as u32, 1, "round {round}: {left:?} {right:?}");
        let lost = left.err().or(right.err()).expect("one lost");
        assert!(matches!(lost, CatalogError::VersionTaken { .. }), "{lost}");
    }
    assert_eq!(bench.log.verify().expect("reads").segments, 20);
}

#[tokio::test]
async fn a_channel_does_not_touch_another() {
    let bench = Bench::new();
    bench.push_to("stable", ENRICH, "1.0.0").await;
    bench.push_to("canary", ENRICH, "2.0.0").await;
    assert_eq!(bench.serves("acme", ENRICH), served(ENRICH, "1.0.0", Source::Channel));
    assert_eq!(bench.serves_with("acme", ENRICH, &channel("canary")), served(ENRICH, "2.0.0", Source::Channel));
    let missing = bench.serves_with("acme", ENRICH, &channel("beta")).expect_err("nobody made it");
    assert_eq!(missing.to_string(), "acme/orders/enrich has no channel `beta`: it has canary, stable");
    assert!(ChannelName::new("Beta").is_err() && ChannelName::new("-a").is_err() && ChannelName::new("").is_err());
}

#[tokio::test]
async fn rollback_walks_back_and_a_push_starts_anew() {
    let bench = Bench::new();
    for number in ["1.0.0", "2.0.0", "3.0.0"] {
        bench.push_to("stable", ENRICH, number).await;
    }
    let stable = ChannelName::stable();
    assert_eq!(bench.catalog.previous_of(&path(ENRICH), &stable), Some(version("2.0.0")));
    let moved = bench.rollback(ENRICH, None).await.expect("rolls back");
    assert_eq!((moved.from, moved.to, moved.embedded), (Some(version("3.0.0")), version("2.0.0"), false));
    bench.push_to("stable", ENRICH, "4.0.0").await;
    // What was rolled back from is not somewhere to go back to.
    assert_eq!(bench.rollback(ENRICH, None).await.expect("rolls back").to, version("2.0.0"));
    assert_eq!(bench.rollback(ENRICH, None).await.expect("rolls back").to, version("1.0.0"));
    let end = bench.rollback(ENRICH, None).await.expect_err("nothing before");
    assert!(matches!(end, CatalogError::NothingBefore { .. }), "{end}");
    assert_eq!(bench.rollback(ENRICH, Some("3.0.0")).await.expect("by name").to, version("3.0.0"));
    assert!(matches!(bench.rollback(ENRICH, Some("9.0.0")).await, Err(CatalogError::NoVersion { .. })));
    assert!(matches!(bench.rollback("acme/none", None).await, Err(CatalogError::NoPlugin(_))));
}

#[tokio::test]
async fn going_to_and_fro_does_not_make_rollback_go_in_circles() {
    let bench = Bench::new();
    for number in ["1.0.0", "2.0.0", "1.0.0", "2.0.0"] {
        bench.push_to("stable", ENRICH, number).await;
    }
    assert_eq!(bench.rollback(ENRICH, None).await.expect("rolls back").to, version("1.0.0"));
    assert!(bench.rollback(ENRICH, None).await.is_err());
}

#[tokio::test]
async fn what_is_compiled_in_serves_first_and_last() {
    let bench = Bench::with(vec![embedded("system/auth", "0.1.0")]);
    assert_eq!(bench.serves("acme", "system/auth"), served("system/auth", "0.1.0", Source::Embedded));
    let first = bench.push("system/auth", "0.2.0", "b").await.expect("pushes");
    assert_eq!(first.previous, Some(version("0.1.0")));
    let moved = bench.rollback("system/auth", None).await.expect("rolls back");
    assert!(moved.embedded);
    let resolved = bench.catalog.resolve(&tenant("acme"), &path("system/auth"), &Selector::default()).expect("serves");
    assert_eq!(resolved.bytes, BytesAt::Embedded(b"compiled in"));
    assert!(matches!(bench.rollback("system/auth", None).await, Err(CatalogError::NothingBefore { .. })));
    // The number of a compiled-in version is taken like any other.
    assert!(matches!(bench.push("system/auth", "0.1.0", "x").await, Err(CatalogError::VersionTaken { .. })));
    // A channel nobody made is not the compiled-in version under another name.
    assert!(matches!(bench.serves_with("acme", "system/auth", &channel("beta")), Err(ResolveError::NoChannel { .. })));
    let delete = bench.catalog.delete_version(&admin(), &path("system/auth"), &version("0.1.0"), "").await;
    assert!(matches!(delete, Err(CatalogError::CompiledIn { .. })));
    let twice = vec![embedded("system/auth", "0.1.0"), embedded("system/auth", "0.2.0")];
    let refused = Catalog::open(bench.log.clone(), bench.payloads.clone(), twice);
    assert!(matches!(refused.err(), Some(OpenError::EmbeddedTwice(_))));
}

#[tokio::test]
async fn only_an_unused_version_can_be_deleted_and_its_number_stays_taken() {
    let bench = Bench::new();
    for number in ["1.0.0", "2.0.0", "3.0.0"] {
        bench.push_to("stable", ENRICH, number).await;
    }
    let delete =
        async |number: &str| bench.catalog.delete_version(&admin(), &path(ENRICH), &version(number), "old").await;
    let used = delete("3.0.0").await.expect_err("in use");
    assert_eq!(used.to_string(), "acme/orders/enrich 3.0.0 is in use by channel `stable`: move that first");
    bench.pin("acme", ENRICH, Some("2.0.0")).await.expect("pins");
    assert!(matches!(delete("2.0.0").await, Err(CatalogError::InUse { .. })));
    bench.pin("acme", ENRICH, None).await.expect("unpins");
    delete("2.0.0").await.expect("deletes");
    assert!(matches!(delete("2.0.0").await, Err(CatalogError::NoVersion { .. })));
    assert!(matches!(bench.serves_with("acme", ENRICH, &exactly("2.0.0")), Err(ResolveError::NoVersion { .. })));
    // A rollback steps over it.
    assert_eq!(bench.rollback(ENRICH, None).await.expect("rolls back").to, version("1.0.0"));
    let bench = bench.reopen();
    let other = bench.push(ENRICH, "2.0.0", "other").await.expect_err("the number is taken");
    assert!(matches!(other, CatalogError::VersionTaken { deleted: true, .. }), "{other}");
    assert!(bench.push(ENRICH, "2.0.0", "2.0.0").await.expect("its own bytes may come back").created);
}

#[tokio::test]
async fn a_pin_wins_over_channels_for_its_tenant_alone() {
    let bench = Bench::with(vec![embedded("tools/http", "0.1.0")]);
    bench.push_to("stable", "tools/http", "1.0.0").await;
    bench.push_to("stable", "tools/http", "2.0.0").await;
    bench.pin("acme", "tools/http", Some("1.0.0")).await.expect("pins");
    assert_eq!(bench.serves("acme", "tools/http"), served("tools/http", "1.0.0", Source::Pin));
    assert_eq!(bench.serves_with("acme", "tools/http", &channel("stable")), served("tools/http", "1.0.0", Source::Pin));
    assert_eq!(bench.serves("other", "tools/http"), served("tools/http", "2.0.0", Source::Channel));
    bench.pin("acme", "tools/http", Some("0.1.0")).await.expect("to the compiled-in one");
    assert_eq!(bench.serves("acme", "tools/http"), served("tools/http", "0.1.0", Source::Embedded));
    assert!(matches!(bench.pin("acme", "tools/http", Some("9.0.0")).await, Err(CatalogError::NoVersion { .. })));
    assert!(matches!(bench.pin("acme", "other/x", Some("1.0.0")).await, Err(CatalogError::Foreign { .. })));
}

#[tokio::test]
async fn a_tenant_changes_and_sees_its_own_alone() {
    let bench = Bench::new();
    bench.push(ENRICH, "1.0.0", "a").await.expect("pushes");
    let intruder = of_tenant("other");
    let new = bench.new_version(manifest(ENRICH, "6.6.6"), "evil").await;
    assert!(matches!(bench.push_as(&intruder, new).await, Err(CatalogError::Forbidden { .. })));
    let new = bench.new_version(manifest("system/auth", "6.6.6"), "evil").await;
    assert!(matches!(bench.push_as(&intruder, new).await, Err(CatalogError::Forbidden { .. })));
    let (at, stable, first) = (path(ENRICH), ChannelName::stable(), version("1.0.0"));
    let catalog = &bench.catalog;
    assert!(matches!(catalog.rollback(&intruder, &at, &stable, None, "").await, Err(CatalogError::Forbidden { .. })));
    assert!(matches!(
        catalog.move_channel(&intruder, &at, &stable, &first, "").await,
        Err(CatalogError::Forbidden { .. })
    ));
    assert!(matches!(catalog.delete_version(&intruder, &at, &first, "").await, Err(CatalogError::Forbidden { .. })));
    assert!(matches!(
        catalog.pin(&intruder, &tenant("acme"), &at, None, "").await,
        Err(CatalogError::Forbidden { .. })
    ));
    assert!(matches!(
        catalog.bind(&intruder, &tenant("acme"), &at, None, "").await,
        Err(CatalogError::Forbidden { .. })
    ));
    assert!(matches!(bench.serves("other", ENRICH), Err(ResolveError::Foreign { .. })));
    let seen = bench.catalog.entries(&EntryFilter { visible_to: Some(tenant("other")), prefix: None });
    assert!(seen.is_empty());
    assert_eq!(bench.events(), 1);
    let own = bench.new_version(manifest(ENRICH, "1.1.0"), "b").await;
    assert!(bench.push_as(&of_tenant("acme"), own).await.is_ok());
}

#[test]
fn source_text_of_the_binary_runs_on_the_interpreter_of_the_binary() {
    let interpreter = Embedded {
        manifest: manifest_with("system/interpreters/python", "1.0.0", "world = \"interpreter\""),
        ..embedded("system/x", "1.0.0")
    };
    let tool = |path: &str, language: &str| Embedded {
        manifest: manifest_with(
            path,
            "1.0.0",
            &format!(
                "world = \"tool\"\ncapabilities = [\"payload\"]\n[source]\nlanguage = \"{language}\"\nentry = \"main.py\""
            ),
        ),
        digest: Digest::of(b"text"),
        ..embedded("tools/x", "1.0.0")
    };
    let digest = interpreter.digest;
    let bench = Bench::with(vec![tool("tools/python", "python"), tool("tools/cobol", "cobol"), interpreter]);
    let runs_on = |path_of: &str| {
        let resolved = bench.catalog.resolve(&Tenant::main(), &path(path_of), &Selector::default());
        resolved.expect("it is compiled in").entry.interpreter
    };
    assert_eq!((runs_on("tools/python"), runs_on("tools/cobol")), (Some(digest), None));
}

#[tokio::test]
async fn an_interpreter_that_a_version_runs_on_stays() {
    let bench = Bench::new();
    let python = "system/interpreters/python";
    let interpreter = |number: &str| manifest_with(python, number, "world = \"interpreter\"");
    for (number, content) in [("1.0.0", "old"), ("1.1.0", "new")] {
        let new = bench.new_version(interpreter(number), content).await;
        bench.push_as(&admin(), new).await.expect("pushes");
    }
    let mut plugin = bench.new_version(manifest(ENRICH, "1.0.0"), "text").await;
    plugin.interpreter = Some(Digest::of(b"old"));
    bench.push_as(&admin(), plugin).await.expect("pushes");
    let delete =
        async |at: &str, number: &str| bench.catalog.delete_version(&admin(), &path(at), &version(number), "old").await;
    let refused = delete(python, "1.0.0").await.expect_err("it is run on");
    assert!(matches!(&refused, CatalogError::InUse { by, .. } if by.contains(ENRICH)), "{refused}");
    assert!(!bench.catalog.was_deleted(&path(python), &Digest::of(b"old")));

    bench.push(ENRICH, "1.1.0", "other").await.expect("pushes");
    delete(ENRICH, "1.0.0").await.expect("nothing points to it");
    delete(python, "1.0.0").await.expect("nothing runs on it");
    assert!(bench.catalog.was_deleted(&path(python), &Digest::of(b"old")));
    assert!(!bench.catalog.was_deleted(&path(python), &Digest::of(b"never")));
}
