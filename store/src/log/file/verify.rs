//! The check of a whole log: every checksum, every hash, every link, and that the lookups lead where the
//! frames are. Reads all volumes one after the other; keeps one entry a stream in memory while it runs.

use std::collections::HashMap;

use super::frame::{Frame, NoFrame, key_hash, stream_hash};
use super::reader::Reader;
use super::recover::{read_volume, walk_commits};
use super::volume::{Volume, volume_name};
use crate::log::{ReadError, Verified};

/// More lines would help nobody.
const MAX_PROBLEMS: usize = 100;

struct Last {
    position: u64,
    version: u64,
    hash: [u8; 32],
}

struct Check<'a> {
    reader: &'a Reader,
    found: Verified,
    streams: HashMap<u128, Last>,
    time_ms: u64,
}

pub fn verify(reader: &Reader) -> Result<Verified, ReadError> {
    // What the writer adds from now on is not looked at.
    let volumes: Vec<_> = reader.volumes.all().into_iter().map(|volume| (volume.end(), volume)).collect();
    let mut check = Check { reader, found: Verified::default(), streams: HashMap::new(), time_ms: 0 };
    for (end, volume) in &volumes {
        check.volume(volume, *end)?;
    }
    for (hash, last) in &check.streams {
        // The stream may have grown meanwhile, so its head may be newer than the last segment seen.
        if reader.lookup.get(*hash)?.is_none_or(|position| position < last.position) {
            let problem = format!("position {}: the lookup does not lead to this head of a stream", last.position);
            check.found.problems.push(problem);
        }
    }
    check.found.streams = check.streams.len() as u64;
    check.found.problems.truncate(MAX_PROBLEMS);
    Ok(check.found)
}

impl Check<'_> {
    fn volume(&mut self, volume: &Volume, end: u64) -> Result<(), ReadError> {
        let header = &volume.header;
        let mut bytes = read_volume(&*self.reader.volumes.disk, header)?;
        bytes.truncate((end - header.base) as usize);
        let mut keys = Vec::new();
        let (stopped, fault) = walk_commits(&bytes, header, |commit| {
            for frame in commit {
                self.frame(frame);
                keys.extend(frame.key.map(|key| (key_hash(frame.stream, key), frame.header.position)));
            }
        });
        if stopped != end {
            let what = match fault {
                NoFrame::Blank => "there are zeros where a frame should be",
                NoFrame::Broken(problem) => problem,
            };
            self.problem(stopped, &format!("in {}: {what}", volume_name(header.base)));
        }
        for (hash, position) in keys {
            if self.reader.lookup.get(hash)? != Some(position) {
                self.problem(position, "the lookup does not lead to this idempotency key");
            }
        }
        self.found.files += 1;
        self.found.bytes += end - header.base;
        Ok(())
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        let header = frame.header;
        self.found.segments += 1;
        let name = stream_hash(frame.stream);
        let before = self.streams.get(&name);
        let (position, version, hash) = before.map_or((0, 0, [0; 32]), |last| (last.position, last.version, last.hash));
        let problem = if !frame.hash_matches() {
            Some("its hash does not match its content")
        } else if header.version != version + 1 {
            Some("its version does not follow the one before it in the stream")
        } else if header.previous != hash || header.back != position {
            Some("its link does not lead to the segment before it in the stream")
        } else if header.time_ms < self.time_ms {
            Some("its time is before that of the segment before it")
        } else {
            None
        };
        if let Some(problem) = problem {
            self.problem(header.position, &format!("stream `{}`: {problem}", frame.stream));
        }
        self.time_ms = header.time_ms;
        self.streams.insert(name, Last { position: header.position, version: header.version, hash: header.hash });
    }

    fn problem(&mut self, position: u64, what: &str) {
        if self.found.problems.len() < MAX_PROBLEMS {
            self.found.problems.push(format!("position {position}: {what}"));
        }
    }
}
