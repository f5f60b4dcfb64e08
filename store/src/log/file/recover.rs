//! Opening a log: which volumes there are, where the newest one ends, and the sidecars of the others.
//!
//! Only the newest volume is read as a whole. Of a sealed one, just the header is, unless its sidecar is
//! missing or unreadable: then it is scanned and the sidecar made again.
//!
//! **Torn or damaged?** A batch is written only after the one before it was synced, and each frame says
//! where its batch began. So when the first unreadable frame is at `x`:
//! - a whole frame behind `x` whose batch began after `x` proves that `x` had been synced and acknowledged:
//!   that is damage, and the log refuses to open, naming file and position;
//! - otherwise `x` belongs to the last, unacknowledged write. Everything from the start of its commit is
//!   zeroed, so that no stale frame can ever follow a newer one.
//!
//! In a sealed volume nothing is ever torn: its frames end exactly where the next volume's header says.
//! The one loss that looks like a torn tail is damage to the very last batch of the newest volume.
//!
//! What recovery keeps of the last batch is written and synced once more before it is shown to anyone: after
//! a failed sync the page cache may hold bytes the disk never got.

use std::io;
use std::sync::Arc;

use super::disk::Disk;
use super::frame::{ALIGN, Frame, HEADER, NoFrame, key_hash, stream_hash};
use super::housekeeper::write_table;
use super::lookup::Table;
use super::run::{Run, parse_run_name};
use super::volume::{DATA, Volume, VolumeHeader, parse_volume_name, volume_name};
use super::writer::fresh_salt;
use super::{FileLogOptions, OpenError};

/// What opening found.
pub struct Recovered {
    pub volumes: Vec<Arc<Volume>>,
    pub newest: Table,
    pub runs: Vec<Arc<Run>>,
    pub tip: u64,
    pub time_ms: u64,
}

pub fn recover(disk: &dyn Disk, options: &FileLogOptions) -> Result<Recovered, OpenError> {
    let names = disk.list()?;
    for name in names.iter().filter(|name| name.ends_with(".tmp")) {
        disk.remove(name)?;
    }
    let headers = read_headers(disk, &names)?;
    let Some((newest, sealed)) = headers.split_last() else {
        let header = create_first(disk, options)?;
        let volume = Volume::new(header, header.base + DATA);
        return Ok(Recovered { volumes: vec![volume], newest: Table::new(), runs: Vec::new(), tip: 0, time_ms: 0 });
    };
    let mut volumes = Vec::with_capacity(headers.len());
    for (header, next) in sealed.iter().zip(&headers[1..]) {
        volumes.push(Volume::new(*header, next.previous_end));
    }
    let runs = cover(disk, &names, &volumes)?;
    let scanned = recover_newest(disk, newest)?;
    volumes.push(Volume::new(*newest, scanned.end));
    let tip = if scanned.tip > 0 { scanned.tip } else { newest.previous_tip };
    Ok(Recovered { volumes, newest: scanned.table, runs, tip, time_ms: scanned.time_ms.max(newest.previous_time) })
}

fn damaged(disk: &dyn Disk, base: u64, position: u64, problem: impl Into<String>) -> OpenError {
    OpenError::Damaged { file: disk.label(&volume_name(base)), position, problem: problem.into() }
}

