//! Each change, what it leaves, and who may make it.

use super::*;

#[tokio::test]
async fn a_new_text_is_a_new_version_and_the_same_text_is_not() {
    let bench = Bench::new();
    let first = bench.register("acme", "orders", "one").await.expect("registers");
    assert_eq!((first.id().to_string(), first.created), ("orders@1".to_owned(), true));
    let again = bench.register("acme", "orders", "one").await.expect("registers");
    assert_eq!((again.entry.clone(), again.created), (first.entry, false));
    assert_eq!(bench.events(), 1);
    assert_eq!(bench.register("acme", "orders", "two").await.expect("registers").entry.version, 2);
    // Only the newest text counts: going back to an older one is a change.
    assert_eq!(bench.register("acme", "orders", "one").await.expect("registers").entry.version, 3);
    assert_eq!(bench.means("acme", "orders", None).await, Some((3, "one".to_owned())));
    assert_eq!(bench.means("acme", "orders", Some(2)).await, Some((2, "two".to_owned())));
    assert_eq!(bench.means("acme", "orders", Some(4)).await, None);
    assert_eq!(bench.means("other", "orders", None).await, None);
}

#[tokio::test]
async fn an_archived_version_is_found_by_its_number_only() {
    let bench = Bench::new();
    for text in ["one", "two", "three"] {
        bench.register("acme", "orders", text).await.expect("registers");
    }
    let (who, at) = (tenant("acme"), path("orders"));
    let archived = bench.playbooks.archive(&admin(), &who, &at, Some(3)).await.expect("archives");
    assert_eq!(archived.iter().map(ToString::to_string).collect::<Vec<_>>(), ["orders@3"]);
    assert!(bench.playbooks.archive(&admin(), &who, &at, Some(3)).await.expect("nothing to do").is_empty());
    assert_eq!(bench.means("acme", "orders", None).await, Some((2, "two".to_owned())));
    assert_eq!(bench.means("acme", "orders", Some(3)).await, Some((3, "three".to_owned())));
    assert_eq!(bench.playbooks.archive(&admin(), &who, &at, None).await.expect("archives").len(), 2);
    assert_eq!(bench.means("acme", "orders", None).await, None);
    assert_eq!(bench.playbooks.restore(&admin(), &who, &at, Some(1)).await.expect("restores").len(), 1);
    assert_eq!(bench.means("acme", "orders", None).await, Some((1, "one".to_owned())));
    // What is archived does not count as there: its text comes back as a new version.
    assert_eq!(bench.register("acme", "orders", "three").await.expect("registers").entry.version, 4);
}

#[tokio::test]
async fn a_deleted_version_is_gone_its_number_is_not_given_again_and_its_text_can_be_read() {
    let bench = Bench::new();
    let digest = bench.register("acme", "orders", "one").await.expect("registers").entry.digest;
    bench.register("acme", "orders", "two").await.expect("registers");
    let (who, at) = (tenant("acme"), path("orders"));
    assert_eq!(bench.playbooks.delete(&admin(), &who, &at, None).await.expect("deletes").len(), 2);
    assert_eq!(bench.means("acme", "orders", Some(1)).await, None);
    assert!(bench.playbooks.versions(&who, &at).is_empty());
    let error = bench.playbooks.delete(&admin(), &who, &at, None).await.expect_err("nothing there");
    assert_eq!(error.code(), "playbook_not_found");
    let bench = bench.reopen();
    assert_eq!(bench.register("acme", "orders", "two").await.expect("registers").entry.version, 3);
    assert_eq!(bench.playbooks.content(&digest).await.expect("still there"), "one");
    let error = bench.playbooks.archive(&admin(), &who, &at, Some(2)).await.expect_err("gone");
    assert_eq!(
        (error.code(), error.to_string()),
        ("version_not_found", "orders has no version 2: the newest is 3".into())
    );
}

#[tokio::test]
async fn what_is_shared_is_seen_by_all_and_changed_by_administrators() {
    let bench = Bench::new();
    let text = || Bytes::from_static(b"text");
    let register = async |actor: &Actor, who: &str, at: &str| {
        bench.playbooks.register(actor, &tenant(who), &path(at), text(), PlaybookInfo::default()).await
    };
    register(&of_tenant("acme"), "acme", "orders").await.expect("its own");
    register(&admin(), "acme", "system/cleanup").await.expect("an administrator");
    for (who, at) in [("acme", "system/cleanup"), ("other", "orders")] {
        let error = register(&of_tenant("acme"), who, at).await.expect_err("not its own");
        assert_eq!(error.code(), "forbidden", "{error}");
        let error = bench.playbooks.delete(&of_tenant("acme"), &tenant(who), &path(at), None).await;
        assert_eq!(error.expect_err("not its own").code(), "forbidden");
    }
    let entry = bench.playbooks.resolve(&tenant("other"), &path("system/cleanup"), None).expect("seen by all");
    assert_eq!((entry.tenant.as_str(), entry.by.as_str()), ("system", "root"));
    // Another administrator's tenant means the same playbook.
    assert!(!register(&admin(), "other", "system/cleanup").await.expect("the same").created);
}

