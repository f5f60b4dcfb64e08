//! Sidecars of sealed volumes: where the streams and idempotency keys of a range of volumes are.
//!
//! A *run* maps 128-bit hashes (of a stream's name: position of its last segment in the range; of a key:
//! position of its segment) in sorted blocks, with a Bloom filter in front. One run is made for each sealed
//! volume; neighbours of one size are merged, so the number of runs grows with the logarithm of the log's
//! size. A run can always be deleted: it is made again from its volumes when the log is opened.
//!
//! | part | what |
//! |---|---|
//! | blocks of 4096 bytes | crc32c of bytes 4.., number of entries (u32), entries of hash (16, big-endian) and position (8) |
//! | fences | the first hash of each block, 16 bytes each |
//! | filter | ten bits an entry, seven probes |
//! | last 64 bytes | `noetlRUN`, first base, last base, level, entries, blocks, bytes of the filter (u64 each), crc32c of fences and filter, crc32c of this part |
//!
//! In memory, once a run has been asked for the first time: its fences and filter, 1.35 bytes an entry.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};

const BLOCK: usize = 4096;
const ENTRY: usize = 24;
const PER_BLOCK: usize = (BLOCK - 8) / ENTRY;
const TRAILER: usize = 64;
const MAGIC: &[u8; 8] = b"noetlRUN";
const BITS_PER_ENTRY: u64 = 10;
const PROBES: u64 = 7;
/// Runs are written under this name and renamed when whole.
const UNFINISHED: &str = "run.tmp";

pub struct Run {
    pub first: u64,
    pub last: u64,
    pub level: u64,
    pub name: String,
    label: String,
    entries: u64,
    blocks: u64,
    filter: u64,
    crc: u32,
    file: Arc<dyn DiskFile>,
    summary: Mutex<Option<Arc<Summary>>>,
}

/// What is kept in memory of a run.
struct Summary {
    fences: Vec<u128>,
    filter: Filter,
}

struct Filter(Vec<u8>);

impl Filter {
    fn for_entries(entries: u64) -> Self {
        Self(vec![0; (entries.max(1) * BITS_PER_ENTRY).div_ceil(8) as usize])
    }

