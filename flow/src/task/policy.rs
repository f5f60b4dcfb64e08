//! What a tool's rules make of its outcome.

use indexmap::IndexMap;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::held::{Held, Names, Settable};
use super::memory::Memory;
use super::outcome::Outcome;
use super::plan::{Assignment, Plan, Planned, PlannedRule};
use super::scope::Scope;
use super::{Action, Backoff};
use crate::event::Failure;
use crate::playbook::duration;
use crate::template::{Cause, Context, RenderError};

/// Labels that mean the tool before this one.
const PREVIOUS: [&str; 4] = ["previous", "prev", "_previous", "@previous"];

/// Where a task goes on.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// With the next tool.
    Next,
    /// With the tool at this place.
    Jump(u32),
    /// With the same tool, after so many milliseconds.
    Again(u64),
    /// It ends, with success.
    Break,
    Fail(Failure),
}

/// The first rule whose guard holds. A guard that cannot be rendered does not hold.
pub(super) fn matching<'p>(tool: &'p Planned, context: &Context) -> Option<&'p PlannedRule> {
    tool.rules.iter().find(|rule| rule.when.as_ref().is_none_or(|when| when.holds(context).unwrap_or(false)))
}

impl PlannedRule {
    /// What it says to do, with the delay that its template gives.
    pub(super) fn decided(&self, context: &Context) -> Result<Option<Action>, RenderError> {
        let mut action = self.action.clone();
        if let (Some(Action::Retry { delay_ms, .. }), Some(delay)) = (&mut action, &self.delay) {
            match delay.render_json(context)? {
                Json::Null => {}
                Json::String(text) if text.trim().is_empty() => {}
                given => {
                    let wrong =
                        || Cause::Failed(format!("it gives `{given}`, and a delay is seconds, or text such as `2s`"));
                    let read = duration::milliseconds(&given);
                    *delay_ms = read.ok_or_else(|| RenderError::new("delay", None, wrong()))?;
                }
            }
        }
        Ok(action)
    }
}

/// The values of assignments, all of them as of now.
pub(super) fn render(assignments: &[Assignment], context: &Context) -> Result<Vec<Held>, RenderError> {
    let rendered = assignments.iter().map(|assignment| match assignment.value.render_lone(context)? {
        Some((value, written)) => Ok(Held::rendered(value, written)),
        None => assignment.value.render(context).map(Held::from),
    });
    rendered.collect()
}

/// Writes rendered values into the names of the run, and those that outlive it into the report.
pub(super) fn write(assignments: &[Assignment], values: Vec<Held>, scope: &Scope<'_>) -> Written {
    let (mut running, mut set) = (scope.memory.running.clone(), scope.memory.set.clone());
    for (assignment, value) in assignments.iter().zip(values) {
        let Some((root, fields)) = assignment.path.split_first() else { continue };
        if let Some(name) = &assignment.reported {
            set.insert(name.clone(), value.clone());
        }
        let target = running.entry(root.clone()).or_insert_with(|| {
            if fields.is_empty() { Settable::Whole(value.clone()) } else { scope.base(root).into() }
        });
        target.assign(fields, value);
    }
    Written { running, set }
}

/// What is set after an assignment.
pub(super) struct Written {
    pub running: IndexMap<String, Settable>,
    pub set: Names,
}

/// What the action of a rule comes to; without one, what is usual.
pub(super) fn verdict(
    plan: &Plan,
    memory: &mut Memory,
    action: Option<&Action>,
    outcome: &Outcome,
    (execution, command): (u64, &str),
) -> Verdict {
    let tool = &plan.tools[memory.at as usize];
    match action {
        None => match &outcome.failure {
            Some(failure) => Verdict::Fail(failure.clone()),
            None => Verdict::Next,
        },
        Some(Action::Continue) => Verdict::Next,
        Some(Action::Break) => Verdict::Break,
        Some(Action::Fail) => Verdict::Fail(failure_of(outcome, || {
            ("failed_by_rule", format!("a rule of `{}` says that the step fails", tool.label))
        })),
        Some(Action::Jump { to }) => match target(plan, memory.at, to) {
            Some(place) => Verdict::Jump(place),
            None => Verdict::Fail(Failure {
                code: "unknown_task".to_owned(),
                message: format!("a rule of `{}` jumps to `{to}`, which is no tool of the step", tool.label),
                retryable: false,
            }),
        },
        Some(Action::Retry { attempts, backoff, delay_ms, max_delay_ms, jitter, .. }) => {
            let retries = &mut memory.counts().1;
            *retries = retries.saturating_add(1);
            let done = *retries;
            // A template gives the same again.
            let is_template = outcome.failure.as_ref().is_some_and(|failure| failure.code == "template");
            if done >= (*attempts).max(1) || is_template {
                return Verdict::Fail(failure_of(outcome, || {
                    ("retries_exhausted", format!("a rule of `{}` wants another try after {done}", tool.label))
                }));
            }
            let wait = delay(*backoff, *delay_ms, *max_delay_ms, done);
            let wait = spread(wait, *jitter, &format!("{execution}/{command}/{}/{done}", tool.label));
            Verdict::Again(wait.max(asked(outcome).min(*max_delay_ms)))
        }
    }
}

/// The milliseconds that the server of a failed answer asks to be left alone for.
fn asked(outcome: &Outcome) -> u64 {
    let seconds = outcome.error().get("retry_after").and_then(Json::as_f64).unwrap_or(0.0);
    // The cast ends at the largest number there is.
    (seconds * 1000.0).ceil() as u64
}

fn failure_of(outcome: &Outcome, other: impl FnOnce() -> (&'static str, String)) -> Failure {
    outcome.failure.clone().unwrap_or_else(|| {
        let (code, message) = other();
        Failure { code: code.to_owned(), message, retryable: false }
    })
}

fn target(plan: &Plan, at: u32, to: &str) -> Option<u32> {
    if let Some(place) = plan.tools.iter().position(|tool| tool.label == to) {
        return u32::try_from(place).ok();
    }
    PREVIOUS.contains(&to).then(|| at.checked_sub(1)).flatten()
}

/// Before the next try after so many.
fn delay(backoff: Backoff, delay_ms: u64, max_delay_ms: u64, tries: u32) -> u64 {
    let wait = match backoff {
        Backoff::None => 0,
        Backoff::Fixed => delay_ms,
        Backoff::Linear => delay_ms.saturating_mul(tries.into()),
        Backoff::Exponential => delay_ms.saturating_mul(2u64.saturating_pow(tries - 1)),
    };
    wait.min(max_delay_ms)
}

/// Takes a part of a delay away, as much of it as the hash of the seed says, so that what failed together does not come
/// back together.
fn spread(wait: u64, jitter: f64, seed: &str) -> u64 {
    if wait == 0 || jitter.is_nan() || jitter <= 0.0 {
        return wait;
    }
    let hash = Sha256::digest(seed.as_bytes());
    let word = u64::from_be_bytes(hash[..8].try_into().expect("a hash has 32 bytes"));
    // 53 bits are what a float holds exactly.
    let part = (word >> 11) as f64 / (1u64 << 53) as f64;
    wait - ((wait as f64 * jitter.min(1.0) * part) as u64).min(wait)
}
