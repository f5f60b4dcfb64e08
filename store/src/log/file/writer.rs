//! The one writer: takes what has gathered in the queue, settles it, and makes it durable with one write and
//! one sync.
//!
//! A *batch* is what goes to the disk together: many commits, all in one volume. Nothing of it is visible
//! before its sync has answered, and every answer (also a refusal, which may rest on a commit of the same
//! batch) is given after it. The next batch is written only then, which is what lets recovery tell a torn
//! tail from damage.
//!
//! What happens when the disk refuses:
//! - The write fails: the range is zeroed and synced again. If that works, nothing happened and the
//!   callers get `Io`; if not, the log stops.
//! - The sync fails: what is on disk is unknown, and asking again could report pages as clean that never
//!   arrived. The log stops; a restart settles what is there.
//! - A new volume cannot be made (the disk is full): the commit that needed it gets `Io`, nothing changed. If
//!   the error comes after the file may have got its name, the log stops.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use tokio::sync::oneshot;

use super::disk::DiskFile;
use super::frame::{NewFrame, frame_len, key_hash, stream_hash};
use super::housekeeper::{Chore, Housekeeper};
use super::queue::Job;
use super::reader::Reader;
use super::skips::Roots;
use super::volume::{DATA, Volume, VolumeHeader, volume_name};
use super::{Clock, FileLogOptions};
use crate::log::{Append, AppendError, Appended, Expected, ReadError, StreamId};

/// Keys longer than this are refused.
const MAX_KEY: usize = 200;
/// A commit has at most this many segments.
const MAX_SEGMENTS: usize = 10_000;
/// Heads of streams kept ready for their next segment.
const HOT_STREAMS: usize = 16_384;

pub struct Writer {
    reader: Arc<Reader>,
    housekeeper: Housekeeper,
    options: FileLogOptions,
    clock: Clock,
    volume: Arc<Volume>,
    file: Arc<dyn DiskFile>,
    time_ms: u64,
    hot: LruCache<StreamId, StreamHead>,
    stopped: Option<String>,
    /// Kept between batches for its memory.
    buffer: Vec<u8>,
}

/// What the next segment of a stream is linked to.
#[derive(Clone)]
struct StreamHead {
    name: u128,
    position: u64,
    version: u64,
    hash: [u8; 32],
    roots: Roots,
}

type Answer = Result<Vec<Appended>, AppendError>;

/// Commits that go to the disk together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    heads: HashMap<StreamId, StreamHead>,
    keys: HashMap<u128, Appended>,
    answers: Vec<(oneshot::Sender<Answer>, Answer, Option<tokio::sync::OwnedSemaphorePermit>)>,
    tip: u64,
}

/// What becomes of one append of a commit that holds.
enum Fate {
    Known(Appended),
    /// Known within the same commit: the answer of the append with this index.
    SameAs(usize),
    Write {
        key: Option<u128>,
    },
}

impl Writer {
    pub fn new(
        reader: Arc<Reader>,
        housekeeper: Housekeeper,
        options: FileLogOptions,
        clock: Clock,
        volume: Arc<Volume>,
        time_ms: u64,
    ) -> io::Result<Self> {
        let file = reader.volumes.file(volume.header.base)?;
        housekeeper.request(Chore::Spare { capacity: next_capacity(&options, volume.header.capacity) });
        Ok(Self {
            reader,
            housekeeper,
            options,
            clock,
            volume,
            file,
            time_ms,
            hot: LruCache::new(NonZeroUsize::new(HOT_STREAMS).expect("not zero")),
            stopped: None,
            buffer: Vec::new(),
        })
    }

    /// Writes everything that waits, in as few batches as the limits allow.
    pub fn process(&mut self, mut jobs: VecDeque<Job>) {
        while !jobs.is_empty() {
            self.time_ms = self.time_ms.max((self.clock)());
            let mut batch = Batch { bytes: std::mem::take(&mut self.buffer), ..Batch::default() };
            batch.bytes.clear();
            while let Some(job) = jobs.pop_front() {
                let Job { commit, answer, room } = job;
                let length = commit_len(&commit);
                if self.stopped.is_none() && !self.has_room(&batch, length) {
                    if !batch.bytes.is_empty() {
                        jobs.push_front(Job { commit, answer, room });
                        break;
                    }
                    if length <= self.options.max_commit_bytes
                        && let Err(error) = self.next_volume(length)
                    {
                        batch.answers.push((answer, Err(error), room));
                        continue;
                    }
                }
                let outcome = self.settle(&mut batch, &commit);
                batch.answers.push((answer, outcome, room));
                if batch.bytes.len() >= self.options.batch_bytes {
                    break;
                }
            }
            self.finish(batch);
        }
    }

    fn has_room(&self, batch: &Batch, length: usize) -> bool {
        let end = self.volume.end() + batch.bytes.len() as u64 + length as u64;
        end <= self.volume.header.base + self.volume.header.capacity
    }

