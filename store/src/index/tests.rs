use proptest::prelude::*;

use super::*;
use crate::log::file::{FileLog, FileLogOptions};

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("index.sqlite")
    }

    fn log(&self) -> Arc<FileLog> {
        let options = FileLogOptions { volume_bytes: 256 * 1024, first_volume_bytes: 256 * 1024, ..Default::default() };
        FileLog::open(self.folder.path().join("log"), options).expect("opens")
    }

    fn open(&self) -> Arc<Index> {
        Index::open(self.file(), self.log()).expect("opens")
    }
}

fn namespace(tenant: &str) -> Namespace {
    let path = format!("{tenant}/orders/enrich");
    Namespace { tenant: Tenant::new(tenant).expect("valid"), path: PluginPath::new(path).expect("valid") }
}

fn put(of: &Namespace, call: &str, key: &str, value: &str) -> KvCommit {
    let writes = vec![(key.to_owned(), Some(Bytes::copy_from_slice(value.as_bytes())))];
    KvCommit { namespace: of.clone(), call: call.to_owned(), conditions: Vec::new(), writes }
}

fn value(index: &Index, of: &Namespace, key: &str) -> Option<Bytes> {
    index.kv_get(of, key).expect("readable").map(|entry| entry.value)
}

fn object(key: &str, bytes: &[u8]) -> ObjectInfo {
    ObjectInfo {
        key: key.to_owned(),
        size: bytes.len() as u64,
        digest: Digest::of(bytes),
        media_type: "text/plain".to_owned(),
    }
}

/// Everything the index holds of these namespaces.
fn contents(index: &Index, of: &[Namespace]) -> Vec<(String, Option<KvEntry>, Option<ObjectInfo>)> {
    let mut found = Vec::new();
    for of in of {
        for key in index.kv_list(of, "", None, usize::MAX).expect("readable") {
            found.push((format!("{}/{key}", of.path), index.kv_get(of, &key).expect("readable"), None));
        }
        for object in index.object_list(of, "", None, usize::MAX).expect("readable") {
            found.push((format!("{}/{}", of.path, object.key), None, Some(object)));
        }
    }
    found
}

#[tokio::test]
async fn a_commit_is_seen_by_the_next_read_in_its_namespace_only() {
    let place = Place::new();
    let index = place.open();
    let (acme, other) = (namespace("acme"), namespace("other"));
    index.kv_commit(put(&acme, "call-1", "greeting", "hello")).await.expect("written");
    assert_eq!(value(&index, &acme, "greeting"), Some(Bytes::from("hello")));
    assert_eq!(value(&index, &other, "greeting"), None);
    let sibling = Namespace { path: PluginPath::new("acme/orders/other").expect("valid"), ..acme.clone() };
    assert_eq!(value(&index, &sibling, "greeting"), None);
    let delete = KvCommit { writes: vec![("greeting".to_owned(), None)], ..put(&acme, "call-2", "", "") };
    index.kv_commit(delete).await.expect("deleted");
    assert_eq!(value(&index, &acme, "greeting"), None);
}

#[tokio::test]
async fn conditions_hold_together_or_nothing_is_written() {
    let place = Place::new();
    let index = place.open();
    let acme = namespace("acme");
    index.kv_commit(put(&acme, "1", "a", "1")).await.expect("written");
    let version = index.kv_get(&acme, "a").expect("readable").expect("there").version;
    let conditions = vec![("a".to_owned(), Some(version)), ("b".to_owned(), Some(7))];
    let refused = index.kv_commit(KvCommit { conditions, ..put(&acme, "2", "a", "2") }).await.expect_err("b is absent");
    assert!(
        matches!(&refused, KvCommitError::Conflict { key, expected: Some(7), actual: None } if key == "b"),
        "{refused}"
    );
    assert_eq!(value(&index, &acme, "a"), Some(Bytes::from("1")));
    let conditions = vec![("a".to_owned(), Some(version)), ("b".to_owned(), None)];
    index.kv_commit(KvCommit { conditions: conditions.clone(), ..put(&acme, "3", "a", "3") }).await.expect("hold");
    // After a delete and a new write the old version does not hold again.
    let delete = KvCommit { writes: vec![("a".to_owned(), None)], ..put(&acme, "4", "", "") };
    index.kv_commit(delete).await.expect("deleted");
    index.kv_commit(put(&acme, "5", "a", "1")).await.expect("written");
    assert!(index.kv_commit(KvCommit { conditions, ..put(&acme, "6", "a", "6") }).await.is_err());
}

