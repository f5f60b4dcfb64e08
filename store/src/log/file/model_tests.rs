//! Random commits, power cuts, disk errors and restarts, against what a log must never do.
//!
//! The reference is a list of what was acknowledged and a list of what is undecided (answered with an error
//! that leaves it open, or never answered). After each restart the log must hold every acknowledged commit,
//! whole commits only, nothing that was refused, and the same order as before.

use std::collections::{BTreeMap, VecDeque};

use tokio::sync::oneshot;

use super::model_disk::{Fault, ModelDisk, Random};
use super::*;
use crate::log::Expected;

/// Small files, so that a run of a few hundred commits crosses many of them.
fn options() -> FileLogOptions {
    FileLogOptions {
        volume_bytes: 16 * 1024,
        first_volume_bytes: 8 * 1024,
        max_segment_bytes: 6 * 1024,
        max_commit_bytes: 12 * 1024,
        queue_bytes: MIB,
        batch_bytes: 4 * 1024,
    }
}

/// A log without threads: the test decides what goes into a batch.
struct Bench {
    disk: ModelDisk,
    reader: Arc<Reader>,
    writer: Writer,
}

impl Bench {
    fn open(disk: ModelDisk, clock: u64) -> Result<Self, OpenError> {
        let (reader, writer) = open_parts(Arc::new(disk.clone()), options(), Arc::new(move || clock), false)?;
        Ok(Self { disk, reader, writer })
    }

    fn run(&mut self, commits: Vec<Vec<Append>>) -> Vec<Result<Vec<Appended>, AppendError>> {
        let mut jobs = VecDeque::new();
        let mut tickets = Vec::new();
        for commit in commits {
            let (answer, ticket) = oneshot::channel();
            jobs.push_back(Job { commit, answer, room: None });
            tickets.push(ticket);
        }
        self.writer.process(jobs);
        tickets.into_iter().map(|mut ticket| ticket.try_recv().expect("answered")).collect()
    }

    fn all(&self) -> Vec<Segment> {
        let all = self.reader.volumes.segments_after(0, usize::MAX).expect("readable");
        // In pages, from any segment on, it is the same.
        let mut paged: Vec<Segment> = Vec::new();
        loop {
            let after = paged.last().map_or(0, |segment| segment.position);
            let page = self.reader.volumes.segments_after(after, 7).expect("readable");
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(paged, all);
        all
    }
}

fn stream(number: u64) -> StreamId {
    StreamId::new(format!("stream/{number}"))
}

/// A commit whose bodies say which commit they belong to and how many segments it has.
fn random_commit(random: &mut Random, number: u64) -> Vec<Append> {
    let count = if random.chance(60) { 1 } else { 1 + random.below(5) };
    (0..count)
        .map(|index| {
            let padding = if random.chance(5) { random.below(2_000) } else { random.below(120) };
            let body = format!("{number}/{count}/{}", "x".repeat(padding as usize));
            let key = random.chance(50).then(|| format!("key-{number}-{index}"));
            Append { stream: stream(random.below(12)), expected: Expected::Any, key, body: body.into() }
        })
        .collect()
}

fn commit_of(segment: &Segment) -> (u64, u64) {
    let text = std::str::from_utf8(&segment.body).expect("text");
    let mut parts = text.split('/').map(|part| part.parse().unwrap_or(0));
    (parts.next().expect("number"), parts.next().expect("count"))
}

#[derive(Default)]
struct Reference {
    /// Commit and its answer, for all that were acknowledged.
    acknowledged: Vec<(Vec<Append>, Vec<Appended>)>,
    /// Numbers of commits that must not be there.
    refused: Vec<u64>,
    /// What the log held at the last look.
    seen: Vec<Segment>,
}

impl Reference {
    fn check(&mut self, bench: &Bench, context: &str) {
        let all = bench.all();
        let shared = self.seen.len().min(all.len());
        assert_eq!(self.seen[..shared], all[..shared], "{context}: history changed");
        assert!(all.len() >= self.seen.len(), "{context}: segments that had been seen are gone");
        let by_position: BTreeMap<u64, &Segment> = all.iter().map(|segment| (segment.position, segment)).collect();
        for (commit, answers) in &self.acknowledged {
            for (append, answer) in commit.iter().zip(answers) {
                let segment = by_position.get(&answer.position);
                let segment = segment.unwrap_or_else(|| panic!("{context}: acknowledged {answer:?} is gone"));
                assert_eq!((&segment.stream, segment.version), (&append.stream, answer.version), "{context}");
                assert_eq!((&segment.body, segment.time_ms), (&append.body, answer.time_ms), "{context}");
            }
        }
        let mut commits: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for segment in &all {
            let (number, count) = commit_of(segment);
            commits.entry(number).or_insert((count, 0)).1 += 1;
        }
        for (number, (count, present)) in &commits {
            assert_eq!(count, present, "{context}: commit {number} is there in part");
            assert!(!self.refused.contains(number), "{context}: commit {number} was refused and is there");
        }
        let verified = verify::verify(&bench.reader).expect("readable");
        assert_eq!(verified.problems, Vec::<String>::new(), "{context}");
        assert_eq!(verified.segments, all.len() as u64, "{context}");
        let tip = all.last().map_or(0, |segment| segment.position);
        assert_eq!(*bench.reader.tip.borrow(), tip, "{context}: tip");
        self.seen = all;
    }