    /// Decides about one commit and, if it holds, adds it to the batch.
    fn settle(&mut self, batch: &mut Batch, commit: &[Append]) -> Answer {
        if let Some(reason) = &self.stopped {
            return Err(AppendError::Stopped(reason.clone()));
        }
        self.check_form(commit)?;
        let fates = self.check_state(batch, commit)?;
        let mut following = fates.iter().filter(|fate| matches!(fate, Fate::Write { .. })).count();
        let mut answers: Vec<Appended> = Vec::with_capacity(commit.len());
        for (append, fate) in commit.iter().zip(fates) {
            let answer = match fate {
                Fate::Known(earlier) => Appended { duplicate: true, ..earlier },
                Fate::SameAs(index) => Appended { duplicate: true, ..answers[index] },
                Fate::Write { key } => {
                    following -= 1;
                    let appended = self.place(batch, append, following as u16);
                    batch.keys.extend(key.map(|key| (key, appended)));
                    appended
                }
            };
            answers.push(answer);
        }
        Ok(answers)
    }

    fn check_form(&self, commit: &[Append]) -> Result<(), AppendError> {
        if commit.is_empty() {
            return Err(AppendError::Invalid("no segments"));
        }
        if commit.len() > MAX_SEGMENTS {
            return Err(AppendError::Invalid("more than 10000 segments"));
        }
        for append in commit {
            let (size, limit) = (append.body.len(), self.options.max_segment_bytes);
            if size > limit {
                return Err(AppendError::TooLarge { size, limit });
            }
            if append.key.as_ref().is_some_and(|key| key.len() > MAX_KEY) {
                return Err(AppendError::Invalid("a key of more than 200 bytes"));
            }
        }
        let (size, limit) = (commit_len(commit), self.options.max_commit_bytes);
        if size > limit { Err(AppendError::TooLarge { size, limit }) } else { Ok(()) }
    }

    /// Looks every append up: first its key, then its expected version. Changes nothing but the heads loaded
    /// into the batch.
    fn check_state(&mut self, batch: &mut Batch, commit: &[Append]) -> Result<Vec<Fate>, AppendError> {
        let mut fates = Vec::with_capacity(commit.len());
        let mut own_keys: HashMap<u128, usize> = HashMap::new();
        let mut own_segments: HashMap<&StreamId, u64> = HashMap::new();
        for (index, append) in commit.iter().enumerate() {
            let key = append.key.as_ref().map(|key| key_hash(append.stream.as_str(), key));
            if let Some(hash) = key {
                if let Some(index) = own_keys.get(&hash) {
                    fates.push(Fate::SameAs(*index));
                    continue;
                }
                if let Some(earlier) = self.find_key(batch, append, hash)? {
                    fates.push(Fate::Known(earlier));
                    continue;
                }
                own_keys.insert(hash, index);
            }
            self.load_head(batch, &append.stream)?;
            let own = own_segments.entry(&append.stream).or_default();
            let actual = batch.heads.get(&append.stream).map_or(0, |head| head.version) + *own;
            if let Expected::Version(expected) = append.expected
                && expected != actual
            {
                return Err(AppendError::Conflict { stream: append.stream.clone(), expected, actual });
            }
            *own += 1;
            fates.push(Fate::Write { key });
        }
        Ok(fates)
    }

    fn find_key(&self, batch: &Batch, append: &Append, hash: u128) -> Result<Option<Appended>, AppendError> {
        if let Some(earlier) = batch.keys.get(&hash) {
            return Ok(Some(*earlier));
        }
        let key = append.key.as_deref().unwrap_or_default();
        self.reader.find_key(&append.stream, key, hash).map_err(unreadable)
    }

    /// Makes sure the batch knows the head of the stream, if it has one.
    fn load_head(&mut self, batch: &mut Batch, stream: &StreamId) -> Result<(), AppendError> {
        if batch.heads.contains_key(stream) {
            return Ok(());
        }
        let head = match self.hot.get(stream) {
            Some(head) => Some(head.clone()),
            None => self.cold_head(stream).map_err(unreadable)?,
        };
        batch.heads.extend(head.map(|head| (stream.clone(), head)));
        Ok(())
    }

    fn cold_head(&self, stream: &StreamId) -> Result<Option<StreamHead>, ReadError> {
        let name = stream_hash(stream.as_str());
        let Some(head) = self.reader.head_of(stream, name)? else { return Ok(None) };
        let volumes = &self.reader.volumes;
        let roots = Roots::load(head.position, head.version, |position, version| {
            Ok::<_, ReadError>(volumes.header(position, version)?.jump)
        })?;
        let (position, version, hash) = (head.position, head.version, *head.hash.as_bytes());
        Ok(Some(StreamHead { name, position, version, hash, roots }))
    }

