//! What each input does to an execution, before anything follows from it.
//!
//! An input that changes nothing says why: it was there before, or it comes too late. Nothing has been recorded then.

use serde_json::{Map, Value as Json, json};

use super::api::{Answer, Cancel, ChildEnded, ChildStarted, Happening, ReportInput, Resume};
use super::command::{command, failed, path_of_child};
use super::graph::Place;
use super::program::ChildAnswer;
use super::settle::{child_due, parked_due};
use super::turn::{Job, Turn};
use super::variables::{assign, too_large};
use crate::event::{Data, Ending, Event, Failure, INLINE_BYTES, Reference, Reported};
use crate::extract::size;
use crate::ids::CommandId;
use crate::playbook::Work;
use crate::state::{Open, Phase};
use crate::task::Report;

/// How often a command is given to another worker after its worker was lost, the first time included. Worker and
/// server are lost for reasons of their own, so it is many; but what takes its worker with it each time must end.
const TRIES: u32 = 1_000;

/// The most of an error's message that is kept.
const MESSAGE_BYTES: usize = 2_000;

/// Why an input is not followed.
#[derive(Debug)]
pub(super) enum Turned {
    Ignored(String),
    Refused(String),
}

type Taken = Result<(), Turned>;

fn ignored(reason: impl Into<String>) -> Turned {
    Turned::Ignored(reason.into())
}

