use std::collections::VecDeque;

use bytes::Bytes;

use super::model_disk::{Fault, ModelDisk};
use super::volume::volume_name;
use super::*;
use crate::log::Expected;

fn small() -> FileLogOptions {
    FileLogOptions {
        volume_bytes: 64 * 1024,
        first_volume_bytes: 32 * 1024,
        max_segment_bytes: 20 * 1024,
        max_commit_bytes: 40 * 1024,
        ..FileLogOptions::default()
    }
}

fn append(stream: &str, body: &str) -> Append {
    Append {
        stream: StreamId::new(stream),
        expected: Expected::Any,
        key: None,
        body: Bytes::copy_from_slice(body.as_bytes()),
    }
}

fn keyed(stream: &str, key: &str, body: &str) -> Append {
    Append { key: Some(key.to_owned()), ..append(stream, body) }
}

fn bodies(segments: &[Segment]) -> Vec<String> {
    segments.iter().map(|segment| String::from_utf8(segment.body.to_vec()).expect("text")).collect()
}

/// A log without threads on a disk in memory.
struct Bench {
    reader: Arc<Reader>,
    writer: Writer,
}

impl Bench {
    fn open(disk: &ModelDisk) -> Result<Self, OpenError> {
        let (reader, writer) = open_parts(Arc::new(disk.clone()), small(), Arc::new(|| 5), false)?;
        Ok(Self { reader, writer })
    }

    fn commit(&mut self, commit: Vec<Append>) -> Result<Vec<Appended>, AppendError> {
        self.batch(vec![commit]).pop().expect("one answer")
    }

    fn batch(&mut self, commits: Vec<Vec<Append>>) -> Vec<Result<Vec<Appended>, AppendError>> {
        let mut tickets = Vec::new();
        let mut jobs = VecDeque::new();
        for commit in commits {
            let (answer, ticket) = oneshot::channel();
            jobs.push_back(Job { commit, answer, room: None });
            tickets.push(ticket);
        }
        self.writer.process(jobs);
        tickets.into_iter().map(|mut ticket| ticket.try_recv().expect("answered")).collect()
    }

    fn all(&self) -> Vec<String> {
        bodies(&self.reader.volumes.segments_after(0, usize::MAX).expect("readable"))
    }
}

#[tokio::test]
async fn what_was_appended_is_there_after_a_restart_chained_and_in_order() {
    let place = tempfile::tempdir().expect("a folder");
    let mut written = Vec::new();
    for round in 0..3_u64 {
        let log = FileLog::open(place.path(), small()).expect("opens");
        for number in 0..210_u64 {
            let body = format!("{round}-{number}");
            let answer = log.append(append(&format!("s{}", number % 7), &body)).await.expect("written");
            assert_eq!(answer.version, round * 30 + number / 7 + 1);
            written.push((answer.position, body));
        }
        assert_eq!(log.verify().expect("readable").problems, Vec::<String>::new());
    }
    let log = FileLog::open(place.path(), small()).expect("opens");
    let all = log.read_all(0, usize::MAX).expect("readable");
    let read: Vec<_> = all.iter().map(|segment| segment.position).zip(bodies(&all)).collect();
    assert_eq!(read, written);
    let stream = log.read_stream(&StreamId::new("s3"), 1, usize::MAX).expect("readable");
    assert_eq!(stream.len(), 90);
    assert!(stream.windows(2).all(|pair| pair[1].previous == pair[0].hash));
}

