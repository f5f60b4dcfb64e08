//! The log's files. A log is a row of *volumes*, each a preallocated file named after its first position.
//!
//! A position is an address: volume `base` plus offset in the file. So the place of a segment needs no
//! index, and positions grow with every segment and have gaps (frame lengths, unused ends of volumes).
//!
//! The first 4096 bytes of a volume are its header, synced before the file gets its name, so a named
//! volume with a bad header is damage and never a torn write:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `noetlLOG` |
//! | 8..12 | format, 1 |
//! | 12..16 | salt of the frames' checksums, random for each volume |
//! | 16..24 | base |
//! | 24..32 | capacity: size of the file; the next volume's base is base + capacity |
//! | 32..40 | where the data of the volume before ended |
//! | 40..48 | position of the last segment before this volume, 0 for none |
//! | 48..56 | time of that segment |
//! | 60..64 | crc32c of bytes 0..60 |

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use lru::LruCache;
use noetl_contract::Digest;
use parking_lot::{Mutex, RwLock};

use super::disk::{Disk, DiskFile};
use super::frame::{Frame, HEADER, Header, NoFrame};
use crate::log::{ReadError, Segment, StreamId};

/// Where the first frame of a volume begins.
pub const DATA: u64 = 4096;
const MAGIC: &[u8; 8] = b"noetlLOG";
const FORMAT: u32 = 1;
/// Sealed volumes kept open for readers.
const OPEN_FILES: usize = 64;
/// Bytes fetched first when a frame is read: most frames are shorter.
const FIRST_READ: usize = 512;
/// Bytes fetched at once when many frames are read in a row.
const RUN_READ: usize = 1 << 20;

/// What a volume's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VolumeHeader {
    pub salt: u32,
    pub base: u64,
    pub capacity: u64,
    pub previous_end: u64,
    pub previous_tip: u64,
    pub previous_time: u64,
}

impl VolumeHeader {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; DATA as usize];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.salt.to_le_bytes());
        let numbers = [self.base, self.capacity, self.previous_end, self.previous_tip, self.previous_time];
        for (slot, number) in bytes[16..56].chunks_exact_mut(8).zip(numbers) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8; 64]) -> Result<Self, &'static str> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if &bytes[..8] != MAGIC {
            return Err("it is not a file of this log");
        }
        if crc32c::crc32c(&bytes[..60]) != word(60) {
            return Err("the checksum of its header does not match");
        }
        if word(8) != FORMAT {
            return Err("it has a format this version does not know");
        }
        Ok(Self {
            salt: word(12),
            base: long(16),
            capacity: long(24),
            previous_end: long(32),
            previous_tip: long(40),
            previous_time: long(48),
        })
    }
}

pub fn volume_name(base: u64) -> String {
    format!("{base:020}.log")
}

pub fn parse_volume_name(name: &str) -> Option<u64> {
    name.strip_suffix(".log").filter(|digits| digits.len() == 20)?.parse().ok()
}

/// A volume and how far it may be read.
#[derive(Debug)]
pub struct Volume {
    pub header: VolumeHeader,
    /// Position after the last durable frame. Moves only in the newest volume, and only after a sync.
    end: AtomicU64,
}

impl Volume {
    pub fn new(header: VolumeHeader, end: u64) -> Arc<Self> {
        Arc::new(Self { header, end: AtomicU64::new(end) })
    }

    pub fn start(&self) -> u64 {
        self.header.base + DATA
    }

    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub fn advance(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }
}

/// Bytes of one frame, checked.
pub struct Loaded {
    bytes: Bytes,
    position: u64,
    salt: u32,
}

impl Loaded {
    pub fn frame(&self) -> Frame<'_> {
        Frame::parse(&self.bytes, self.position, self.salt).expect("checked when it was loaded")
    }

    pub fn into_segment(self) -> Segment {
        let frame = self.frame();
        segment_of(&frame, self.bytes.slice(frame.body_range()))
    }
}

fn segment_of(frame: &Frame<'_>, body: Bytes) -> Segment {
    let Header { position, version, time_ms, previous, hash, .. } = frame.header;
    Segment {
        position,
        stream: StreamId::new(frame.stream),
        version,
        time_ms,
        key: frame.key.map(str::to_owned),
        previous: Digest::from_bytes(previous),
        hash: Digest::from_bytes(hash),
        body,
    }
}

/// All volumes, for readers. Nothing here waits for the writer: its lock is held to add a volume to the
/// list, never during a disk operation.
pub struct Volumes {
    pub disk: Arc<dyn Disk>,
    list: RwLock<Vec<Arc<Volume>>>,
    open: Mutex<LruCache<u64, Arc<dyn DiskFile>>>,
}

impl Volumes {
    pub fn new(disk: Arc<dyn Disk>, list: Vec<Arc<Volume>>) -> Self {
        let open = LruCache::new(NonZeroUsize::new(OPEN_FILES).expect("not zero"));
        Self { disk, list: RwLock::new(list), open: Mutex::new(open) }
    }

