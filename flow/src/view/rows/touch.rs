//! What each event does to which row.

use std::collections::BTreeMap;

use super::{Change, CommandRow, ExecutionRow, LoopRow, StepRow};
use crate::event::{Adopted, Ending, Event, Failure, Finished, Reported, Started};
use crate::ids::CommandId;
use crate::view::expand::last_id;
use crate::view::segment::{Placed, Segment};

/// Rows so far, each with its place in the order of first touch.
#[derive(Default)]
pub struct Touched {
    changes: Vec<Change>,
    executions: BTreeMap<u64, usize>,
    steps: BTreeMap<(u64, String, u32), usize>,
    commands: BTreeMap<(u64, CommandId), usize>,
    loops: BTreeMap<(u64, String, u32), usize>,
}

impl Touched {
    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }

    /// The chain has grown, by whatever.
    pub fn unknown(&mut self, segment: &Segment, id: u64) {
        self.execution(passing(segment, id));
    }

    pub fn known(&mut self, Placed { segment, recorded, claim }: &Placed) {
        let mut row = passing(segment, recorded.id);
        match &recorded.event {
            Event::Started(started) => begin(&mut row, recorded.at, started),
            Event::Entered { step, .. } => row.step = Some(step.clone()),
            Event::Finished(finished) => end(&mut row, recorded.at, finished),
            _ => {}
        }
        self.execution(row);
        let at = Moment { execution: segment.execution, version: segment.version, ms: recorded.at };
        match &recorded.event {
            Event::Reported(reported) => self.reported(at, reported, *claim),
            other => self.event(at, other),
        }
    }

    fn event(&mut self, at: Moment, event: &Event) {
        match event {
            Event::Adopted(adopted) => self.adopted(at, adopted),
            Event::Entered { step, run, .. } => {
                let entered = StepRow { status: word("RUNNING"), entered_ms: Some(at.ms), ..at.step(step, *run) };
                self.step(entered);
            }
            Event::Issued { command, tools, .. } => {
                let issued = CommandRow { status: word("PENDING"), issued_ms: Some(at.ms), ..at.command(command) };
                let tool = (!tools.is_empty()).then(|| tools.join(","));
                self.command(command, CommandRow { tool, ..issued });
            }
            Event::Lost { command } => {
                let lost = CommandRow { status: word("LOST"), ended_ms: Some(at.ms), ..at.command(command) };
                self.command(command, lost);
            }
            Event::LoopOpened { step, run, total, .. } => {
                self.iteration_loop(LoopRow {
                    total: *total,
                    status: word("RUNNING"),
                    ..at.iteration_loop(step, *run)
                });
            }
            Event::LoopClosed { step, run, total, failed, .. } => {
                let status = ended(*failed == 0);
                let closed = LoopRow { total: Some(*total), status: status.clone(), ..at.iteration_loop(step, *run) };
                self.iteration_loop(closed);
                self.step(StepRow { status, ended_ms: Some(at.ms), ..at.step(step, *run) });
            }
            Event::Skipped { step, .. } => {
                self.step(StepRow { status: word("SKIPPED"), ended_ms: Some(at.ms), ..at.step(step, 0) });
            }
            Event::Parked { step, run, .. } => self.step(StepRow { status: word("PARKED"), ..at.step(step, *run) }),
            Event::Resumed { step, run, .. } => {
                self.step(StepRow { status: ended(true), ended_ms: Some(at.ms), ..at.step(step, *run) });
            }
            Event::Started(_)
            | Event::Finished(_)
            | Event::Reported(_)
            | Event::Arrived { .. }
            | Event::Claimed { .. }
            | Event::Failing { .. }
            | Event::LoopSpilled { .. }
            | Event::Set { .. }
            | Event::ChildStarted { .. }
            | Event::CancelRequested { .. } => {}
        }
    }

    fn adopted(&mut self, at: Moment, adopted: &Adopted) {
        for done in &adopted.steps {
            let status = if done.data.is_some() { "COMPLETED" } else { "SKIPPED" };
            let run = if done.data.is_some() { done.run } else { 0 };
            self.step(StepRow { status: word(status), ended_ms: Some(at.ms), ..at.step(&done.step, run) });
        }
    }

    fn reported(&mut self, at: Moment, reported: &Reported, claim: bool) {
        let command = &reported.command;
        let ok = reported.error.is_none();
        let error = reported.error.as_ref().map(sentence);
        let row = CommandRow { status: ended(ok), ended_ms: Some(at.ms), error: error.clone(), ..at.command(command) };
        self.command(command, CommandRow { plugin: reported.plugin.clone(), ..row });
        if command.iteration.is_some() {
            let counts = LoopRow {
                succeeded: u32::from(ok),
                failed: u32::from(!ok),
                ..at.iteration_loop(&command.step, command.run)
            };
            self.iteration_loop(counts);
        } else if !claim {
            let row = at.step(&command.step, command.run);
            self.step(StepRow { status: ended(ok), ended_ms: Some(at.ms), error, ..row });
        }
    }

    fn execution(&mut self, row: ExecutionRow) {
        let next = self.changes.len();
        let place = *self.executions.entry(row.execution).or_insert(next);
        match self.changes.get_mut(place) {
            Some(Change::Execution(under)) => under.lay(row),
            _ => self.changes.push(Change::Execution(row)),
        }
    }

    fn step(&mut self, row: StepRow) {
        let next = self.changes.len();
        let place = *self.steps.entry((row.execution, row.step.clone(), row.run)).or_insert(next);
        match self.changes.get_mut(place) {
            Some(Change::Step(under)) => under.lay(row),
            _ => self.changes.push(Change::Step(row)),
        }
    }

    fn command(&mut self, id: &CommandId, row: CommandRow) {
        let next = self.changes.len();
        let place = *self.commands.entry((row.execution, id.clone())).or_insert(next);
        match self.changes.get_mut(place) {
            Some(Change::Command(under)) => under.lay(row),
            _ => self.changes.push(Change::Command(row)),
        }
    }

    fn iteration_loop(&mut self, row: LoopRow) {
        let next = self.changes.len();
        let place = *self.loops.entry((row.execution, row.step.clone(), row.run)).or_insert(next);
        match self.changes.get_mut(place) {
            Some(Change::Loop(under)) => under.lay(row),
            _ => self.changes.push(Change::Loop(row)),
        }
    }
}