impl Turn<'_> {
    /// Records what the input stands for and puts what follows on the agenda.
    pub fn happen(&mut self, what: &Happening) -> Taken {
        if let Some(finished) = &self.state().finished {
            return Err(ignored(format!("the execution has ended: {}", finished.status.name())));
        }
        match what {
            Happening::Start(_) => Err(ignored("the execution was started before")),
            Happening::Report(report) => self.on_report(report),
            Happening::ChildStarted(started) => self.on_child_started(started),
            Happening::ChildEnded(ended) => self.on_child_ended(ended),
            Happening::Wake => {
                self.on_wake();
                Ok(())
            }
            Happening::Lost(command, safe) => self.on_lost(command, *safe),
            Happening::Resume(resume) => self.on_resume(resume),
            Happening::Cancel(cancel) => {
                self.on_cancel(cancel);
                Ok(())
            }
            Happening::Abort(reason) => {
                let error = Failure { code: "engine".to_owned(), message: reason.clone(), retryable: false };
                self.finish(Ending::Failed, Some(error));
                Ok(())
            }
        }
    }

    /// A command that is in flight, with its step.
    fn in_flight_command(&self, text: &str) -> Result<(CommandId, Place, &Open), Turned> {
        let id: CommandId = text.parse().map_err(|error| Turned::Refused(format!("{error}")))?;
        let place = self.execution.program.place(&id.step);
        match (place, self.state().open(&id)) {
            (Some(place), Some(open)) => Ok((id, place, open)),
            _ => Err(ignored(format!("command `{text}` is not in flight: it was reported before, or never issued"))),
        }
    }

    fn on_report(&mut self, input: &ReportInput) -> Taken {
        let (id, place, open) = self.in_flight_command(&input.command)?;
        let cause = open.event;
        let reported = match serde_json::from_slice::<Report>(&input.body) {
            Ok(report) => self.accept(id, place, report, input.stored.as_ref()),
            Err(error) => failed(id, "invalid_report", format!("the runner's report cannot be read: {error}")),
        };
        self.report(cause, place, reported);
        Ok(())
    }

    fn accept(&mut self, command: CommandId, place: Place, report: Report, stored: Option<&(String, u64)>) -> Reported {
        let Report { mut data, mut error, hard, set: written, plugin, digest, calls, took } = report;
        if let Some((sha256, size)) = stored {
            data.reference = Some(Reference { sha256: sha256.clone(), size: *size });
        }
        let data = self.kept(place, data);
        let mut set = Map::new();
        for (key, value) in written.into_iter().filter(|(key, _)| !key.starts_with("iter.")) {
            assign(&mut set, &key, value, |name| self.variable(name));
        }
        if let Some(message) = too_large(&set) {
            set.clear();
            error.get_or_insert(Failure { code: "too_large".to_owned(), message, retryable: false });
        }
        if let Some(error) = &mut error {
            error.message = shortened(std::mem::take(&mut error.message));
        }
        Reported { command, data, error, hard, set, plugin, digest, calls, took, execution: None }
    }

    /// A result as its step wants it kept.
    fn kept(&mut self, place: Place, mut data: Data) -> Data {
        let program = self.program();
        let Work::Task(spec) = &program.step(place).work else { return self.inline(data, &[]) };
        let referable = matches!(data.value, Json::Object(_) | Json::Array(_)) && data.chunks.is_empty();
        if spec.keep && referable && data.reference.is_none() && size(&data.value, INLINE_BYTES).is_some() {
            data.reference = Some(self.keep(data.value.clone()));
        }
        self.inline(data, &spec.output_select)
    }

    /// Records what a command came to, and has its step go on.
    pub fn report(&mut self, cause: u64, place: Place, reported: Reported) {
        let is_claim = self.execution.program.prepared(place).claim.is_some();
        let rows = match reported.command.iteration {
            None if is_claim && reported.error.is_none() => Some(Box::new(reported.data.clone())),
            _ => None,
        };
        let is_iteration = reported.command.iteration.is_some();
        if reported.error.is_some() {
            // Nobody waits any more for the playbook that a tool of it started, whether the time ran out or the worker was
            // lost. One that has ended takes no cancelling.
            let open = self.state().open(&reported.command);
            let child = open.and_then(|open| open.waits_for.as_ref()?.parse::<u64>().ok());
            self.now.out.orphaned.extend(child);
        }
        let id = self.record(cause, Event::Reported(Box::new(reported)));
        self.at_once(match rows {
            Some(rows) => Job::Take(place, id, rows),
            None if is_iteration => Job::Pump(place),
            None => Job::Route(place),
        });
    }

    fn on_child_started(&mut self, input: &ChildStarted) -> Taken {
        let (id, place, open) = self.in_flight_command(&input.command)?;
        if let Some((label, path)) = &input.by {
            let (cause, execution) = (open.event, input.execution.to_string());
            let (path, label) = (path.clone(), Some(label.clone()));
            self.record(cause, Event::ChildStarted { command: id, execution, path, label });
            return Ok(());
        }
        let program = self.program();
        let Some(call) = program.child(place) else {
            return Err(Turned::Refused(format!("command `{id}` is not for a playbook")));
        };
        if let Some(child) = &open.child {
            return Err(ignored(format!("execution {child} was started for command `{id}` before")));
        }
        let path = path_of_child(&self.scope(), place, call, &id, open);
        let (cause, execution) = (open.event, input.execution.to_string());
        let (command, label) = (id.clone(), None);
        let event = Event::ChildStarted { command, execution: execution.clone(), path: path.clone(), label };
        let cause = self.record(cause, event);
        if call.answer == ChildAnswer::Started {
            let value = json!({ "status": "started", "execution_id": execution, "path": path, "async": true });
            let reported = child_report(id, Data { value, ..Data::default() }, None, Some(execution));
            self.report(cause, place, reported);
        }
        Ok(())
    }

    fn on_child_ended(&mut self, input: &ChildEnded) -> Taken {
        let (id, place, open) = self.in_flight_command(&input.command)?;
        let program = self.program();
        let Some(call) = program.child(place) else {
            return Err(Turned::Refused(format!("command `{id}` is not for a playbook")));
        };
        // A playbook that could not be started has no execution.
        let execution = (input.execution != 0).then(|| input.execution.to_string());
        if open.child.is_some() && open.child != execution {
            let execution = input.execution;
            return Err(ignored(format!("execution {execution} is not the one that was started for command `{id}`")));
        }
        let cause = open.event;
        let answer: Answer = serde_json::from_str(&input.body).unwrap_or_default();
        let error = (input.status != "completed").then(|| child_failure(input, answer.error.as_ref()));
        let data = child_data(&call.answer, answer, execution.as_deref(), &input.status);
        let data = self.kept(place, data);
        // Who asks for a step of it takes a child that failed for an answer; who asks for its result has none.
        let hard = error.is_some() && (execution.is_none() || !matches!(call.answer, ChildAnswer::Step(_)));
        self.report(cause, place, Reported { hard, ..child_report(id, data, error, execution) });
        Ok(())
    }

    fn on_lost(&mut self, text: &str, safe: bool) -> Taken {
        let (id, place, open) = self.in_flight_command(text)?;
        let (cause, losses) = (open.event, open.losses);
        if !safe {
            let message = "the worker was lost, and it is not known what it did".to_owned();
            self.report(cause, place, failed(id, "outcome_unknown", message));
            return Ok(());
        }
        if losses + 1 >= TRIES || self.state().failing.is_some() {
            let message = format!("the worker was lost, {} times", losses + 1);
            self.report(cause, place, failed(id, "lost", message));
            return Ok(());
        }
        let Some(task) = self.program().task_of(place, id.iteration).map(|task| task.kinds.clone()) else {
            return Err(Turned::Refused(format!("command `{id}` is for a playbook, which has no worker")));
        };
        let cause = self.record(cause, Event::Lost { command: id.clone() });
        let again = CommandId { attempt: id.attempt + 1, ..id };
        self.record(cause, Event::Issued { command: again.clone(), tools: task, item: None });
        let command = command(&self.scope(), place, &again);
        self.now.out.commands.extend(command);
        Ok(())
    }

    fn on_resume(&mut self, resume: &Resume) -> Taken {
        let parked = self.state().step(&resume.step).filter(|step| step.phase == Phase::Parked);
        let (Some(step), Some(place)) = (parked, self.execution.program.place(&resume.step)) else {
            let parked = self.state().live.iter().filter(|name| self.state().phase(name) == Phase::Parked);
            let names: Vec<String> = parked.map(|name| format!("`{name}`")).collect();
            let which = if names.is_empty() { "no step is".to_owned() } else { names.join(", ") + " can be resumed" };
            return Err(Turned::Refused(format!("step `{}` is not parked; {which}", resume.step)));
        };
        let (run, cause) = (step.run, step.entered);
        let value: Json = serde_json::from_str(&resume.value)
            .map_err(|error| Turned::Refused(format!("the value to resume with is not JSON: {error}")))?;
        let data = self.inline(Data { value, ..Data::default() }, &[]);
        let (step, requested_by) = (resume.step.clone(), resume.requested_by.clone());
        self.record(cause, Event::Resumed { step, run, data, requested_by });
        self.at_once(Job::Route(place));
        Ok(())
    }

    fn on_cancel(&mut self, cancel: &Cancel) {
        let Cancel { reason, requested_by } = cancel.clone();
        let cause = self.state().last;
        self.record(cause, Event::CancelRequested { reason: reason.clone(), requested_by });
        let error = Failure { code: "cancelled".to_owned(), message: reason, retryable: false };
        self.finish(Ending::Cancelled, Some(error));
    }

    /// Does what is due. Being woken early does no harm.
    fn on_wake(&mut self) {
        let program = self.program();
        let now = self.now.at;
        let timeout = program.playbook.executor.timeout_ms;
        if timeout.is_some_and(|timeout| self.state().started_at.saturating_add(timeout) <= now) {
            let message = format!("the execution took longer than {} ms", timeout.unwrap_or_default());
            let error = Failure { code: "timeout".to_owned(), message, retryable: false };
            return self.finish(Ending::Failed, Some(error));
        }
        for name in parked_due(self.state(), now) {
            let (Some(step), Some(place)) = (self.state().step(&name), program.place(&name)) else { continue };
            let (cause, run) = (step.entered, step.run);
            let id = CommandId { step: name, run, iteration: None, attempt: 1 };
            self.report(cause, place, failed(id, "timeout", "nobody resumed the step in time".to_owned()));
        }
        let is_due = |id: &CommandId, open: &Open| child_due(&program, id, open).is_some_and(|due| due <= now);
        let late = self.state().commands().filter(|(id, open)| is_due(id, open));
        let late: Vec<_> = late.map(|(id, open)| (id, open.event, open.child.clone())).collect();
        for (id, cause, child) in late {
            let message = match child.and_then(|child| child.parse::<u64>().ok()) {
                Some(child) => {
                    self.now.out.orphaned.push(child);
                    format!("execution {child} did not end in time, and is cancelled")
                }
                None => {
                    self.now.out.withdrawn.push(id.to_string());
                    "the playbook was not started in time".to_owned()
                }
            };
            let Some(place) = program.place(&id.step) else { continue };
            self.report(cause, place, failed(id, "timeout", message));
        }
    }
}