#[tokio::test]
async fn the_same_call_applies_once_also_when_its_conditions_no_longer_hold_and_after_a_restart() {
    let place = Place::new();
    let index = place.open();
    let acme = namespace("acme");
    let call = KvCommit { conditions: vec![("n".to_owned(), None)], ..put(&acme, "call", "n", "1") };
    index.kv_commit(call.clone()).await.expect("written");
    index.kv_commit(call.clone()).await.expect("known");
    index.kv_commit(put(&acme, "other", "n", "2")).await.expect("written");
    drop(index);
    let index = place.open();
    index.kv_commit(call).await.expect("known");
    index.kv_commit(put(&acme, "call", "n", "3")).await.expect("known, so not written");
    assert_eq!(value(&index, &acme, "n"), Some(Bytes::from("2")));
    // Another plugin's call of the same name is another call.
    let sibling = Namespace { path: PluginPath::new("acme/orders/other").expect("valid"), ..acme };
    index.kv_commit(put(&sibling, "call", "n", "4")).await.expect("written");
    assert_eq!(value(&index, &sibling, "n"), Some(Bytes::from("4")));
}

#[tokio::test]
async fn lists_are_in_byte_order_within_the_prefix_and_after_the_given_key() {
    let place = Place::new();
    let index = place.open();
    let acme = namespace("acme");
    for key in ["b/2", "a", "b/1", "b", "b/%", "c", "B/1", "b/é", "b0"] {
        index.kv_commit(put(&acme, key, key, "x")).await.expect("written");
        index.object_put(&acme, object(key, b"x")).await.expect("named");
    }
    let list = |prefix: &str, after: Option<&str>, limit| {
        let keys = index.kv_list(&acme, prefix, after, limit).expect("readable");
        let objects = index.object_list(&acme, prefix, after, limit).expect("readable");
        assert_eq!(keys, objects.into_iter().map(|object| object.key).collect::<Vec<_>>());
        keys
    };
    assert_eq!(list("b/", None, 10), ["b/%", "b/1", "b/2", "b/é"]);
    assert_eq!(list("b/", Some("b/1"), 1), ["b/2"]);
    assert_eq!(list("", None, 3), ["B/1", "a", "b"]);
    assert_eq!(list("", Some("b0"), 10), ["c"]);
    assert_eq!(list("x", None, 10), Vec::<String>::new());
}

#[tokio::test]
async fn an_object_put_again_unchanged_writes_nothing() {
    let place = Place::new();
    let log = place.log();
    let index = Index::open(place.file(), log.clone()).expect("opens");
    let acme = namespace("acme");
    index.object_put(&acme, object("report", b"one")).await.expect("named");
    let tip = *log.tip().borrow();
    index.object_put(&acme, object("report", b"one")).await.expect("the same");
    index.object_delete(&acme, "absent").await.expect("nothing to do");
    assert_eq!(*log.tip().borrow(), tip);
    index.object_put(&acme, object("report", b"two")).await.expect("named");
    assert_eq!(index.object_get(&acme, "report").expect("readable"), Some(object("report", b"two")));
    index.object_delete(&acme, "report").await.expect("deleted");
    assert_eq!(index.object_get(&acme, "report").expect("readable"), None);
}

