use futures::TryStreamExt;
use proptest::prelude::*;

use super::*;

fn store() -> (tempfile::TempDir, Payloads) {
    let place = tempfile::tempdir().expect("a folder");
    let payloads = Payloads::open(place.path()).expect("opens");
    (place, payloads)
}

fn unfinished(place: &tempfile::TempDir) -> usize {
    std::fs::read_dir(place.path().join("tmp")).expect("a folder").count()
}

#[tokio::test]
async fn a_payload_comes_back_under_its_digest_and_the_same_bytes_are_stored_once() {
    let (place, payloads) = store();
    let stored = payloads.put_bytes(Bytes::from_static(b"hello")).await.expect("stored");
    assert_eq!(stored, PayloadRef { digest: Digest::of(b"hello"), size: 5 });
    assert_eq!(payloads.put_bytes(Bytes::from_static(b"hello")).await.expect("stored"), stored);
    assert_eq!(payloads.read(&stored.digest).await.expect("there"), "hello");
    assert_eq!(payloads.size(&stored.digest), Some(5));
    assert_eq!(unfinished(&place), 0);
    let reopened = Payloads::open(place.path()).expect("opens");
    assert!(reopened.contains(&stored.digest));
}

#[tokio::test]
async fn a_writer_that_is_dropped_or_dies_leaves_nothing() {
    let (place, payloads) = store();
    let mut writer = payloads.writer().await.expect("opens");
    writer.write(b"half").await.expect("written");
    assert_eq!((writer.size(), unfinished(&place)), (4, 1));
    drop(writer);
    assert_eq!(unfinished(&place), 0);
    assert!(!payloads.contains(&Digest::of(b"half")));

    std::fs::write(place.path().join("tmp/17"), b"left by a dead process").expect("written");
    Payloads::open(place.path()).expect("opens");
    assert_eq!(unfinished(&place), 0);
}

#[tokio::test]
async fn changed_bytes_are_noticed() {
    let (_place, payloads) = store();
    let stored = payloads.put_bytes(Bytes::from_static(b"right")).await.expect("stored");
    std::fs::write(payloads.path_of(&stored.digest), b"wrong").expect("written");
    let error = payloads.read(&stored.digest).await.expect_err("noticed");
    assert!(matches!(error, PayloadError::Damaged { actual, .. } if actual == Digest::of(b"wrong")), "{error}");
}

#[tokio::test]
async fn a_payload_over_the_limit_is_not_read() {
    let (_place, payloads) = store();
    let stored = payloads.put_bytes(Bytes::from_static(b"12345")).await.expect("stored");
    assert_eq!(payloads.read_at_most(&stored.digest, 5).await.expect("within"), "12345");
    let error = payloads.read_at_most(&stored.digest, 4).await.expect_err("over");
    assert!(matches!(error, PayloadError::TooLarge { size: 5, limit: 4, .. }), "{error}");
    let error = payloads.read_at_most(&Digest::of(b"other"), 5).await.expect_err("not there");
    assert!(matches!(error, PayloadError::NotFound(_)), "{error}");
}

#[tokio::test]
async fn a_deleted_payload_is_gone_and_what_is_not_there_is_said_so() {
    let (_place, payloads) = store();
    let stored = payloads.put_bytes(Bytes::from_static(b"x")).await.expect("stored");
    assert!(payloads.delete(&stored.digest).await.expect("deleted"));
    assert!(!payloads.delete(&stored.digest).await.expect("nothing to delete"));
    let error = payloads.read(&stored.digest).await.expect_err("gone");
    assert!(matches!(error, PayloadError::NotFound(digest) if digest == stored.digest));
    let error = payloads.read_range(&stored.digest, 0, 1).await.expect_err("gone");
    assert!(matches!(error, PayloadError::NotFound(_)));
    let pieces: Result<Vec<Bytes>, _> = payloads.stream(&stored.digest, 0..1).try_collect().await;
    assert_eq!(pieces.expect_err("gone").kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn many_writers_of_the_same_and_of_other_bytes_do_not_meet() {
    let (place, payloads) = store();
    let tasks: Vec<_> = (0..40_u8)
        .map(|number| {
            let payloads = payloads.clone();
            tokio::spawn(async move { payloads.put_bytes(vec![number / 4; 10_000].into()).await.expect("stored") })
        })
        .collect();
    for (number, task) in tasks.into_iter().enumerate() {
        let stored = task.await.expect("finished");
        assert_eq!(payloads.read(&stored.digest).await.expect("there"), vec![number as u8 / 4; 10_000]);
    }
    assert_eq!(unfinished(&place), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_pieces_in_and_any_range_out_are_the_same_bytes(
        pieces in proptest::collection::vec(0_usize..400_000, 0..4),
        start in 0_u64..900_000,
        length in 0_u64..900_000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let (_place, payloads) = store();
            let mut writer = payloads.writer().await.expect("opens");
            let mut whole = Vec::new();
            for (number, size) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..size).map(|at| (at * 7 + number * 13) as u8).collect();
                writer.write(&piece).await.expect("written");
                whole.extend(piece);
            }
            let stored = writer.finish().await.expect("finished");
            prop_assert_eq!(stored, PayloadRef { digest: Digest::of(&whole), size: whole.len() as u64 });
            let cut = |at: u64| whole.len().min(at as usize);
            let expected = &whole[cut(start)..cut(start + length)];
            let range = payloads.read_range(&stored.digest, start, length).await.expect("read");
            prop_assert_eq!(&range[..], expected);
            let streamed: Vec<Bytes> =
                payloads.stream(&stored.digest, start..start + length).try_collect().await.expect("read");
            prop_assert_eq!(streamed.concat(), expected);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_sealed_payload_can_be_read_before_it_is_kept_and_is_gone_if_it_never_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let payloads = Payloads::open(folder.path()).expect("opens");
    let sealed = async |bytes: &[u8]| {
        let mut writer = payloads.writer().await.expect("a writer");
        writer.write(bytes).await.expect("written");
        writer.seal().await.expect("sealed")
    };
    let dropped = sealed(b"never kept").await;
    assert_eq!(&dropped.read_range(6, 100).await.expect("read")[..], b"kept");
    let digest = dropped.digest();
    drop(dropped);
    assert!(!payloads.contains(&digest));
    let kept = sealed(b"kept").await;
    let reference = kept.keep().await.expect("kept");
    assert_eq!(kept.keep().await.expect("kept again"), reference);
    assert_eq!(&kept.read_range(0, 4).await.expect("still readable")[..], b"kept");
    drop(kept);
    assert_eq!(&payloads.read(&reference.digest).await.expect("there")[..], b"kept");
    assert_eq!(std::fs::read_dir(folder.path().join("tmp")).expect("a folder").count(), 0);
}
