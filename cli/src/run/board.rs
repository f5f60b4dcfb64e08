//! What is seen of executions while they run: events in, lines out.
//!
//! The board knows which steps run and what became of the others; it draws nothing itself, so that a terminal, a pipe
//! and a test see the same. It is fed the events of the API, of one execution or of a tree of them, each
//! execution's in their order.
//!
//! Bad input: an event that lacks something is shown with less; one of a kind that is not known changes nothing. All
//! text of events is made safe for a terminal here, once.

use std::collections::BTreeMap;

use serde_json::Value;

use super::line::{Line, Mark};
use crate::output::{one_line, time_ms};

/// Letters of a message that a line shows.
const MOST: usize = 160;

/// A run of a step of an execution.
pub type Key = (String, String, u64);

/// What an event changes about what is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A line that stays.
    Line(Line),
    /// A step began: it has a moving line from now on, or one that stays where nothing can move.
    Began(Key, Line),
    /// The text of a moving line.
    Moves(Key, Line),
    Ended(Key),
}

#[derive(Debug, Default)]
pub struct Board {
    executions: BTreeMap<String, Shown>,
    /// Depth of children that were announced and have not said anything yet.
    announced: BTreeMap<String, usize>,
}

/// An execution on the board.
#[derive(Debug, Default)]
struct Shown {
    depth: usize,
    began_ms: Option<i64>,
    steps: BTreeMap<(String, u64), Running>,
    succeeded: u64,
    failed: u64,
    skipped: u64,
}

/// A step that runs.
#[derive(Debug, Default)]
struct Running {
    began_ms: Option<i64>,
    attempt: u64,
    /// Tools of its command, to tell retries from a pipeline.
    tools: u64,
    calls: u64,
    progress: Option<Progress>,
    error: Option<String>,
}

/// How far a loop is.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Progress {
    total: Option<u64>,
    done: u64,
    failed: u64,
}

/// The parts of an event that lines are made of.
struct Told<'a> {
    execution: &'a str,
    kind: &'a str,
    step: String,
    run: u64,
    at_ms: Option<i64>,
    event: &'a Value,
}

impl<'a> Told<'a> {
    fn of(event: &'a Value) -> Self {
        Self {
            execution: event["execution_id"].as_str().unwrap_or_default(),
            kind: event["event_type"].as_str().unwrap_or_default(),
            step: one_line(event["node_name"].as_str().unwrap_or_default(), 60),
            run: event["meta"]["run"].as_u64().unwrap_or(1),
            at_ms: time_ms(&event["created_at"]),
            event,
        }
    }

    fn meta(&self, name: &str) -> &'a Value {
        &self.event["meta"][name]
    }

    fn failed(&self) -> bool {
        self.event["status"] == "FAILED"
    }

    fn error(&self) -> Option<String> {
        let error = &self.event["error"];
        let text = error["message"].as_str().or_else(|| error.as_str())?;
        Some(one_line(text, MOST))
    }

    fn key(&self) -> Key {
        (self.execution.to_owned(), self.step.clone(), self.run)
    }

    /// The step's name, and which time it is from the second on.
    fn title(&self) -> String {
        if self.run > 1 { format!("{} #{}", self.step, self.run) } else { self.step.clone() }
    }

    fn since(&self, began_ms: Option<i64>) -> Option<u64> {
        u64::try_from(self.at_ms? - began_ms?).ok()
    }
}

impl Board {
    pub fn event(&mut self, event: &Value) -> Vec<Change> {
        let told = Told::of(event);
        if told.kind == "child.started" {
            let depth = self.executions.get(told.execution).map_or(0, |shown| shown.depth) + 1;
            if let Some(child) = told.meta("child_execution_id").as_str() {
                self.announced.insert(child.to_owned(), depth);
            }
            return Vec::new();
        }
        if !self.executions.contains_key(told.execution) {
            let depth = self.announced.remove(told.execution).unwrap_or(0);
            let shown = Shown { depth, began_ms: told.at_ms, ..Shown::default() };
            self.executions.insert(told.execution.to_owned(), shown);
        }
        let shown = self.executions.get_mut(told.execution).expect("it has just been made sure of");
        shown.event(&told)
    }

