//! The rows of the projections as a projector says them, and what a newer row makes of an older one.
//!
//! A row says what has changed: an absent value leaves its column as it is. Read back, a row has what is known.
//!
//! Invariants, for every key:
//! 1. A row changes something only if its version is higher than what the table had before the batch, and not lower
//!    than what earlier rows of the batch said: nothing goes back, and nothing is counted twice.
//! 2. A terminal status is the last one: a row that says another leaves status, end and error alone.

/// One execution. Its key is `execution`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExecutionRow {
    pub execution: u64,
    pub tenant: String,
    pub path: Option<String>,
    pub playbook_version: Option<u32>,
    pub parent: Option<u64>,
    pub root: Option<u64>,
    pub status: Option<String>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    /// Step that was entered last.
    pub step: Option<String>,
    pub requested_by: Option<String>,
    pub last_event: u64,
    /// Of the execution's chain.
    pub version: u64,
}

/// One run of a step. Its key is execution, step and run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepRow {
    pub execution: u64,
    pub step: String,
    pub run: u32,
    pub status: Option<String>,
    pub entered_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    pub version: u64,
}

/// One command. Its key is execution, step, run, iteration and attempt, which is what `command` spells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandRow {
    pub execution: u64,
    pub command: String,
    pub step: String,
    pub run: u32,
    pub iteration: Option<u32>,
    pub attempt: u32,
    pub status: Option<String>,
    pub tool: Option<String>,
    pub plugin: Option<String>,
    pub issued_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    pub version: u64,
}

/// One run of a loop. Its key is execution, step and run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopRow {
    pub execution: u64,
    pub step: String,
    pub run: u32,
    pub total: Option<u32>,
    /// Written: to be added. Read: the sum.
    pub succeeded: u32,
    /// As `succeeded`.
    pub failed: u32,
    pub status: Option<String>,
    pub version: u64,
}

/// What a batch does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Execution(ExecutionRow),
    Step(StepRow),
    Command(CommandRow),
    Loop(LoopRow),
    /// The execution is gone: its rows, also those of this batch, its checkpoint, and that it is open.
    Deleted(u64),
}

/// Whether nothing follows this status. Both spellings of the platform's words are known.
pub fn is_terminal(status: &str) -> bool {
    ["completed", "failed", "cancelled", "skipped"].iter().any(|word| status.eq_ignore_ascii_case(word))
}

/// Takes the newer value where there is one.
pub(super) fn take<T>(column: &mut Option<T>, newer: Option<T>) {
    if newer.is_some() {
        *column = newer;
    }
}

/// Whether a row must leave the outcome alone: it says another status than the terminal one that is there.
fn contradicts(settled: Option<&str>, newer: Option<&str>) -> bool {
    settled.is_some_and(is_terminal) && newer.is_some_and(|newer| settled != Some(newer))
}

/// A row that can be brought up to date by a newer one.
pub(super) trait Merge {
    fn version(&self) -> u64;
    /// Called only with a row of the same key, and of the same or a higher version.
    fn take_over(&mut self, newer: Self);
}

impl Merge for StepRow {
    fn version(&self) -> u64 {
        self.version
    }

    fn take_over(&mut self, newer: Self) {
        take(&mut self.entered_ms, newer.entered_ms);
        if !contradicts(self.status.as_deref(), newer.status.as_deref()) {
            take(&mut self.status, newer.status);
            take(&mut self.ended_ms, newer.ended_ms);
            take(&mut self.error, newer.error);
        }
        self.version = newer.version;
    }
}

impl Merge for CommandRow {
    fn version(&self) -> u64 {
        self.version
    }

    fn take_over(&mut self, newer: Self) {
        take(&mut self.tool, newer.tool);
        take(&mut self.plugin, newer.plugin);
        take(&mut self.issued_ms, newer.issued_ms);
        if !contradicts(self.status.as_deref(), newer.status.as_deref()) {
            take(&mut self.status, newer.status);
            take(&mut self.ended_ms, newer.ended_ms);
            take(&mut self.error, newer.error);
        }
        self.version = newer.version;
    }
}

impl Merge for LoopRow {
    fn version(&self) -> u64 {
        self.version
    }

    fn take_over(&mut self, newer: Self) {
        take(&mut self.total, newer.total);
        if !contradicts(self.status.as_deref(), newer.status.as_deref()) {
            take(&mut self.status, newer.status);
        }
        self.succeeded = self.succeeded.saturating_add(newer.succeeded);
        self.failed = self.failed.saturating_add(newer.failed);
        self.version = newer.version;
    }
}