/// Whose and when; rows with nothing but that.
#[derive(Clone, Copy)]
struct Moment {
    execution: u64,
    version: u64,
    ms: u64,
}

impl Moment {
    fn step(self, step: &str, run: u32) -> StepRow {
        StepRow { execution: self.execution, step: step.to_owned(), run, version: self.version, ..StepRow::default() }
    }

    fn iteration_loop(self, step: &str, run: u32) -> LoopRow {
        LoopRow { execution: self.execution, step: step.to_owned(), run, version: self.version, ..LoopRow::default() }
    }

    fn command(self, id: &CommandId) -> CommandRow {
        CommandRow {
            execution: self.execution,
            command: id.to_string(),
            step: id.step.clone(),
            run: id.run,
            iteration: id.iteration,
            attempt: id.attempt,
            version: self.version,
            ..CommandRow::default()
        }
    }
}

fn passing(segment: &Segment, id: u64) -> ExecutionRow {
    ExecutionRow {
        execution: segment.execution,
        tenant: segment.tenant.clone(),
        last_event: last_id(id),
        version: segment.version,
        ..ExecutionRow::default()
    }
}

fn begin(row: &mut ExecutionRow, at: u64, started: &Started) {
    row.path = Some(started.path.clone());
    row.playbook_version = Some(started.version);
    row.parent = started.starter().and_then(|starter| starter.parse().ok());
    row.root = started.root.parse().ok();
    row.status = word("RUNNING");
    row.started_ms = Some(at);
    row.requested_by = Some(started.requested_by.clone());
}

fn end(row: &mut ExecutionRow, at: u64, finished: &Finished) {
    row.status = word(match finished.status {
        Ending::Completed => "COMPLETED",
        Ending::Failed => "FAILED",
        Ending::Cancelled => "CANCELLED",
    });
    row.ended_ms = Some(at);
    row.error = finished.error.as_ref().map(sentence);
}

fn word(status: &str) -> Option<String> {
    Some(status.to_owned())
}

fn ended(ok: bool) -> Option<String> {
    word(if ok { "COMPLETED" } else { "FAILED" })
}

/// An error in one line.
pub fn sentence(error: &Failure) -> String {
    format!("{}: {}", error.code, error.message)
}