#[tokio::test]
async fn a_list_has_a_version_a_path_in_pages() {
    let bench = Bench::new();
    for at in ["a/x", "t/x", "a/y", "system/s", "a/z"] {
        bench.register("acme", at, "one").await.expect("registers");
    }
    bench.register("acme", "a/y", "two").await.expect("registers");
    bench.register("other", "a/w", "one").await.expect("registers");
    bench.playbooks.archive(&admin(), &tenant("acme"), &path("a/z"), None).await.expect("archives");
    bench.playbooks.archive(&admin(), &tenant("acme"), &path("a/y"), Some(2)).await.expect("archives");
    let list = |filter: PlaybookFilter, size| {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = bench.playbooks.list(&tenant("acme"), &filter, after.as_ref(), size);
            assert!(page.entries.len() <= size);
            found.extend(page.entries.iter().map(|entry| entry.id().to_string()));
            after = page.next;
            if after.is_none() {
                return found.join(" ");
            }
        }
    };
    for size in [1, 2, 3, 100] {
        assert_eq!(list(PlaybookFilter::default(), size), "a/x@1 a/y@1 system/s@1 t/x@1");
        let filter = PlaybookFilter { include_archived: true, ..Default::default() };
        assert_eq!(list(filter, size), "a/x@1 a/y@2 a/z@1 system/s@1 t/x@1");
        let filter = PlaybookFilter { prefix: Some("a/".to_owned()), ..Default::default() };
        assert_eq!(list(filter, size), "a/x@1 a/y@1");
        let filter = PlaybookFilter { kind: Some("Agent".to_owned()), ..Default::default() };
        assert_eq!(list(filter, size), "");
    }
}

#[tokio::test]
async fn what_was_said_of_a_playbook_is_kept_and_its_schedule_found() {
    let bench = Bench::new();
    let info = PlaybookInfo {
        description: Some("cleans up".to_owned()),
        labels: [("team".to_owned(), "data".to_owned())].into(),
        schedule: Some(json!({"cron": "0 * * * *", "timezone": "Europe/Zurich"})),
        ..PlaybookInfo::default()
    };
    let register = async |bench: &Bench, text: &'static str, info: &PlaybookInfo| {
        let content = Bytes::from_static(text.as_bytes());
        let who = tenant("acme");
        bench.playbooks.register(&of_tenant("acme"), &who, &path("tidy"), content, info.clone()).await
    };
    register(&bench, "one", &info).await.expect("registers");
    bench.register("acme", "orders", "one").await.expect("registers");
    let bench = bench.reopen();
    let scheduled = bench.playbooks.scheduled();
    let entry = scheduled.first().expect("one");
    assert_eq!((scheduled.len(), entry.path.as_str(), entry.by.as_str()), (1, "tidy", "acme-ci"));
    assert_eq!((&entry.schedule, &entry.labels, &entry.description), (&info.schedule, &info.labels, &info.description));
    assert!(entry.registered_ms > 0 && entry.size == 3 && entry.kind == "Playbook");
    // Only what the path alone means is run by the clock.
    register(&bench, "two", &PlaybookInfo::default()).await.expect("registers");
    assert!(bench.playbooks.scheduled().is_empty());
    bench.playbooks.archive(&admin(), &tenant("acme"), &path("tidy"), Some(2)).await.expect("archives");
    assert_eq!(bench.playbooks.scheduled().len(), 1);
}

#[tokio::test]
async fn a_text_that_is_too_large_leaves_nothing() {
    let bench = Bench::new();
    let text = "x".repeat(MOST_BYTES as usize + 1);
    let error = bench.register("acme", "orders", &text).await.expect_err("too large");
    assert_eq!((error.code(), bench.events()), ("playbook_too_large", 0));
    let error = bench.playbooks.content(&Digest::of(text.as_bytes())).await.expect_err("not kept");
    assert_eq!(error.code(), "store_unavailable");
}

#[tokio::test]
async fn registrations_at_the_same_time_get_a_version_each() {
    let bench = Arc::new(Bench::new());
    let tasks: Vec<_> = (0..20)
        .map(|number| {
            let bench = bench.clone();
            tokio::spawn(async move { bench.register("acme", "orders", &format!("text {number}")).await })
        })
        .collect();
    let mut versions = Vec::new();
    for task in tasks {
        versions.push(task.await.expect("no panic").expect("registers").entry.version);
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn events_that_contradict_each_other_or_are_not_known_stop_the_opening() {
    let version = json!({"version": 1, "digest": Digest::of(b"x"), "size": 1, "kind": "Playbook",
        "description": null, "labels": {}, "schedule": null});
    let event = |kind: &str, more: &serde_json::Value| {
        let mut event = json!({"type": kind, "tenant": "acme", "path": "orders", "by": "root", "by_tenant": null});
        let more = more.as_object().expect("an object").clone();
        event.as_object_mut().expect("an object").extend(more);
        event
    };
    for (second, problem) in [
        (event("registered", &version), "was given before"),
        (event("deleted", &json!({"versions": [2]})), "no version 2"),
        (event("renamed", &json!({})), "newer version"),
    ] {
        let bench = Bench::new();
        for body in [event("registered", &version), second] {
            let body = Bytes::from(body.to_string());
            let append = Append { stream: StreamId::new(STREAM), expected: Expected::Any, key: None, body };
            bench.log.append(append).await.expect("appends");
        }
        let payloads = Payloads::open(bench.folder.path().join("payloads")).expect("opens");
        let error = Playbooks::open(bench.log.clone(), payloads).err().expect("refused");
        assert!(error.to_string().contains(problem), "{error}");
        assert!(matches!(error, LedgerError::Fold(FoldError::Contradiction { .. } | FoldError::Newer { .. })));
    }
}
