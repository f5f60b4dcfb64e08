//! Where a stream's head and an idempotency key are: tables in memory for what is not sealed yet, runs on
//! disk for the rest.
//!
//! Kept in memory: 24 bytes and the map's overhead for each stream and key *of the newest volume* (and of a
//! volume whose run is being written), so bounded by the size of a volume; 1.35 bytes for each entry of the
//! runs. A million streams that are not in the newest volume cost 1.4 MB.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::RwLock;

use super::run::Run;

pub type Table = HashMap<u128, u64>;

pub struct Lookup {
    state: RwLock<State>,
}

struct State {
    newest: Table,
    /// Sealed volumes whose run is not written yet, oldest first.
    sealing: Vec<(u64, Arc<Table>)>,
    /// Oldest first, without gaps or overlaps.
    runs: Arc<Vec<Arc<Run>>>,
}

impl Lookup {
    pub fn new(newest: Table, runs: Vec<Arc<Run>>) -> Self {
        Self { state: RwLock::new(State { newest, sealing: Vec::new(), runs: Arc::new(runs) }) }
    }

    pub fn get(&self, hash: u128) -> io::Result<Option<u64>> {
        let runs = {
            let state = self.state.read();
            let tables = std::iter::once(&state.newest).chain(state.sealing.iter().rev().map(|(_, table)| &**table));
            if let Some(position) = tables.into_iter().find_map(|table| table.get(&hash)) {
                return Ok(Some(*position));
            }
            Arc::clone(&state.runs)
        };
        for run in runs.iter().rev() {
            if let Some(position) = run.get(hash)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    pub fn publish(&self, entries: impl Iterator<Item = (u128, u64)>) {
        self.state.write().newest.extend(entries);
    }

    /// The newest volume is full: its table waits for its run to be written.
    pub fn seal(&self, base: u64) {
        let mut state = self.state.write();
        let table = Arc::new(std::mem::take(&mut state.newest));
        state.sealing.push((base, table));
    }

    /// The oldest table that waits for its run. Runs are written in this order only: a table is looked at
    /// before any run, so a run must never be newer than a table that still waits.
    pub fn oldest_sealing(&self) -> Option<(u64, Arc<Table>)> {
        self.state.read().sealing.first().cloned()
    }

    pub fn runs(&self) -> Arc<Vec<Arc<Run>>> {
        Arc::clone(&self.state.read().runs)
    }

    /// A run takes the place of the table or of the runs it was made from.
    pub fn install(&self, run: Arc<Run>) {
        let mut state = self.state.write();
        state.sealing.retain(|(base, _)| !(run.first..=run.last).contains(base));
        let mut runs: Vec<_> =
            state.runs.iter().filter(|other| other.last < run.first || other.first > run.last).cloned().collect();
        runs.push(run);
        runs.sort_by_key(|run| run.first);
        state.runs = Arc::new(runs);
    }
}
