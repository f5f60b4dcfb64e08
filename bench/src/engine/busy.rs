//! Many callers at once: durable steps a second, what a step costs, and beside whom.
//!
//! The ceiling is the disk with nothing around it: 100 records of 200 bytes, written and synced as one. Steps that touch
//! nothing outside may share a commit with the steps before them, so ours can do more than one step a record; the other
//! engines do one commit a step. The second measurement is the one to compare with them: its steps run in a sandbox of
//! their own, each after the commit that issued it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::peers::{self, Peer};
use super::playbooks::Playbook;
use super::stand::Stand;
use super::turn::Turn;
use super::{bounded, say};
use crate::log::Raw;
use crate::rows::{Better, Row, Rows, median};
use crate::server;

const CALLERS: u64 = 200;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(4);
/// Records the ceiling syncs at once.
const RAW_IN_FLIGHT: usize = 100;

pub async fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let mut beside = Beside::new()?;
    say("many callers, steps that touch nothing outside");
    pure(stand, &mut beside, rows).await?;
    say("many callers, steps in sandboxes of their own");
    acting(stand, &mut beside, rows).await
}

async fn pure(stand: &Stand, beside: &mut Beside, rows: &mut Rows) -> Result<()> {
    let (turns, pairs) = beside.turns(stand, &Playbook::pure(10)).await?;
    let mut row = Row::of_pairs(&pairs, "steps/s", Better::Higher);
    (row.floor, row.goal) = (Some(20_000.0), Some(100_000.0));
    rows.add("durable steps/s: 10 no-op steps over HTTP, 200 callers; baseline: disk alone", row);
    beside.rows("10 no-op steps", rows);
    latencies("10 no-op steps", &turns, rows);
    costs(&turns, rows);
    Ok(())
}

async fn acting(stand: &Stand, beside: &mut Beside, rows: &mut Rows) -> Result<()> {
    let (turns, pairs) = beside.turns(stand, &Playbook::acting(10)).await?;
    let row = Row::of_pairs(&pairs, "steps/s", Better::Higher);
    rows.add("steps/s, a fresh sandbox and a commit before each; baseline: disk alone", row);
    beside.rows("fresh sandboxes", rows);
    latencies("10 fresh sandboxes", &turns, rows);
    rows.add("CPU of the server, a step in a fresh sandbox", lower(turns.iter().map(|turn| turn.cpu_us), "µs"));
    Ok(())
}

fn latencies(what: &str, turns: &[Turn], rows: &mut Rows) {
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let times = turns.iter().map(|turn| turn.times.at(part));
        rows.add(format!("execution of {what}, 200 callers, {name}"), lower(times, "ms"));
    }
}

fn costs(turns: &[Turn], rows: &mut Rows) {
    rows.add("CPU of the server, a step", lower(turns.iter().map(|turn| turn.cpu_us), "µs"));
    let written: Vec<f64> = turns.iter().filter_map(|turn| turn.written).collect();
    if !written.is_empty() {
        rows.add("written to disk, a step, tables included", lower(written, "B"));
    }
    let drive = median(turns.iter().map(|turn| turn.drive_us));
    rows.add("drive, an input", bounded(drive, "µs", (20.0, 3.0)));
    let most = turns.iter().map(|turn| turn.resident_mib).fold(0.0, f64::max);
    rows.add("memory, under this load", bounded(most, "MiB", (250.0, 100.0)));
}

/// The middle of numbers of which less is better.
fn lower(values: impl IntoIterator<Item = f64>, unit: &'static str) -> Row {
    Row::new(median(values), unit, Better::Lower)
}

/// What ours takes turns with.
struct Beside {
    raw: Raw,
    peers: Vec<Peer>,
    /// Goes after the file in it.
    _folder: tempfile::TempDir,
}

impl Beside {
    fn new() -> Result<Self> {
        let folder = server::folder()?;
        let mut raw = Raw::new(folder.path())?;
        // A turn that does not count: the first use of the file.
        raw.rate(RAW_IN_FLIGHT)?;
        Ok(Self { raw, peers: peers::installed(), _folder: folder })
    }

    /// Our turns, and our rates beside those of the disk.
    async fn turns(&mut self, stand: &Stand, playbook: &Arc<Playbook>) -> Result<(Vec<Turn>, Vec<(f64, f64)>)> {
        Turn::take(stand, playbook, CALLERS, TIME / 4).await?;
        self.peers.iter_mut().for_each(|peer| peer.pairs.clear());
        let (mut turns, mut pairs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let turn = Turn::take(stand, playbook, CALLERS, TIME).await?;
            pairs.push((turn.rate, self.raw.rate(RAW_IN_FLIGHT)?));
            self.peers.retain_mut(|peer| peer.take_turn(turn.rate));
            turns.push(turn);
        }
        Ok((turns, pairs))
    }

    fn rows(&self, what: &str, rows: &mut Rows) {
        for peer in &self.peers {
            let row = Row::of_pairs(&peer.pairs, "steps/s", Better::Higher);
            rows.add(format!("steps/s, {what}; baseline: {}", peer.name), row);
        }
    }
}