    /// Every stream, from any version, is what the whole log says it is.
    fn check_streams(&self, bench: &Bench, random: &mut Random, context: &str) {
        for number in 0..12 {
            let expected: Vec<_> =
                self.seen.iter().filter(|segment| segment.stream == stream(number)).cloned().collect();
            let from = 1 + random.below(expected.len() as u64 + 2);
            let limit = random.below(20) as usize;
            let read = bench.reader.stream(&stream(number), from, limit).expect("readable");
            let expected_part: Vec<_> = expected.iter().skip(from as usize - 1).take(limit).cloned().collect();
            assert_eq!(read, expected_part, "{context}: stream {number} from {from}, {limit}");
            let head = bench.reader.head(&stream(number)).expect("readable");
            let last = expected.last().map(|last| (last.position, last.version, last.hash));
            assert_eq!(head.map(|head| (head.position, head.version, head.hash)), last, "{context}");
            for pair in expected.windows(2) {
                assert_eq!((pair[1].previous, pair[1].version), (pair[0].hash, pair[0].version + 1), "{context}");
            }
        }
    }
}

/// One life of a log: restarts and faults until `rounds` are over.
fn live(seed: u64, rounds: u64, faults: &[Fault]) {
    let mut random = Random(seed);
    let mut disk = ModelDisk::new(seed ^ 0xd15c);
    let mut reference = Reference::default();
    let mut number = 0;
    for round in 0..rounds {
        let context = format!("seed {seed}, round {round}");
        if random.chance(70) {
            disk.lose_power_after(random.below(60));
        }
        // The wall clock jumps, back as well as forth.
        let mut bench = match Bench::open(disk.clone(), random.below(1_000_000)) {
            Ok(bench) => bench,
            // The power went, or a fault of the round before came only now: the next round tries again.
            Err(OpenError::Io(_)) => {
                disk = if disk.is_dead() { disk.restart() } else { disk };
                continue;
            }
            Err(error) => panic!("{context}: {error}"),
        };
        reference.check(&bench, &context);
        reference.check_streams(&bench, &mut random, &context);
        if !faults.is_empty() && random.chance(60) {
            disk.fail_after(random.below(6), faults[random.below(faults.len() as u64) as usize]);
        }
        for _ in 0..random.below(12) {
            let commits: Vec<_> = (0..1 + random.below(8)).map(|at| random_commit(&mut random, number + at)).collect();
            let first = number;
            number += commits.len() as u64;
            let answers = bench.run(commits.clone());
            for (at, (commit, answer)) in commits.into_iter().zip(answers).enumerate() {
                match answer {
                    Ok(answers) => reference.acknowledged.push((commit, answers)),
                    // An error of the disk itself; if it stopped the log or the power went, the restart decides.
                    Err(AppendError::Io(_)) if !disk.is_dead() => reference.refused.push(first + at as u64),
                    Err(AppendError::Io(_) | AppendError::Stopped(_)) => {}
                    Err(error) => panic!("{context}: {error}"),
                }
            }
            if !disk.is_dead() && random.chance(25) {
                reference.check(&bench, &context);
            }
        }
        if !disk.is_dead() {
            repeat_some(&mut bench, &mut random, &reference, &context);
        }
        disk = if disk.is_dead() || random.chance(50) { bench.disk.restart() } else { disk };
    }
}

/// Acknowledged appends with a key, sent again, answer the same and write nothing.
fn repeat_some(bench: &mut Bench, random: &mut Random, reference: &Reference, context: &str) {
    for _ in 0..6 {
        let count = reference.acknowledged.len() as u64;
        let Some((commit, answers)) = reference.acknowledged.get(random.below(count) as usize) else { return };
        if !commit.iter().all(|append| append.key.is_some()) {
            continue;
        }
        let again = bench.run(vec![commit.clone()]).pop().expect("one answer");
        match again {
            Ok(again) => {
                let expected: Vec<_> = answers.iter().map(|answer| Appended { duplicate: true, ..*answer }).collect();
                assert_eq!(again, expected, "{context}: a repeated commit was answered differently");
            }
            Err(AppendError::Stopped(_) | AppendError::Io(_)) => {}
            Err(error) => panic!("{context}: {error}"),
        }
    }
}

#[test]
fn acknowledged_commits_survive_any_power_cut_whole_and_in_order() {
    for seed in 0..60 {
        live(seed, 12, &[]);
    }
}

#[test]
fn disk_errors_leave_nothing_of_a_refused_commit_and_lose_nothing_acknowledged() {
    for seed in 1_000..1_060 {
        live(seed, 12, &[Fault::Write, Fault::Sync, Fault::Full, Fault::Rename]);
    }
}