#[tokio::test]
async fn an_expected_version_is_checked_against_everything_before_it() {
    let place = tempfile::tempdir().expect("a folder");
    let log = FileLog::open(place.path(), small()).expect("opens");
    let at = |version| Append { expected: Expected::Version(version), ..append("s", "x") };
    log.append(at(0)).await.expect("empty stream");
    let error = log.append(at(0)).await.expect_err("not empty any more");
    assert!(matches!(error, AppendError::Conflict { expected: 0, actual: 1, .. }), "{error}");
    // Within one commit the second append sees the first, and one conflict refuses all.
    log.commit(vec![at(1), at(2)]).await.expect("follow each other");
    let error = log.commit(vec![append("other", "y"), at(3), at(3)]).await.expect_err("do not follow");
    assert!(matches!(error, AppendError::Conflict { expected: 3, actual: 4, .. }), "{error}");
    assert_eq!(log.head(&StreamId::new("other")).expect("readable"), None);
    assert_eq!(log.head(&StreamId::new("s")).expect("readable").map(|head| head.version), Some(3));
}

#[tokio::test]
async fn a_key_is_used_once_also_within_a_commit_and_before_the_version_is_looked_at() {
    let place = tempfile::tempdir().expect("a folder");
    let log = FileLog::open(place.path(), small()).expect("opens");
    let first = log.append(keyed("s", "k", "one")).await.expect("written");
    let again = Append { expected: Expected::Version(99), ..keyed("s", "k", "two") };
    assert_eq!(log.append(again).await.expect("known"), Appended { duplicate: true, ..first });
    assert!(!log.append(keyed("t", "k", "other stream")).await.expect("written").duplicate);
    let answers = log.commit(vec![keyed("s", "j", "a"), keyed("s", "j", "b"), keyed("s", "k", "c")]).await;
    let duplicates: Vec<_> =
        answers.expect("written").iter().map(|answer| (answer.version, answer.duplicate)).collect();
    assert_eq!(duplicates, [(2, false), (2, true), (1, true)]);
    assert_eq!(bodies(&log.read_stream(&StreamId::new("s"), 1, 10).expect("readable")), ["one", "a"]);
}

#[test]
fn keys_and_heads_of_sealed_volumes_are_found_and_their_sidecars_made_again() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    let mut first = Vec::new();
    for number in 0..4_000 {
        let written = bench.commit(vec![keyed(&format!("s{number}"), "key", "body")]).expect("written");
        first.push(written[0]);
        // In many of the older volumes and in none of the newest.
        if number % 10 == 0 && number < 1_500 {
            bench.commit(vec![append("often", "body")]).expect("written");
        }
    }
    let names = disk.list().expect("listed");
    let sidecars: Vec<_> = names.iter().filter(|name| name.ends_with(".run")).cloned().collect();
    assert!(names.iter().filter(|name| name.ends_with(".log")).count() > 9, "{names:?}");
    assert!(sidecars.len() < 9, "sidecars were not merged: {sidecars:?}");
    for remove in [false, true] {
        if remove {
            sidecars.iter().for_each(|name| disk.remove(name).expect("removed"));
        }
        bench = Bench::open(&disk).expect("opens");
        for (number, first) in first.iter().enumerate() {
            let again = bench.commit(vec![keyed(&format!("s{number}"), "key", "body")]).expect("known");
            assert_eq!(again[0], Appended { duplicate: true, ..*first });
        }
        let often = bench.reader.head(&StreamId::new("often")).expect("readable");
        assert_eq!(often.map(|head| head.version), Some(150));
        assert_eq!(verify::verify(&bench.reader).expect("readable").segments, 4_150);
    }
}

#[test]
fn opening_reads_no_sealed_volume_whose_sidecar_is_there() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    for _ in 0..1_000 {
        bench.commit(vec![append("s", "body")]).expect("written");
    }
    // Damage in a sealed volume is found by whoever reads it, which opening does not.
    disk.damage(&volume_name(0), 5_000, b"!!!!!!!!");
    let bench = Bench::open(&disk).expect("does not look");
    let error = bench.reader.volumes.segments_after(0, 1_000).expect_err("looks");
    assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
    assert_eq!(verify::verify(&bench.reader).expect("readable").problems.len(), 2);
    // Without the sidecar it has to look.
    for name in disk.list().expect("listed").iter().filter(|name| name.ends_with(".run")) {
        disk.remove(name).expect("removed");
    }
    let error = Bench::open(&disk).err().expect("looks").to_string();
    assert!(error.contains(&volume_name(0)) && error.contains("position"), "{error}");
}

