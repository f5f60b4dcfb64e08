//! Reading: heads, streams and the whole log, from any thread, without waiting for the writer.
//!
//! A reader sees what has been synced and nothing else. It takes two locks, each only to copy something out
//! of memory: the list of volumes and the lookup tables.

use std::sync::Arc;

use noetl_contract::Digest;
use tokio::sync::watch;

use super::frame::stream_hash;
use super::lookup::Lookup;
use super::skips::jump_target;
use super::volume::Volumes;
use crate::log::{Appended, Head, ReadError, Segment, StreamId};

pub struct Reader {
    pub volumes: Volumes,
    pub lookup: Arc<Lookup>,
    /// Position of the last durable segment.
    pub tip: watch::Sender<u64>,
}

impl Reader {
    pub fn head(&self, stream: &StreamId) -> Result<Option<Head>, ReadError> {
        self.head_of(stream, stream_hash(stream.as_str()))
    }

    pub fn head_of(&self, stream: &StreamId, name: u128) -> Result<Option<Head>, ReadError> {
        let Some(position) = self.lookup.get(name)? else { return Ok(None) };
        let loaded = self.volumes.load(position)?;
        let frame = loaded.frame();
        if frame.stream != stream.as_str() {
            return Err(self.misled(position, "the lookup of a stream leads to another one"));
        }
        let (version, hash) = (frame.header.version, Digest::from_bytes(frame.header.hash));
        Ok(Some(Head { position, version, hash }))
    }

    /// The segment an idempotency key was used for.
    pub fn find_key(&self, stream: &StreamId, key: &str, hash: u128) -> Result<Option<Appended>, ReadError> {
        let Some(position) = self.lookup.get(hash)? else { return Ok(None) };
        let loaded = self.volumes.load(position)?;
        let frame = loaded.frame();
        if frame.stream != stream.as_str() || frame.key != Some(key) {
            return Err(self.misled(position, "the lookup of a key leads to another one"));
        }
        let (version, time_ms) = (frame.header.version, frame.header.time_ms);
        Ok(Some(Appended { position, version, time_ms, duplicate: true }))
    }

    fn misled(&self, position: u64, problem: &str) -> ReadError {
        let base = self.volumes.containing(position).map_or(0, |volume| volume.header.base);
        self.volumes.damaged(base, position, problem)
    }

    pub fn stream(&self, stream: &StreamId, from_version: u64, limit: usize) -> Result<Vec<Segment>, ReadError> {
        let from = from_version.max(1);
        let Some(head) = self.head(stream)? else { return Ok(Vec::new()) };
        let last = from.saturating_add(limit as u64 - u64::from(limit > 0)).min(head.version);
        if limit == 0 || last < from {
            return Ok(Vec::new());
        }
        // To the last wanted segment by jumps, then back one by one.
        let (mut position, mut version) = (head.position, head.version);
        while version > last {
            let header = self.volumes.header(position, version)?;
            let target = jump_target(version);
            (position, version) = if target >= last { (header.jump, target) } else { (header.back, version - 1) };
        }
        let mut segments = Vec::with_capacity((last - from + 1) as usize);
        loop {
            let loaded = self.volumes.load(position)?;
            let frame = loaded.frame();
            if frame.stream != stream.as_str() || frame.header.version != version {
                return Err(self.misled(position, "a link of its stream leads to something else"));
            }
            let back = frame.header.back;
            segments.push(loaded.into_segment());
            if version == from {
                break;
            }
            (position, version) = (back, version - 1);
        }
        segments.reverse();
        Ok(segments)
    }
}