    /// When a moving line began, in milliseconds since 1970 on the engine's clock.
    pub fn began_ms(&self, (execution, step, run): &Key) -> Option<i64> {
        self.executions.get(execution)?.steps.get(&(step.clone(), *run))?.began_ms
    }
}

impl Shown {
    fn event(&mut self, told: &Told) -> Vec<Change> {
        match told.kind {
            "playbook.initialized" => vec![Change::Line(self.title(told))],
            "step.enter" => self.enter(told),
            "command.issued" => self.issued(told),
            "call.done" | "call.error" => self.called(told),
            "loop.started" | "loop.claimed" | "loop.item" => self.looped(told),
            "loop.done" => self.loop_done(told),
            "step.parked" => self.parked(told),
            "step.exit" => self.exit(told),
            "step.skipped" => {
                self.skipped += 1;
                vec![Change::Line(self.line(Mark::Skipped, told.title()).note("skipped"))]
            }
            "execution.cancel_requested" => {
                let reason = one_line(told.meta("reason").as_str().unwrap_or_default(), MOST);
                let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
                vec![Change::Line(self.line(Mark::Note, format!("cancelling{reason}")))]
            }
            "playbook.completed" | "playbook.failed" | "execution.cancelled" => self.end(told),
            _ => Vec::new(),
        }
    }

    fn line(&self, mark: Mark, text: impl Into<String>) -> Line {
        Line { depth: self.depth, mark, text: text.into(), took: None, note: None }
    }

    fn title(&self, told: &Told) -> Line {
        let path = one_line(told.meta("path").as_str().unwrap_or("playbook"), 100);
        let version = told.meta("version").as_u64().map(|version| format!(" version {version}")).unwrap_or_default();
        self.line(Mark::Playbook, format!("{path}{version}"))
            .note(format!("execution {}", one_line(told.execution, 40)))
    }

    fn enter(&mut self, told: &Told) -> Vec<Change> {
        let running = Running { began_ms: told.at_ms, ..Running::default() };
        self.steps.insert((told.step.clone(), told.run), running);
        vec![Change::Began(told.key(), self.line(Mark::Running, told.title()))]
    }

    /// The moving line of a step as it is now.
    fn moving(&self, told: &Told) -> Vec<Change> {
        let Some(running) = self.steps.get(&(told.step.clone(), told.run)) else { return Vec::new() };
        vec![Change::Moves(told.key(), self.line(Mark::Running, told.title()).note(running.note()))]
    }

    fn running(&mut self, told: &Told) -> &mut Running {
        self.steps.entry((told.step.clone(), told.run)).or_default()
    }

    fn issued(&mut self, told: &Told) -> Vec<Change> {
        let attempt = told.meta("attempt").as_u64().unwrap_or(1);
        let running = self.running(told);
        running.tools = told.meta("tools").as_array().map_or(1, Vec::len) as u64;
        if running.progress.is_some() {
            return Vec::new();
        }
        let again = attempt > running.attempt.max(1);
        running.attempt = attempt;
        let mut changes = self.moving(told);
        if again {
            changes.push(Change::Line(self.line(Mark::Retry, told.title()).note(format!("attempt {attempt}"))));
        }
        changes
    }

    fn called(&mut self, told: &Told) -> Vec<Change> {
        let error = told.error();
        let running = self.running(told);
        if running.progress.is_none() {
            running.calls += told.meta("calls").as_u64().unwrap_or(0);
        }
        running.error = error.or(running.error.take());
        Vec::new()
    }

