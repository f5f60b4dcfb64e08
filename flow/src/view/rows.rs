//! Rows of the tables people query.
//!
//! [`project`] turns a batch of segments into one change a row: changes of the same row within the batch are laid over
//! each other here, so that a store writes each row once a batch however many events touched it.
//!
//! What a store does with a change ([`ExecutionRow::lay`] and the like do it in memory, and are what a store is tested
//! against):
//! 1. A change whose `version` is not higher than the row's is stale and is not applied.
//! 2. Absent values leave the column as it is, counts of a loop are added, the rest replaces.
//! 3. Rows and the cursor of the projector are one transaction; that makes the counts exact.
//!
//! Nothing comes after an execution's end in its chain, so a status never goes back from an end.

use super::segment::{Line, Placed, Segment};
use super::upcast::Upcasters;

mod touch;

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutionRow {
    pub execution: u64,
    pub tenant: String,
    pub path: Option<String>,
    pub playbook_version: Option<u32>,
    pub parent: Option<u64>,
    pub root: Option<u64>,
    /// `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: Option<String>,
    pub started_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    /// Step that was entered last.
    pub step: Option<String>,
    pub requested_by: Option<String>,
    /// In the expansion.
    pub last_event: u64,
    pub version: u64,
}

/// One run of a step; a step that was skipped has the run 0.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepRow {
    pub execution: u64,
    pub step: String,
    pub run: u32,
    /// `RUNNING`, `PARKED`, `COMPLETED`, `FAILED` or `SKIPPED`.
    pub status: Option<String>,
    pub entered_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    pub version: u64,
}

/// One attempt at a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandRow {
    pub execution: u64,
    pub command: String,
    pub step: String,
    pub run: u32,
    pub iteration: Option<u32>,
    pub attempt: u32,
    /// `PENDING`, `COMPLETED`, `FAILED` or `LOST`.
    pub status: Option<String>,
    pub tool: Option<String>,
    pub plugin: Option<String>,
    pub issued_ms: Option<u64>,
    pub ended_ms: Option<u64>,
    pub error: Option<String>,
    pub version: u64,
}

/// One loop of a run of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoopRow {
    pub execution: u64,
    pub step: String,
    pub run: u32,
    pub total: Option<u32>,
    /// To be added.
    pub succeeded: u32,
    /// To be added.
    pub failed: u32,
    /// `RUNNING`, `COMPLETED` or `FAILED`.
    pub status: Option<String>,
    pub version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Execution(ExecutionRow),
    Step(StepRow),
    Command(CommandRow),
    Loop(LoopRow),
}

/// One change a row that the segments touch, in the order they were touched first. What cannot be read is passed over.
pub fn project(segments: &[Segment]) -> Vec<Change> {
    let upcasters = Upcasters::current();
    let mut touched = touch::Touched::default();
    for segment in segments {
        for line in segment.lines(&upcasters) {
            match line {
                Line::Known(placed) => touched.known(&placed),
                Line::Unknown(unknown) => touched.unknown(segment, unknown.id),
            }
        }
    }
    touched.into_changes()
}

/// The same of events that were read already.
pub(super) fn project_events(events: &[Placed]) -> Vec<Change> {
    let mut touched = touch::Touched::default();
    for event in events {
        touched.known(event);
    }
    touched.into_changes()
}

fn lay<T>(under: &mut Option<T>, over: Option<T>) {
    if over.is_some() {
        *under = over;
    }
}

impl ExecutionRow {
    pub fn lay(&mut self, over: ExecutionRow) {
        lay(&mut self.path, over.path);
        lay(&mut self.playbook_version, over.playbook_version);
        lay(&mut self.parent, over.parent);
        lay(&mut self.root, over.root);
        lay(&mut self.status, over.status);
        lay(&mut self.started_ms, over.started_ms);
        lay(&mut self.ended_ms, over.ended_ms);
        lay(&mut self.error, over.error);
        lay(&mut self.step, over.step);
        lay(&mut self.requested_by, over.requested_by);
        self.last_event = over.last_event;
        self.version = over.version;
    }
}

impl StepRow {
    pub fn lay(&mut self, over: StepRow) {
        lay(&mut self.status, over.status);
        lay(&mut self.entered_ms, over.entered_ms);
        lay(&mut self.ended_ms, over.ended_ms);
        lay(&mut self.error, over.error);
        self.version = over.version;
    }
}

impl CommandRow {
    pub fn lay(&mut self, over: CommandRow) {
        lay(&mut self.status, over.status);
        lay(&mut self.tool, over.tool);
        lay(&mut self.plugin, over.plugin);
        lay(&mut self.issued_ms, over.issued_ms);
        lay(&mut self.ended_ms, over.ended_ms);
        lay(&mut self.error, over.error);
        self.version = over.version;
    }
}

impl LoopRow {
    pub fn lay(&mut self, over: LoopRow) {
        lay(&mut self.total, over.total);
        self.succeeded += over.succeeded;
        self.failed += over.failed;
        lay(&mut self.status, over.status);
        self.version = over.version;
    }
}

#[cfg(test)]
mod tests;