#[tokio::test]
async fn a_deleted_damaged_foreign_or_stale_index_is_brought_up_to_the_log() {
    let place = Place::new();
    let spaces = [namespace("acme"), namespace("other")];
    let index = place.open();
    for number in 0..50 {
        let of = &spaces[number % 2];
        index.kv_commit(put(of, &format!("c{number}"), &format!("k{}", number % 20), "x")).await.expect("written");
        index.object_put(of, object(&format!("o{}", number % 7), &[number as u8])).await.expect("named");
    }
    let delete = KvCommit { writes: vec![("k4".to_owned(), None)], ..put(&spaces[0], "delete", "", "") };
    index.kv_commit(delete).await.expect("deleted");
    let expected = contents(&index, &spaces);
    assert_eq!(expected.len(), 19 + 14);
    drop(index);
    let whole = std::fs::read(place.file()).expect("there");
    assert_eq!(contents(&place.open(), &spaces), expected, "a restart");

    std::fs::remove_file(place.file()).expect("there");
    assert_eq!(contents(&place.open(), &spaces), expected, "deleted");

    std::fs::write(place.file(), b"this is not a database, and long enough to look at").expect("written");
    assert_eq!(contents(&place.open(), &spaces), expected, "garbage");

    std::fs::write(place.file(), &whole[..whole.len() / 2]).expect("written");
    assert_eq!(contents(&place.open(), &spaces), expected, "cut off");

    let elsewhere = Place::new();
    let foreign = elsewhere.open();
    for number in 0..400 {
        foreign.kv_commit(put(&spaces[0], &number.to_string(), "foreign", "x")).await.expect("written");
    }
    drop(foreign);
    std::fs::copy(elsewhere.file(), place.file()).expect("copied");
    assert_eq!(contents(&place.open(), &spaces), expected, "of a longer log");
}

#[tokio::test]
async fn after_a_crash_the_index_catches_up_with_what_the_log_has_more() {
    let place = Place::new();
    let acme = namespace("acme");
    let index = place.open();
    index.kv_commit(put(&acme, "1", "a", "1")).await.expect("written");
    drop(index);
    let before = std::fs::read(place.file()).expect("there");
    let index = place.open();
    index.kv_commit(put(&acme, "2", "a", "2")).await.expect("written");
    let expected = contents(&index, std::slice::from_ref(&acme));
    drop(index);
    // A power cut took the newest transactions of the database, not those of the log.
    std::fs::write(place.file(), before).expect("written");
    let index = place.open();
    assert_eq!(contents(&index, std::slice::from_ref(&acme)), expected);
    index.kv_commit(put(&acme, "2", "a", "again")).await.expect("known");
    assert_eq!(value(&index, &acme, "a"), Some(Bytes::from("2")));
}

/// Adds one to a counter by compare-and-swap until it works; answers how often it was refused.
async fn increment(index: &Index, of: &Namespace, key: &str, call: String) -> u64 {
    let mut refused = 0;
    loop {
        let current = index.kv_get(of, key).expect("readable");
        let number: u64 = current
            .as_ref()
            .map_or(0, |entry| std::str::from_utf8(&entry.value).expect("text").parse().expect("a number"));
        let commit = KvCommit {
            namespace: of.clone(),
            call: format!("{call}-{refused}"),
            conditions: vec![(key.to_owned(), current.map(|entry| entry.version))],
            writes: vec![(key.to_owned(), Some((number + 1).to_string().into()))],
        };
        match index.kv_commit(commit).await {
            Ok(()) => return refused,
            Err(KvCommitError::Conflict { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn concurrent_increments_by_compare_and_swap_never_lose_one(
        tasks in 2_u64..12,
        rounds in 1_u64..12,
        keys in 1_u64..3,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let place = Place::new();
        let acme = namespace("acme");
        let counts = |index: &Index| -> Vec<Option<Bytes>> {
            (0..keys).map(|key| value(index, &acme, &format!("counter-{key}"))).collect()
        };
        let expected: Vec<_> = (0..keys).map(|_| Some(Bytes::from((tasks * rounds).to_string()))).collect();
        runtime.block_on(async {
            let index = place.open();
            let running: Vec<_> = (0..tasks).map(|task| {
                let (index, acme) = (Arc::clone(&index), acme.clone());
                tokio::spawn(async move {
                    for round in 0..rounds {
                        for key in 0..keys {
                            increment(&index, &acme, &format!("counter-{key}"), format!("{task}-{round}-{key}")).await;
                        }
                    }
                })
            }).collect();
            for task in running {
                task.await.expect("finished");
            }
            prop_assert_eq!(&counts(&index), &expected);
            Ok(())
        })?;
        let before = contents(&place.open(), std::slice::from_ref(&acme));
        prop_assert_eq!(&counts(&place.open()), &expected, "after a restart");
        tables::delete(&place.file()).expect("deleted");
        prop_assert_eq!(contents(&place.open(), std::slice::from_ref(&acme)), before, "rebuilt");
    }
}