    fn looped(&mut self, told: &Told) -> Vec<Change> {
        let (kind, failed) = (told.kind, told.failed());
        let count = told.meta("count").as_u64().unwrap_or(0);
        let progress = self.running(told).progress.get_or_insert_default();
        match kind {
            "loop.started" => progress.total = told.meta("iterations_expected").as_u64(),
            "loop.claimed" => progress.total = Some(progress.total.unwrap_or(0) + count),
            _ => {
                progress.done += 1;
                progress.failed += u64::from(failed);
            }
        }
        self.moving(told)
    }

    fn loop_done(&mut self, told: &Told) -> Vec<Change> {
        let counts = &told.event["result"]["context"]["data"];
        let number = |name: &str| counts[name].as_u64();
        let progress = self.running(told).progress.get_or_insert_default();
        progress.failed = number("failed").unwrap_or(progress.failed);
        progress.done = number("succeeded").map_or(progress.done, |succeeded| succeeded + progress.failed);
        progress.total = number("total").or(progress.total);
        Vec::new()
    }

    fn parked(&mut self, told: &Told) -> Vec<Change> {
        let message = told.meta("message").as_str().map(|text| one_line(text, MOST));
        let note = message.unwrap_or_else(|| "waits for somebody to resume it".to_owned());
        let mut changes = vec![Change::Line(self.line(Mark::Parked, told.title()).note(format!("parked: {note}")))];
        // A park has no step of its own in the list until somebody resumes it, unless the step was entered before.
        changes.extend(self.moving(told));
        changes
    }

    fn exit(&mut self, told: &Told) -> Vec<Change> {
        let running = self.steps.remove(&(told.step.clone(), told.run)).unwrap_or_default();
        let took = told.since(running.began_ms);
        let (mark, note) = if told.failed() {
            self.failed += 1;
            (Mark::Failed, running.failure(told.error()))
        } else {
            self.succeeded += 1;
            (Mark::Done, running.note())
        };
        let line = Line { took, ..self.line(mark, told.title()).note(note) };
        vec![Change::Ended(told.key()), Change::Line(line)]
    }

    fn end(&mut self, told: &Told) -> Vec<Change> {
        let left = std::mem::take(&mut self.steps).into_keys();
        let mut changes: Vec<_> =
            left.map(|(step, run)| Change::Ended((told.execution.to_owned(), step, run))).collect();
        let counts = [(self.succeeded, "succeeded"), (self.failed, "failed"), (self.skipped, "skipped")];
        let counts: Vec<_> =
            counts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect();
        let (mark, word) = match told.kind {
            "playbook.completed" => (Mark::Done, "completed"),
            "playbook.failed" => (Mark::Failed, "failed"),
            _ => (Mark::Failed, "cancelled"),
        };
        let steps = if counts.is_empty() { "no step ran".to_owned() } else { format!("steps: {}", counts.join(", ")) };
        let note = match told.error() {
            Some(error) if told.kind == "playbook.failed" => format!("{error}  ({steps})"),
            _ => steps,
        };
        changes.push(Change::Line(Line { took: told.since(self.began_ms), ..self.line(mark, word).note(note) }));
        changes
    }
}

impl Running {
    /// Whatever a person would ask about a step that is fine.
    fn note(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.progress.as_ref().map(Progress::text));
        if self.attempt > 1 {
            parts.push(format!("attempt {}", self.attempt));
        }
        if self.calls > self.tools.max(1) {
            parts.push(format!("{} calls", self.calls));
        }
        parts.join(", ")
    }

    fn failure(&self, error: Option<String>) -> String {
        let error = error.or_else(|| self.error.clone()).unwrap_or_else(|| "failed".to_owned());
        match self.note() {
            note if note.is_empty() => error,
            note => format!("{error}  ({note})"),
        }
    }
}

impl Progress {
    fn text(&self) -> String {
        let total = self.total.map_or_else(|| "?".to_owned(), |total| total.to_string());
        match self.failed {
            0 => format!("{}/{total}", self.done),
            failed => format!("{}/{total}, {failed} failed", self.done),
        }
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
