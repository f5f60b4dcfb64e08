//! Appending to the embedded log, against writing and syncing the same bytes with nothing in between.
//!
//! The raw side writes to a preallocated file whose blocks have been written before, which is the least any durable append
//! can cost on this disk; with 100 in flight it writes 100 bodies and syncs once. Both sides take turns, a fraction of a
//! second each, in one folder.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::log::{Append, Expected, Log, StreamId};
use tokio::runtime::Runtime;

use crate::rows::{Better, Row, Rows};

const BODY: usize = 200;
const ROUNDS: usize = 15;
const TURN: Duration = Duration::from_millis(300);
const RAW_BYTES: usize = 64 << 20;
const MICROSECONDS: f64 = 1e6;

pub fn run() -> Result<Rows> {
    // Beside the binary: the system's temporary folder may be memory, on which a sync costs nothing.
    let binary = std::env::current_exe().context("find this program")?;
    let beside = binary.parent().context("this program is in a folder")?;
    let folder = tempfile::tempdir_in(beside).context("make a folder for the log")?;
    let mut raw = Raw::new(folder.path())?;
    let log = FileLog::open(folder.path().join("log"), FileLogOptions::default()).context("open a log")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().context("start the runtime")?;

    let mut rows = Rows::default();
    let one = turns(&mut raw, &log, &runtime, 1)?;
    let latencies: Vec<_> = one.iter().map(|(ours, raw)| (MICROSECONDS / ours, MICROSECONDS / raw)).collect();
    rows.add("append, 1 in flight", Row::of_pairs(&latencies, "µs", Better::Lower));

    let hundred = turns(&mut raw, &log, &runtime, 100)?;
    let mut row = Row::of_pairs(&hundred, "segments/s", Better::Higher);
    row.floor = Some(100_000.0);
    row.goal = row.baseline.map(|ceiling| ceiling / 2.0);
    rows.add("append, 100 in flight", row);
    Ok(rows)
}

/// Appends a second, ours and raw, of each round.
fn turns(raw: &mut Raw, log: &Arc<FileLog>, runtime: &Runtime, in_flight: usize) -> Result<Vec<(f64, f64)>> {
    // One turn each that does not count: first use of files, buffers and threads.
    raw.rate(in_flight)?;
    runtime.block_on(log_rate(log, in_flight))?;
    (0..ROUNDS).map(|_| Ok((runtime.block_on(log_rate(log, in_flight))?, raw.rate(in_flight)?))).collect()
}

async fn log_rate(log: &Arc<FileLog>, in_flight: usize) -> Result<f64> {
    let started = Instant::now();
    let writers: Vec<_> = (0..in_flight)
        .map(|writer| {
            let log = Arc::clone(log);
            tokio::spawn(async move {
                let stream = StreamId::new(format!("bench/{writer}"));
                let body = Bytes::from(vec![7; BODY]);
                let mut appended = 0_u64;
                while started.elapsed() < TURN {
                    let append =
                        Append { stream: stream.clone(), expected: Expected::Any, key: None, body: body.clone() };
                    log.append(append).await?;
                    appended += 1;
                }
                anyhow::Ok(appended)
            })
        })
        .collect();
    let mut appended = 0;
    for writer in writers {
        appended += writer.await.context("a writer ended early")??;
    }
    Ok(appended as f64 / started.elapsed().as_secs_f64())
}

/// A preallocated file, written from start to end and around again.
pub struct Raw {
    file: File,
    offset: usize,
}

impl Raw {
    pub fn new(folder: &Path) -> Result<Raw> {
        let file = File::create(folder.join("raw")).context("create the raw file")?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, RAW_BYTES as u64)
            .context("preallocate")?;
        let zeros = vec![0; 1 << 20];
        for offset in (0..RAW_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, offset as u64).context("write the raw file")?;
        }
        file.sync_all().context("sync the raw file")?;
        Ok(Raw { file, offset: 0 })
    }

    /// Bodies a second, a group of `in_flight` synced at once.
    pub fn rate(&mut self, in_flight: usize) -> Result<f64> {
        let group = vec![7; BODY * in_flight];
        let started = Instant::now();
        let mut appended = 0_usize;
        while started.elapsed() < TURN {
            if self.offset + group.len() > RAW_BYTES {
                self.offset = 0;
            }
            self.file.write_all_at(&group, self.offset as u64).context("write the raw file")?;
            self.file.sync_data().context("sync the raw file")?;
            self.offset += group.len();
            appended += in_flight;
        }
        Ok(appended as f64 / started.elapsed().as_secs_f64())
    }
}