    /// The hash is uniform already, so its halves serve as the two hashes of double hashing.
    fn bits(&self, hash: u128) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (step, start) = ((hash >> 64) as u64 | 1, hash as u64);
        let bits = self.0.len() as u64 * 8;
        (0..PROBES).map(move |probe| {
            let bit = start.wrapping_add(step.wrapping_mul(probe)) % bits;
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }

    fn add(&mut self, hash: u128) {
        for (byte, mask) in self.bits(hash) {
            self.0[byte] |= mask;
        }
    }

    fn may_have(&self, hash: u128) -> bool {
        self.bits(hash).all(|(byte, mask)| self.0[byte] & mask != 0)
    }
}

pub fn parse_run_name(name: &str) -> Option<(u64, u64)> {
    let (first, last) = name.strip_suffix(".run")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

impl Run {
    /// Opens a run by its trailer; fences and filter are read when first needed.
    pub fn open(disk: &dyn Disk, name: &str) -> io::Result<Arc<Self>> {
        let label = disk.label(name);
        let file = disk.open(name)?;
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{label}: {what}"));
        let size = file.size()?;
        let start = size.checked_sub(TRAILER as u64).ok_or_else(|| bad("it is too short"))?;
        let mut trailer = [0; TRAILER];
        file.read_at(&mut trailer, start)?;
        let long = |at: usize| u64::from_le_bytes(trailer[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().expect("four bytes"));
        if &trailer[..8] != MAGIC || crc32c::crc32c(&trailer[..60]) != word(60) {
            return Err(bad("its last bytes are not those of a sidecar"));
        }
        let run = Self {
            first: long(8),
            last: long(16),
            level: long(24),
            entries: long(32),
            blocks: long(40),
            filter: long(48),
            crc: word(56),
            name: name.to_owned(),
            label: label.clone(),
            file,
            summary: Mutex::new(None),
        };
        if run.blocks * BLOCK as u64 + run.blocks * 16 + run.filter != start {
            return Err(bad("its parts do not add up to its size"));
        }
        Ok(Arc::new(run))
    }

    /// Writes a run from entries sorted by hash, without doubles; at most `expected` of them.
    pub fn write(
        disk: &dyn Disk,
        range: (u64, u64),
        level: u64,
        expected: u64,
        entries: impl Iterator<Item = io::Result<(u128, u64)>>,
    ) -> io::Result<Arc<Self>> {
        let file = disk.create(UNFINISHED)?;
        let mut filter = Filter::for_entries(expected);
        let mut fences: Vec<u8> = Vec::new();
        let (mut block, mut in_block, mut blocks, mut total) = (vec![0; 8], 0_u32, 0_u64, 0_u64);
        let mut flush = |block: &mut Vec<u8>, in_block: &mut u32| -> io::Result<()> {
            block.resize(BLOCK, 0);
            block[4..8].copy_from_slice(&in_block.to_le_bytes());
            let crc = crc32c::crc32c(&block[4..]);
            block[..4].copy_from_slice(&crc.to_le_bytes());
            file.write_at(block, blocks * BLOCK as u64)?;
            block.truncate(8);
            *in_block = 0;
            blocks += 1;
            Ok(())
        };
        for entry in entries {
            let (hash, position) = entry?;
            if in_block == 0 {
                fences.extend_from_slice(&hash.to_be_bytes());
            }
            block.extend_from_slice(&hash.to_be_bytes());
            block.extend_from_slice(&position.to_le_bytes());
            filter.add(hash);
            in_block += 1;
            total += 1;
            if in_block as usize == PER_BLOCK {
                flush(&mut block, &mut in_block)?;
            }
        }
        if in_block > 0 {
            flush(&mut block, &mut in_block)?;
        }
        let mut tail = fences;
        tail.extend_from_slice(&filter.0);
        let crc = crc32c::crc32c(&tail);
        let start = tail.len();
        tail.extend_from_slice(MAGIC);
        for number in [range.0, range.1, level, total, blocks, filter.0.len() as u64] {
            tail.extend_from_slice(&number.to_le_bytes());
        }
        tail.extend_from_slice(&crc.to_le_bytes());
        let crc = crc32c::crc32c(&tail[start..]);
        tail.extend_from_slice(&crc.to_le_bytes());
        file.write_at(&tail, blocks * BLOCK as u64)?;
        file.sync()?;
        let name = format!("{:020}-{:020}.run", range.0, range.1);
        disk.rename(UNFINISHED, &name)?;
        disk.sync_folder()?;
        Self::open(disk, &name)
    }

    pub fn get(&self, hash: u128) -> io::Result<Option<u64>> {
        let summary = self.summary()?;
        if !summary.filter.may_have(hash) {
            return Ok(None);
        }
        let after = summary.fences.partition_point(|fence| *fence <= hash);
        let Some(block) = after.checked_sub(1) else { return Ok(None) };
        let entries = self.block(block as u64)?;
        Ok(entries.binary_search_by_key(&hash, |entry| entry.0).ok().map(|at| entries[at].1))
    }

    fn summary(&self) -> io::Result<Arc<Summary>> {
        let mut summary = self.summary.lock();
        if let Some(summary) = &*summary {
            return Ok(Arc::clone(summary));
        }
        let fences = self.blocks as usize * 16;
        let mut bytes = vec![0; fences + self.filter as usize];
        self.file.read_at(&mut bytes, self.blocks * BLOCK as u64)?;
        if crc32c::crc32c(&bytes) != self.crc {
            return Err(self.damaged());
        }
        let filter = Filter(bytes.split_off(fences));
        let fences = bytes.chunks_exact(16).map(|raw| u128::from_be_bytes(raw.try_into().expect("16 bytes"))).collect();
        let loaded = Arc::new(Summary { fences, filter });
        *summary = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn block(&self, number: u64) -> io::Result<Vec<(u128, u64)>> {
        let mut bytes = vec![0; BLOCK];
        self.file.read_at(&mut bytes, number * BLOCK as u64)?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let count = word(4) as usize;
        if crc32c::crc32c(&bytes[4..]) != word(0) || count > PER_BLOCK {
            return Err(self.damaged());
        }
        let entry = |raw: &[u8]| {
            let hash = u128::from_be_bytes(raw[..16].try_into().expect("16 bytes"));
            (hash, u64::from_le_bytes(raw[16..].try_into().expect("eight bytes")))
        };
        Ok(bytes[8..8 + count * ENTRY].chunks_exact(ENTRY).map(entry).collect())
    }

    fn damaged(&self) -> io::Error {
        let text = format!(
            "the sidecar {} is damaged: stop the server, delete that file and start again, it is then rebuilt",
            self.label
        );
        io::Error::new(io::ErrorKind::InvalidData, text)
    }

    /// All entries in order of hash.
    fn iter(self: &Arc<Self>) -> impl Iterator<Item = io::Result<(u128, u64)>> + use<> {
        let run = Arc::clone(self);
        (0..self.blocks).flat_map(move |number| match run.block(number) {
            Ok(entries) => entries.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })
    }

    /// One run out of neighbours, oldest first. The newest position of a hash wins.
    pub fn merge(disk: &dyn Disk, runs: &[Arc<Self>]) -> io::Result<Arc<Self>> {
        let range = (runs[0].first, runs[runs.len() - 1].last);
        let expected = runs.iter().map(|run| run.entries).sum();
        let mut sources: Vec<_> = runs.iter().map(|run| run.iter().peekable()).collect();
        let merged = std::iter::from_fn(move || {
            let mut best: Option<(u128, u64)> = None;
            for source in &mut sources {
                match source.peek() {
                    Some(Ok((hash, position))) if best.is_none_or(|(lowest, _)| *hash <= lowest) => {
                        best = Some((*hash, *position));
                    }
                    Some(Err(_)) => return source.next(),
                    Some(Ok(_)) | None => {}
                }
            }
            let (hash, position) = best?;
            for source in &mut sources {
                source.next_if(|entry| matches!(entry, Ok((other, _)) if *other == hash));
            }
            Some(Ok((hash, position)))
        });
        Self::write(disk, range, runs[0].level + 1, expected, merged)
    }
}
