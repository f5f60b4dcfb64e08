//! One turn of load, and what it cost the server.
//!
//! The tables follow the log with a low priority. What they cost belongs to the executions they show, so the server's
//! time and bytes are read when the tables have caught up, while the rate is that of the callers.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::load::{self, Times};
use super::playbooks::Playbook;
use super::process::Usage;
use super::stand::Stand;

pub struct Turn {
    /// Steps a second.
    pub rate: f64,
    /// How long executions took, in milliseconds.
    pub times: Times,
    /// Processor time of the server for one step, in microseconds.
    pub cpu_us: f64,
    /// Bytes handed to the disk for one step.
    pub written: Option<f64>,
    /// Time to drive one input, in microseconds.
    pub drive_us: f64,
    /// Memory of the server at the end of the load.
    pub resident_mib: f64,
}

impl Turn {
    /// The tables have caught up before and after.
    pub async fn take(stand: &Stand, playbook: &Arc<Playbook>, callers: u64, time: Duration) -> Result<Self> {
        let pid = stand.server.pid();
        let (used_before, seen_before) = (Usage::of(pid)?, stand.metrics().await?);
        let load = load::callers(&stand.target, playbook, callers, time).await?;
        let resident_mib = stand.server.resident_mib()?;
        stand.settled().await?;
        let (used, seen) = (Usage::of(pid)?, stand.metrics().await?);

        let steps = (load.executions * playbook.steps) as f64;
        let more = |name: &str| seen.sum(name) - seen_before.sum(name);
        let inputs = more("noetl_engine_inputs_total");
        ensure!(inputs > 0.0, "the server has no count of driven inputs");
        let written = used.written_bytes.zip(used_before.written_bytes).map(|(after, before)| (after - before) / steps);
        Ok(Self {
            rate: steps / load.took.as_secs_f64(),
            times: load.times,
            cpu_us: (used.cpu_seconds - used_before.cpu_seconds) * 1e6 / steps,
            written,
            drive_us: more("noetl_engine_drive_seconds_sum") * 1e6 / inputs,
            resident_mib,
        })
    }
}