    pub fn add(&self, volume: Arc<Volume>) {
        self.list.write().push(volume);
    }

    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.list.read().clone()
    }

    /// The volume whose addresses contain `position`.
    pub fn containing(&self, position: u64) -> Option<Arc<Volume>> {
        let list = self.list.read();
        let after = list.partition_point(|volume| volume.header.base <= position);
        list[..after].last().cloned()
    }

    fn following(&self, volume: &Volume) -> Option<Arc<Volume>> {
        let list = self.list.read();
        let after = list.partition_point(|other| other.header.base <= volume.header.base);
        list.get(after).cloned()
    }

    pub fn file(&self, base: u64) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.lock().get(&base) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&volume_name(base))?;
        self.open.lock().put(base, Arc::clone(&file));
        Ok(file)
    }

    pub fn damaged(&self, base: u64, position: u64, problem: impl Into<String>) -> ReadError {
        ReadError::Damaged { position, file: self.disk.label(&volume_name(base)), problem: problem.into() }
    }

    fn locate(&self, position: u64) -> Result<Arc<Volume>, ReadError> {
        let volume = self.containing(position).ok_or_else(|| self.damaged(0, position, "there is no such position"))?;
        let inside = (volume.start()..volume.end().saturating_sub(HEADER as u64 - 1)).contains(&position);
        if inside { Ok(volume) } else { Err(self.damaged(volume.header.base, position, "there is no such position")) }
    }

    /// The fixed part of the frame at `position`, trusted only as far as it says where it belongs: for
    /// walking along a stream without reading bodies.
    pub fn header(&self, position: u64, version: u64) -> Result<Header, ReadError> {
        let volume = self.locate(position)?;
        let mut bytes = [0; HEADER];
        self.file(volume.header.base)?.read_at(&mut bytes, position - volume.header.base)?;
        let header = Header::decode(&bytes);
        if header.position != position || header.version != version || !header.is_sound() {
            return Err(self.damaged(volume.header.base, position, "a link of its stream leads to something else"));
        }
        Ok(header)
    }

    /// The frame at `position`, with its checksum checked.
    pub fn load(&self, position: u64) -> Result<Loaded, ReadError> {
        let volume = self.locate(position)?;
        let VolumeHeader { base, salt, .. } = volume.header;
        let file = self.file(base)?;
        let available = usize::try_from(volume.end() - position).unwrap_or(usize::MAX);
        let mut bytes = vec![0; available.min(FIRST_READ)];
        file.read_at(&mut bytes, position - base)?;
        let length = Header::decode(&bytes).frame_len();
        if length > bytes.len() && length <= available {
            let fetched = bytes.len();
            bytes.resize(length, 0);
            file.read_at(&mut bytes[fetched..], position - base + fetched as u64)?;
        }
        match Frame::parse(&bytes, position, salt) {
            Ok(_) => Ok(Loaded { bytes: bytes.into(), position, salt }),
            Err(NoFrame::Blank) => Err(self.damaged(base, position, "there are zeros where a frame should be")),
            Err(NoFrame::Broken(problem)) => Err(self.damaged(base, position, problem)),
        }
    }

    /// Segments after `after`, in log order.
    pub fn segments_after(&self, after: u64, limit: usize) -> Result<Vec<Segment>, ReadError> {
        let mut found = Vec::new();
        let Some(mut volume) = self.containing(after) else { return Ok(found) };
        let mut at = volume.start();
        if after >= at && after < volume.end() {
            // A reader's cursor is the position of a segment it has seen. Anything else is settled by
            // walking the volume from its start.
            at = match self.load(after) {
                Ok(loaded) => after + loaded.frame().header.frame_len() as u64,
                Err(ReadError::Io(error)) => return Err(ReadError::Io(error)),
                Err(ReadError::Damaged { .. }) => at,
            };
        } else if after >= at {
            at = volume.end();
        }
        loop {
            self.read_run(&volume, at, after, limit, &mut found)?;
            let next = if found.len() < limit { self.following(&volume) } else { None };
            let Some(next) = next else { return Ok(found) };
            at = next.start();
            volume = next;
        }
    }

    /// Adds the segments of one volume from the frame at `at` on.
    fn read_run(
        &self,
        volume: &Volume,
        mut at: u64,
        after: u64,
        limit: usize,
        found: &mut Vec<Segment>,
    ) -> Result<(), ReadError> {
        let VolumeHeader { base, salt, .. } = volume.header;
        let end = volume.end();
        let file = self.file(base)?;
        let mut want = RUN_READ;
        while at < end && found.len() < limit {
            let mut bytes = vec![0; usize::try_from(end - at).map_or(want, |left| left.min(want))];
            file.read_at(&mut bytes, at - base)?;
            let bytes = Bytes::from(bytes);
            let mut offset = 0;
            while offset < bytes.len() && found.len() < limit {
                let rest = &bytes[offset..];
                let length = if rest.len() < HEADER { HEADER } else { Header::decode(rest).frame_len() };
                if length > rest.len() && at + offset as u64 + length as u64 <= end {
                    break;
                }
                let position = at + offset as u64;
                let frame = Frame::parse(rest, position, salt).map_err(|fault| {
                    let problem = match fault {
                        NoFrame::Blank => "there are zeros where a frame should be",
                        NoFrame::Broken(problem) => problem,
                    };
                    self.damaged(base, position, problem)
                })?;
                if position > after {
                    let body = frame.body_range();
                    found.push(segment_of(&frame, bytes.slice(offset + body.start..offset + body.end)));
                }
                offset += length;
            }
            // A frame that did not fit the buffer is read again, with room for the whole of it.
            want = if offset == 0 { Header::decode(&bytes).frame_len().max(RUN_READ) } else { RUN_READ };
            at += offset as u64;
        }
        Ok(())
    }
}
