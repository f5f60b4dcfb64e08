//! Why an execution ended as it did, or what it waits for.
//!
//! Every event names the one it follows from. The answer walks that line back from the end (or from the last event of
//! an execution that still runs) to the start, and says at each place what a person would ask next: which step and arc,
//! which command, which plugin by its digest, who decided it, and which child to look into.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::expand::{failure, last_id, outline};
use super::segment::{Broken, Placed, Segment, follow};
use super::time::rfc3339;
use super::upcast::Upcasters;
use crate::event::{Ending, Event, Finished, Reported};
use crate::ids::CommandId;

mod waiting;

/// One object: `status`, `headline`, `chain` from the outcome back to the start, `blamed` for one that failed (the
/// report it began with), and `waiting` for one that runs.
pub fn explain(segments: &[Segment]) -> Result<Json, Broken> {
    let events = follow(segments, &Upcasters::current())?;
    let last = events.last().ok_or(Broken::Empty)?;
    let finished = match &last.recorded.event {
        Event::Finished(finished) => Some(finished),
        _ => None,
    };
    let failed = finished.is_some_and(|finished| finished.status == Ending::Failed);
    let failing = events.iter().find(|event| failed && matches!(event.recorded.event, Event::Failing { .. }));
    let chain = match failing {
        // What is in flight when an execution begins to fail may end, and the end follows from the last of that. People
        // ask for the reason, which is what made it fail.
        Some(failing) => [vec![last], causes(&events, failing)].concat(),
        None => causes(&events, last),
    };
    let waiting = if finished.is_none() { Some(waiting::of(&events)) } else { None };
    let blamed = if failed { blamed(&events, failing, &chain) } else { None };
    let headline = match (finished, &waiting) {
        (Some(finished), _) => outcome(finished, &events, blamed),
        (None, Some(waiting)) => waiting.headline(),
        (None, None) => String::new(),
    };
    let mut answer = Map::new();
    let mut put = |name: &str, value: Json| answer.insert(name.to_owned(), value);
    put("execution_id", last.segment.execution.to_string().into());
    put("tenant_id", last.segment.tenant.as_str().into());
    put("status", finished.map_or("running", |finished| finished.status.name()).into());
    put("headline", headline.into());
    put("error", finished.and_then(|finished| finished.error.as_ref()).map(failure).into());
    put("failed_steps", finished.map(|finished| finished.failed_steps.clone()).unwrap_or_default().into());
    let children = children(&events);
    put("blamed", blamed.map(|event| link(event, &children)).into());
    put("chain", chain.iter().map(|event| link(event, &children)).collect());
    if let Some(waiting) = waiting {
        put("waiting", waiting.into_json());
    }
    Ok(answer.into())
}

/// From this event back to the first. A cause is always an earlier event, so the walk ends.
fn causes<'a>(events: &'a [Placed<'a>], from: &'a Placed<'a>) -> Vec<&'a Placed<'a>> {
    let mut chain = vec![from];
    let mut at = from;
    while at.recorded.cause > 0 && at.recorded.cause < at.recorded.id {
        let index = usize::try_from(at.recorded.cause - 1).ok();
        let Some(cause) = index.and_then(|index| events.get(index)) else { break };
        chain.push(cause);
        at = cause;
    }
    chain
}

fn outcome(finished: &Finished, events: &[Placed], blamed: Option<&Placed>) -> String {
    let failed = finished.failed_steps.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ");
    match finished.status {
        Ending::Completed if failed.is_empty() => "completed, and every step that ran succeeded".to_owned(),
        Ending::Completed => format!("completed, although {failed} failed"),
        Ending::Cancelled => {
            let asked = events.iter().rev().find_map(|event| match &event.recorded.event {
                Event::CancelRequested { reason, requested_by } => Some((reason, requested_by)),
                _ => None,
            });
            match asked {
                Some((reason, by)) if reason.is_empty() => format!("cancelled by {by}"),
                Some((reason, by)) => format!("cancelled by {by}: {reason}"),
                None => "cancelled".to_owned(),
            }
        }
        Ending::Failed => match (blamed.map(|event| &event.recorded.event), &finished.error) {
            (Some(Event::Reported(reported)), _) => failed_because(reported),
            (_, Some(error)) => format!("failed: {}: {}", error.code, error.message),
            (_, None) => format!("failed, because {failed} failed"),
        },
    }
}

/// The report that the failure began with: that of the step that made the execution fail, in its latest run, or else
/// the one nearest to the outcome. A loop ends with its last iteration, so the one that failed need not be in the
/// chain.
fn blamed<'a>(events: &'a [Placed<'a>], failing: Option<&Placed>, chain: &[&'a Placed<'a>]) -> Option<&'a Placed<'a>> {
    let failed = |event: &Placed| match &event.recorded.event {
        Event::Reported(reported) if reported.error.is_some() => Some(reported.command.step.clone()),
        _ => None,
    };
    let Some(Event::Failing { step, .. }) = failing.map(|event| &event.recorded.event) else {
        return chain.iter().copied().find(|event| failed(event).is_some());
    };
    let entered = |event: &Placed| matches!(&event.recorded.event, Event::Entered { step: of, .. } if of == step);
    let begin = events.iter().rposition(entered).unwrap_or(0);
    events[begin..].iter().find(|event| failed(event).as_ref() == Some(step))
}