/// Headers of all volumes in order, which must lie end to end from position 0.
fn read_headers(disk: &dyn Disk, names: &[String]) -> Result<Vec<VolumeHeader>, OpenError> {
    let mut bases: Vec<u64> = names.iter().filter_map(|name| parse_volume_name(name)).collect();
    bases.sort_unstable();
    let mut headers: Vec<VolumeHeader> = Vec::with_capacity(bases.len());
    for base in bases {
        let file = disk.open(&volume_name(base))?;
        let mut bytes = [0; 64];
        if file.size()? < DATA {
            return Err(damaged(disk, base, base, "the file is shorter than its header"));
        }
        file.read_at(&mut bytes, 0)?;
        let header = VolumeHeader::decode(&bytes).map_err(|problem| damaged(disk, base, base, problem))?;
        if header.base != base || file.size()? < header.capacity || header.capacity < DATA {
            return Err(damaged(disk, base, base, "its header does not fit its name and size"));
        }
        let expected = headers.last().map_or(0, |last| last.base + last.capacity);
        if base != expected {
            return Err(damaged(
                disk,
                base,
                base,
                format!("the file before it, {}, is missing", volume_name(expected)),
            ));
        }
        let end = headers.last().map_or(0..=0, |last| last.base + DATA..=base);
        if !end.contains(&header.previous_end) {
            return Err(damaged(disk, base, base, "its header does not fit the file before it"));
        }
        headers.push(header);
    }
    Ok(headers)
}

fn create_first(disk: &dyn Disk, options: &FileLogOptions) -> io::Result<VolumeHeader> {
    let capacity = options.first_volume_bytes.min(options.volume_bytes);
    let header =
        VolumeHeader { salt: fresh_salt(), base: 0, capacity, previous_end: 0, previous_tip: 0, previous_time: 0 };
    let unnamed = "first.tmp";
    let file = disk.create(unnamed)?;
    file.reserve(capacity)?;
    file.write_at(&header.encode(), 0)?;
    file.sync()?;
    disk.rename(unnamed, &volume_name(0))?;
    disk.sync_folder()?;
    Ok(header)
}

/// The sidecars of the sealed volumes, oldest first, made again where they are missing.
fn cover(disk: &dyn Disk, names: &[String], sealed: &[Arc<Volume>]) -> Result<Vec<Arc<Run>>, OpenError> {
    let mut found = Vec::new();
    for name in names.iter().filter(|name| parse_run_name(name).is_some()) {
        let fits = |run: &Arc<Run>| {
            let bases: Vec<u64> = [run.first, run.last].into();
            bases.iter().all(|base| sealed.iter().any(|volume| volume.header.base == *base)) && run.first <= run.last
        };
        match Run::open(disk, name) {
            Ok(run) if parse_run_name(name) == Some((run.first, run.last)) && fits(&run) => found.push(run),
            _ => disk.remove(name)?,
        }
    }
    // A merge that was cut off leaves the merged run beside its sources: the widest one stays.
    found.sort_by_key(|run| (run.first, std::cmp::Reverse(run.last)));
    let mut runs: Vec<Arc<Run>> = Vec::new();
    for run in found {
        if runs.last().is_some_and(|kept| run.first <= kept.last) {
            disk.remove(&run.name)?;
        } else {
            runs.push(run);
        }
    }
    for volume in sealed {
        let base = volume.header.base;
        if !runs.iter().any(|run| (run.first..=run.last).contains(&base)) {
            let table = scan_sealed(disk, volume)?;
            runs.push(write_table(disk, base, &table)?);
        }
    }
    runs.sort_by_key(|run| run.first);
    Ok(runs)
}

fn scan_sealed(disk: &dyn Disk, volume: &Volume) -> Result<Table, OpenError> {
    let header = &volume.header;
    let bytes = read_volume(disk, header)?;
    let scanned = scan(&bytes, header);
    match first_problem(&bytes, header, &scanned, Some(volume.end())) {
        Some((position, problem)) => Err(damaged(disk, header.base, position, problem)),
        None => Ok(scanned.table),
    }
}

pub fn read_volume(disk: &dyn Disk, header: &VolumeHeader) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; header.capacity as usize];
    disk.open(&volume_name(header.base))?.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// What the whole commits of a volume hold.
pub struct Scanned {
    pub table: Table,
    /// Position after the last whole commit.
    pub end: u64,
    /// Why the scan stopped there.
    pub stopped_by: NoFrame,
    /// Position of the last segment, 0 for none.
    pub tip: u64,
    pub time_ms: u64,
    /// Where the last batch began.
    pub batch: u64,
}