/// A message of a length that can be read, and kept many times.
fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
        message.push('…');
    }
    message
}

fn child_report(command: CommandId, data: Data, error: Option<Failure>, execution: Option<String>) -> Reported {
    let (set, plugin, digest) = (Map::new(), None, None);
    Reported { command, data, error, hard: false, set, plugin, digest, calls: 1, took: 0, execution }
}

fn child_failure(input: &ChildEnded, error: Option<&Failure>) -> Failure {
    let why = error.map_or("it gave no reason", |error| error.message.as_str());
    let code = if input.status == "cancelled" { "child_cancelled" } else { "child_failed" };
    let message = match input.execution {
        0 => why.to_owned(),
        execution => format!("execution {execution} {}: {why}", input.status),
    };
    Failure { code: code.to_owned(), message, retryable: false }
}

/// What a step that waited for a playbook has for its result: the wanted data, and how the child ended beside it.
fn child_data(wanted: &ChildAnswer, mut answer: Answer, execution: Option<&str>, status: &str) -> Data {
    let ChildAnswer::Step(step) = wanted else { return answer.output };
    // Of a step that never ended there is no result, and that of another one would only look like it.
    let Data { value, reference, chunks } = answer.steps.remove(step).unwrap_or_default();
    let mut fields = Map::new();
    fields.extend(execution.map(|execution| ("execution_id".to_owned(), execution.into())));
    fields.insert("status".to_owned(), status.into());
    match value {
        Json::Object(own) => fields.extend(own),
        Json::Null => {}
        other => {
            fields.insert("data".to_owned(), other);
        }
    }
    Data { value: fields.into(), reference, chunks }
}