#[test]
fn damage_before_acknowledged_commits_is_refused_and_a_torn_tail_is_not() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    let positions: Vec<_> =
        (0..10).map(|at| bench.commit(vec![append("s", &format!("{at}"))]).expect("written")[0].position).collect();
    drop(bench);
    for at in &positions[..9] {
        let damaged = disk.restart();
        damaged.damage(&volume_name(0), *at as usize + 130, b"?");
        let error = Bench::open(&damaged).err().expect("damaged");
        assert!(matches!(error, OpenError::Damaged { position, .. } if position == *at), "{error}");
        // A zeroed block is damage as well, not the end of the log.
        let zeroed = disk.restart();
        zeroed.damage(&volume_name(0), *at as usize, &[0; 64]);
        let error = Bench::open(&zeroed).err().expect("damaged");
        assert!(matches!(error, OpenError::Damaged { position, .. } if position == *at), "{error}");
    }
    // The last write may have been cut off anywhere.
    let torn = disk.restart();
    torn.damage(&volume_name(0), positions[9] as usize + 130, b"?");
    let mut bench = Bench::open(&torn).expect("torn");
    assert_eq!(bench.all(), ["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
    bench.commit(vec![append("s", "again")]).expect("written");
    assert_eq!(verify::verify(&bench.reader).expect("readable").problems, Vec::<String>::new());
}

#[test]
fn a_body_that_looks_like_a_frame_of_the_log_is_not_taken_for_one() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    let tail = bench.commit(vec![append("s", "first")]).expect("written")[0].position + 136;
    // The attacker knows the position of the forged frame, but not the salt.
    let forged_at = tail + frame::HEADER as u64 + 8;
    let mut forged = Vec::new();
    let fields = frame::NewFrame {
        position: forged_at,
        batch: forged_at,
        version: 1,
        time_ms: 1,
        back: 0,
        jump: 0,
        remaining: 0,
        previous: [0; 32],
        stream: "forged",
        key: None,
        body: b"forged",
    };
    fields.encode(0, &mut forged);
    let body = Append { stream: StreamId::new("12345678"), body: forged.into(), ..append("s", "") };
    assert_eq!(bench.commit(vec![body]).expect("written")[0].position, tail);
    drop(bench);
    disk.damage(&volume_name(0), tail as usize + 64, b"????");
    let bench = Bench::open(&disk).expect("a torn tail, not damage proven by the forged frame");
    assert_eq!(bench.all(), ["first"]);
}

#[test]
fn time_never_goes_back() {
    let disk = ModelDisk::new(1);
    for (clock, expected) in [(1_000, 1_000), (10, 1_000), (2_000, 2_000), (0, 2_000)] {
        let parts = open_parts(Arc::new(disk.clone()), small(), Arc::new(move || clock), false);
        let (reader, writer) = parts.expect("opens");
        let written = Bench { reader, writer }.commit(vec![append("s", "x")]).expect("written");
        assert_eq!(written[0].time_ms, expected);
    }
}

#[test]
fn a_full_disk_refuses_what_needs_a_new_file_and_goes_on_when_there_is_room() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    let body = "x".repeat(10_000);
    let mut written = 0;
    // The spare of the first change of files is there already; the next one finds no room, twice: first the
    // housekeeper, then the writer.
    let refused = loop {
        disk.fail_after(0, Fault::Full);
        match bench.commit(vec![append("s", &body), append("t", "y")]) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&refused, AppendError::Io(error) if error.kind() == io::ErrorKind::StorageFull), "{refused}");
    assert_eq!(bench.all().len(), 2 * written);
    bench.commit(vec![append("s", "small enough for the old file")]).expect("fits");
    bench.commit(vec![append("s", &body)]).expect("there is room now");
    assert_eq!(verify::verify(&bench.reader).expect("readable").problems, Vec::<String>::new());
}