    /// Lays one segment into the batch and moves the batch's head of its stream.
    fn place(&mut self, batch: &mut Batch, append: &Append, remaining: u16) -> Appended {
        let start = self.volume.end();
        let position = start + batch.bytes.len() as u64;
        let head = batch.heads.entry(append.stream.clone()).or_insert_with(|| StreamHead {
            name: stream_hash(append.stream.as_str()),
            position: 0,
            version: 0,
            hash: [0; 32],
            roots: Roots::default(),
        });
        let frame = NewFrame {
            position,
            batch: start,
            version: head.version + 1,
            time_ms: self.time_ms,
            back: head.position,
            jump: head.roots.push(position),
            remaining,
            previous: head.hash,
            stream: append.stream.as_str(),
            key: append.key.as_deref(),
            body: &append.body,
        };
        head.hash = frame.encode(self.volume.header.salt, &mut batch.bytes);
        head.position = position;
        head.version += 1;
        batch.tip = position;
        Appended { position, version: head.version, time_ms: self.time_ms, duplicate: false }
    }

    /// Makes the batch durable, then visible, then answers.
    fn finish(&mut self, mut batch: Batch) {
        let bytes = std::mem::take(&mut batch.bytes);
        let outcome = if bytes.is_empty() { Ok(()) } else { self.store(&bytes) };
        if outcome.is_ok() && !bytes.is_empty() {
            let start = self.volume.end();
            self.volume.advance(start + bytes.len() as u64);
            let heads = batch.heads.values().filter(|head| head.position >= start);
            let keys = batch.keys.iter().map(|(hash, appended)| (*hash, appended.position));
            self.reader.lookup.publish(heads.map(|head| (head.name, head.position)).chain(keys));
            for (stream, head) in batch.heads.drain() {
                self.hot.put(stream, head);
            }
            self.reader.tip.send_replace(batch.tip);
        }
        self.buffer = bytes;
        for (sender, answer, room) in batch.answers {
            let answer = outcome.clone().and(answer);
            drop(room);
            // A caller that went away does not need its answer.
            let _delivered = sender.send(answer);
        }
    }

    fn store(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        let offset = self.volume.end() - self.volume.header.base;
        if let Err(error) = self.file.write_at(bytes, offset) {
            let undone = self.file.write_at(&vec![0; bytes.len()], offset).and_then(|()| self.file.sync());
            if let Err(again) = undone {
                self.stop(format!("a failed write could not be undone: {error}; then: {again}"));
            }
            return Err(AppendError::Io(Arc::new(error)));
        }
        self.file.sync().map_err(|error| {
            let reason = format!("a sync failed, so what reached the disk is unknown until a restart: {error}");
            self.stop(reason.clone());
            AppendError::Stopped(reason)
        })
    }

    fn stop(&mut self, reason: String) {
        tracing::error!(reason, "the log takes no more writes");
        self.stopped = Some(reason);
    }

    /// Seals the volume and goes on in a new one with room for at least `length` bytes.
    fn next_volume(&mut self, length: usize) -> Result<(), AppendError> {
        let old = Arc::clone(&self.volume);
        let needed = (DATA + length as u64).next_multiple_of(DATA);
        let spare = self
            .housekeeper
            .take_spare(next_capacity(&self.options, old.header.capacity).max(needed))
            .map_err(|error| AppendError::Io(Arc::new(error)))?;
        let header = VolumeHeader {
            salt: fresh_salt(),
            base: old.header.base + old.header.capacity,
            capacity: spare.capacity,
            previous_end: old.end(),
            previous_tip: *self.reader.tip.borrow(),
            previous_time: self.time_ms,
        };
        let disk = &self.reader.volumes.disk;
        spare.file.write_at(&header.encode(), 0).and_then(|()| spare.file.sync()).map_err(|error| {
            // What is left of it without a name would be found and removed at the next start as well.
            let _removed = disk.remove(&spare.name);
            AppendError::Io(Arc::new(error))
        })?;
        disk.rename(&spare.name, &volume_name(header.base)).and_then(|()| disk.sync_folder()).map_err(|error| {
            let reason = format!("a new file of the log could not be named: {error}");
            self.stop(reason.clone());
            AppendError::Stopped(reason)
        })?;
        self.volume = Volume::new(header, header.base + DATA);
        self.file = spare.file;
        self.reader.volumes.add(Arc::clone(&self.volume));
        self.reader.lookup.seal(old.header.base);
        self.housekeeper.request(Chore::Seal);
        self.housekeeper.request(Chore::Spare { capacity: next_capacity(&self.options, header.capacity) });
        Ok(())
    }
}

/// Volumes double from a small first one, so that an empty log starts at once and a busy one rarely changes files.
fn next_capacity(options: &FileLogOptions, current: u64) -> u64 {
    (current * 2).min(options.volume_bytes)
}

/// A number that clients cannot know.
pub fn fresh_salt() -> u32 {
    RandomState::new().hash_one(0) as u32
}

fn commit_len(commit: &[Append]) -> usize {
    let one = |append: &Append| {
        frame_len(append.stream.as_str().len(), append.key.as_ref().map(String::len), append.body.len())
    };
    commit.iter().map(one).sum()
}

fn unreadable(error: ReadError) -> AppendError {
    let error = match error {
        ReadError::Io(error) => error,
        damaged @ ReadError::Damaged { .. } => io::Error::new(io::ErrorKind::InvalidData, damaged.to_string()),
    };
    AppendError::Io(Arc::new(error))
}