fn scan(bytes: &[u8], header: &VolumeHeader) -> Scanned {
    let mut scanned = Scanned {
        table: Table::new(),
        end: header.base + DATA,
        stopped_by: NoFrame::Blank,
        tip: 0,
        time_ms: 0,
        batch: header.base + DATA,
    };
    let (end, stopped_by) = walk_commits(bytes, header, |commit| {
        for frame in commit {
            scanned.table.insert(stream_hash(frame.stream), frame.header.position);
            if let Some(key) = frame.key {
                scanned.table.insert(key_hash(frame.stream, key), frame.header.position);
            }
            scanned.tip = frame.header.position;
            scanned.time_ms = frame.header.time_ms;
            scanned.batch = frame.header.batch;
        }
    });
    Scanned { end, stopped_by, ..scanned }
}

/// Shows each whole commit of a volume in order; answers where they end and what is wrong there.
pub fn walk_commits<'a>(bytes: &'a [u8], header: &VolumeHeader, mut visit: impl FnMut(&[Frame<'a>])) -> (u64, NoFrame) {
    let mut commit: Vec<Frame<'a>> = Vec::new();
    let (mut start, mut at) = (DATA as usize, DATA as usize);
    loop {
        let frame = match Frame::parse(&bytes[at..], header.base + at as u64, header.salt) {
            Ok(frame) => frame,
            Err(fault) => return (header.base + start as u64, fault),
        };
        if commit.last().is_some_and(|before| before.header.remaining != frame.header.remaining + 1) {
            return (header.base + start as u64, NoFrame::Broken("a commit lacks a part"));
        }
        commit.push(frame);
        at += frame.header.frame_len();
        if frame.header.remaining == 0 {
            visit(&commit);
            commit.clear();
            start = at;
        }
    }
}

/// What is wrong with a volume after its whole commits; `end` is where a sealed one must end.
pub fn first_problem(
    bytes: &[u8],
    header: &VolumeHeader,
    scanned: &Scanned,
    end: Option<u64>,
) -> Option<(u64, String)> {
    let fault = match scanned.stopped_by {
        NoFrame::Blank => "there are zeros where a frame should be",
        NoFrame::Broken(problem) => problem,
    };
    match end {
        Some(end) if end != scanned.end => Some((scanned.end.min(end), fault.to_owned())),
        Some(_) => None,
        None => {
            let later = frame_of_later_batch(bytes, header, scanned.end)?;
            Some((scanned.end, format!("{fault}, but what was written after it is there, at position {later}")))
        }
    }
}

/// A whole frame that was written after `end` had been synced.
fn frame_of_later_batch(bytes: &[u8], header: &VolumeHeader, end: u64) -> Option<u64> {
    let start = (end - header.base) as usize;
    (start..bytes.len().saturating_sub(HEADER)).step_by(ALIGN).find_map(|at| {
        let position = header.base + at as u64;
        // The cheap test comes first: a frame names its own position.
        let named = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().expect("eight bytes")) == position;
        let frame = if named { Frame::parse(&bytes[at..], position, header.salt).ok()? } else { return None };
        (frame.header.batch > end).then_some(position)
    })
}

fn recover_newest(disk: &dyn Disk, header: &VolumeHeader) -> Result<Scanned, OpenError> {
    let bytes = read_volume(disk, header)?;
    let scanned = scan(&bytes, header);
    if let Some((position, problem)) = first_problem(&bytes, header, &scanned, None) {
        return Err(damaged(disk, header.base, position, problem));
    }
    let file = disk.open(&volume_name(header.base))?;
    let end = (scanned.end - header.base) as usize;
    let torn = bytes[end..].iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if torn > 0 {
        tracing::info!(position = scanned.end, bytes = torn, "dropped a write that a crash had cut off");
        file.write_at(&vec![0; torn], end as u64)?;
    }
    let batch = (scanned.batch - header.base) as usize;
    if batch < end {
        file.write_at(&bytes[batch..end], batch as u64)?;
    }
    if torn > 0 || batch < end {
        file.sync()?;
    }
    Ok(scanned)
}