#[test]
fn after_a_failed_sync_nothing_is_acknowledged_until_a_restart() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    bench.commit(vec![append("s", "before")]).expect("written");
    disk.fail_after(0, Fault::Sync);
    assert!(matches!(bench.commit(vec![append("s", "lost?")]), Err(AppendError::Stopped(_))));
    assert!(matches!(bench.commit(vec![append("s", "after")]), Err(AppendError::Stopped(_))));
    assert_eq!(bench.all(), ["before"], "readers go on with what is durable");
    let mut bench = Bench::open(&disk.restart()).expect("opens");
    assert!(!bench.all().contains(&"after".to_owned()));
    bench.commit(vec![append("s", "again")]).expect("written");
}

#[test]
fn what_a_failed_sync_left_in_the_page_cache_is_written_again_before_it_is_shown() {
    for seed in 0..50 {
        let disk = ModelDisk::new(seed);
        let mut bench = Bench::open(&disk).expect("opens");
        disk.fail_after(0, Fault::Sync);
        assert!(bench.commit(vec![append("s", "cached")]).is_err());
        drop(bench);
        // The process ends, the machine does not: the page cache still shows the bytes.
        let shown = Bench::open(&disk).expect("opens").all();
        assert_eq!(shown, ["cached"]);
        assert_eq!(Bench::open(&disk.restart()).expect("opens").all(), shown, "seed {seed}");
    }
}

#[test]
fn what_was_behind_a_torn_commit_never_comes_back() {
    let disk = ModelDisk::new(1);
    let mut bench = Bench::open(&disk).expect("opens");
    let written = bench.batch(vec![vec![append("s", "torn")], vec![append("s", "lost")]]);
    let positions: Vec<_> = written.into_iter().map(|answer| answer.expect("written")[0].position).collect();
    drop(bench);
    disk.damage(&volume_name(0), positions[0] as usize + 130, b"?");
    let mut bench = Bench::open(&disk).expect("opens");
    assert_eq!(bench.all(), Vec::<String>::new());
    // The new commit ends exactly where the lost one began.
    let again = bench.commit(vec![append("s", "next")]).expect("written");
    assert_eq!(again[0].position, positions[0]);
    assert_eq!(Bench::open(&disk.restart()).expect("opens").all(), ["next"]);
}