fn failed_because(reported: &Reported) -> String {
    let CommandId { step, run, iteration, attempt } = &reported.command;
    let mut text = format!("failed because step `{step}` failed");
    if let Some(iteration) = iteration {
        text.push_str(&format!(" in iteration {iteration}"));
    }
    if *run > 1 {
        text.push_str(&format!(" of run {run}"));
    }
    if *attempt > 1 {
        text.push_str(&format!(" at attempt {attempt}"));
    }
    if let Some(plugin) = &reported.plugin {
        text.push_str(&format!(" in {plugin}"));
    }
    if let Some(error) = &reported.error {
        text.push_str(&format!(": {}: {}", error.code, error.message));
    }
    if let Some(child) = &reported.execution {
        text.push_str(&format!(" (execution {child} says why)"));
    }
    text
}

/// The child that was started last for each command, by itself or by a tool of its pipeline.
fn children<'a>(events: &'a [Placed<'a>]) -> BTreeMap<&'a CommandId, &'a str> {
    let started = events.iter().filter_map(|event| match &event.recorded.event {
        Event::ChildStarted { command, execution, .. } => Some((command, execution.as_str())),
        _ => None,
    });
    started.collect()
}

/// An event of the chain, for people.
fn link(event: &Placed, children: &BTreeMap<&CommandId, &str>) -> Json {
    let Placed { segment, recorded, .. } = event;
    let mut about = About::default();
    about.event(&recorded.event);
    if let (Some(report), None) = (about.report, about.child) {
        about.child = children.get(&report.command).copied();
    }
    // A report is told as the end of its command, and not as what that means to the step.
    let shown = outline(event);
    let end = shown.iter().find(|(_, kind)| matches!(*kind, "command.completed" | "command.failed"));
    let (id, kind) = end.or(shown.last()).copied().unwrap_or((last_id(recorded.id), "event.unknown"));
    json!({
        "event_id": id.to_string(),
        "at": rfc3339(recorded.at),
        "event_type": kind,
        "step": about.step,
        "run": about.run,
        "iteration": about.command.and_then(|command| command.iteration),
        "arc": about.arc,
        "command": about.command.map(|command| command.to_string()),
        "plugin": about.report.and_then(|report| report.plugin.as_deref()),
        "digest": about.report.and_then(|report| report.digest.as_deref()),
        "child_execution_id": about.child,
        "decided_by": segment.decided_by,
        "error": about.error,
    })
}

#[derive(Default)]
struct About<'a> {
    step: Option<&'a str>,
    run: Option<u32>,
    arc: Option<Json>,
    command: Option<&'a CommandId>,
    report: Option<&'a Reported>,
    child: Option<&'a str>,
    error: Option<Json>,
}

impl<'a> About<'a> {
    fn event(&mut self, event: &'a Event) {
        match event {
            Event::Entered { step, run, from, arc } => {
                self.run(step, *run);
                self.arc = from.as_ref().map(|from| json!({"from": from, "index": arc}));
            }
            Event::LoopOpened { step, run, .. }
            | Event::Claimed { step, run, .. }
            | Event::LoopSpilled { step, run, .. }
            | Event::LoopClosed { step, run, .. }
            | Event::Parked { step, run, .. }
            | Event::Resumed { step, run, .. } => self.run(step, *run),
            Event::Set { step, .. } => self.step = Some(step),
            Event::Skipped { step, from } => {
                self.step = Some(step);
                self.arc = from.as_ref().map(|from| json!({"from": from, "index": null}));
            }
            Event::Issued { command, .. } | Event::Lost { command } => self.command(command),
            Event::ChildStarted { command, execution, .. } => {
                self.command(command);
                self.child = Some(execution);
            }
            Event::Reported(reported) => {
                self.command(&reported.command);
                self.report = Some(reported);
                self.child = reported.execution.as_deref();
                self.error = reported.error.as_ref().map(failure);
            }
            Event::Adopted(adopted) => self.step = Some(&adopted.step),
            Event::Finished(finished) => self.error = finished.error.as_ref().map(failure),
            Event::Arrived { step, from, arc } => {
                self.step = Some(step);
                self.arc = Some(json!({"from": from, "index": arc}));
            }
            Event::Failing { step, error } => {
                self.step = Some(step);
                self.error = Some(failure(error));
            }
            Event::Started(_) | Event::CancelRequested { .. } => {}
        }
    }

    fn run(&mut self, step: &'a str, run: u32) {
        (self.step, self.run) = (Some(step), Some(run));
    }

    fn command(&mut self, command: &'a CommandId) {
        self.run(&command.step, command.run);
        self.command = Some(command);
    }
}

#[cfg(test)]
mod tests;