#[test]
fn a_refused_write_does_not_come_back_after_a_power_cut() {
    for seed in 0..200 {
        let disk = ModelDisk::new(seed);
        let mut bench = Bench::open(&disk).expect("opens");
        disk.fail_after(0, Fault::Write);
        let answers = bench.batch((0..4).map(|number| vec![append("s", &number.to_string())]).collect());
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(Bench::open(&disk.restart()).expect("opens").all(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn two_spare_volumes_in_the_making_do_not_meet() {
    let disk: Arc<dyn Disk> = Arc::new(ModelDisk::new(1));
    let housekeeper =
        Housekeeper::start(Arc::clone(&disk), Arc::new(Lookup::new(Default::default(), Vec::new())), false);
    let housekeeper = housekeeper.expect("started");
    housekeeper.request(housekeeper::Chore::Spare { capacity: 8_192 });
    let taken = housekeeper.take_spare(8_192).expect("made");
    taken.file.write_at(b"header", 0).expect("written");
    // The next one is made while the first has not got its place yet.
    housekeeper.request(housekeeper::Chore::Spare { capacity: 8_192 });
    disk.rename(&taken.name, "placed").expect("there");
    let mut header = [0; 6];
    disk.open("placed").expect("there").read_at(&mut header, 0).expect("readable");
    assert_eq!(&header, b"header");
}

#[test]
fn a_commit_that_fails_takes_the_others_of_its_write_with_it() {
    let disk = ModelDisk::new(3);
    let mut bench = Bench::open(&disk).expect("opens");
    disk.fail_after(0, Fault::Write);
    let answers = bench.batch(vec![vec![append("s", "1")], vec![append("s", "2")]]);
    assert!(answers.iter().all(|answer| matches!(answer, Err(AppendError::Io(_)))), "{answers:?}");
    let written = bench.commit(vec![append("s", "3")]).expect("the log goes on");
    assert_eq!((written[0].version, bench.all()), (1, vec!["3".to_owned()]));
}

#[tokio::test]
async fn what_is_too_large_or_makes_no_sense_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let log = FileLog::open(place.path(), small()).expect("opens");
    let error = log.append(append("s", &"x".repeat(20 * 1024 + 1))).await.expect_err("too large");
    assert!(matches!(error, AppendError::TooLarge { size: 20_481, limit: 20_480 }), "{error}");
    let large = append("s", &"x".repeat(20 * 1024));
    let error = log.commit(vec![large.clone(), large.clone()]).await.expect_err("too large together");
    assert!(matches!(error, AppendError::TooLarge { limit: 40_960, .. }), "{error}");
    log.append(large).await.expect("just fits");
    assert!(matches!(log.commit(Vec::new()).await, Err(AppendError::Invalid(_))));
    assert!(matches!(log.append(keyed("s", &"k".repeat(201), "")).await, Err(AppendError::Invalid(_))));
    log.append(keyed("s", &"k".repeat(200), "")).await.expect("just fits");
    assert_eq!(*log.tip().borrow(), log.head(&StreamId::new("s")).expect("readable").expect("there").position);
}

#[tokio::test]
async fn a_full_queue_refuses_whoever_cannot_wait_and_lets_the_others_wait() {
    let queue = Queue::new(4 * 1024);
    let commit = vec![append("s", &"x".repeat(3 * 1024))];
    let room = queue.try_enter(&commit).expect("room");
    assert!(queue.try_enter(&commit).is_none());
    let huge = vec![append("s", &"x".repeat(100 * 1024))];
    let mut waiting = Box::pin(queue.enter(&huge));
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(room);
    assert!(waiting.await.is_some(), "a commit larger than the queue gets all of it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_and_readers_at_once_get_one_order() {
    let place = tempfile::tempdir().expect("a folder");
    let log = FileLog::open(place.path(), small()).expect("opens");
    let writers: Vec<_> = (0..20)
        .map(|writer| {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                for number in 0..50 {
                    let commit = vec![append("all", &format!("{writer}-{number}")), append(&format!("w{writer}"), "x")];
                    let answers = log.commit(commit).await.expect("written");
                    assert_eq!(answers[1].version, number + 1);
                    let read = log.read_stream(&StreamId::new("all"), answers[0].version, 1).expect("readable");
                    assert_eq!(bodies(&read), [format!("{writer}-{number}")], "a writer reads its own write");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("finished");
    }
    let verified = log.verify().expect("readable");
    assert_eq!((verified.segments, verified.streams, verified.problems), (2_000, 21, Vec::new()));
    assert!(verified.files > 3);
    drop(log);
    let log = FileLog::open(place.path(), small()).expect("opens");
    assert_eq!(log.read_all(0, usize::MAX).expect("readable").len(), 2_000);
}

#[tokio::test]
async fn a_dropped_log_has_written_what_was_queued() {
    let place = tempfile::tempdir().expect("a folder");
    let log = FileLog::open(place.path(), small()).expect("opens");
    let tickets: Vec<_> = (0..100).map(|number| log.submit(vec![append("s", &number.to_string())])).collect();
    drop(log);
    for ticket in tickets {
        ticket.await.expect("answered").expect("written");
    }
    let log = FileLog::open(place.path(), small()).expect("opens");
    assert_eq!(log.head(&StreamId::new("s")).expect("readable").map(|head| head.version), Some(100));
}
