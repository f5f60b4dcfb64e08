//! What is known of an execution: the fold of its events.
//!
//! The state is a function of the events and of nothing else. A fold never renders a template and never looks into the
//! playbook, because a value that decided something is in its event; so any reader of a chain gets the same state, now
//! and with later versions of the language. What only helps to be fast (templates' forms of values) is made when it is
//! asked for, and is neither compared nor written.
//!
//! Invariants:
//! 1. Live, loaded from a checkpoint and folded from the first event, the state is the same, and so is its checksum.
//! 2. Its size is bounded by the playbook and by what is in flight: results are at most
//!    [`crate::event::INLINE_BYTES`] each, those of iterations move into payloads ([`repeat`]).
//! 3. `live` and `waiting` are exactly the steps that can make something happen, so that nobody walks over all steps.
//!
//! An event that cannot follow is an error ([`Broken`]); the state is then to be thrown away.

mod checkpoint;
mod fold;
mod held;
pub mod repeat;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use checkpoint::{FOLD_VERSION, checkpoint, checksum, restore};
pub use fold::{Broken, fold, fold_lines};
pub use held::{Held, Outcome, error_value, laid_over, shown, told_beside};
pub use repeat::{Frame, Repeat};

use crate::event::{Data, Failure, Finished, Started};
use crate::ids::CommandId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Id and time of the last event.
    pub last: u64,
    pub at: u64,
    pub started_at: u64,
    /// Without the workload, which is next.
    pub started: Started,
    pub workload: Held,
    /// What `set` wrote; the latest counts.
    pub variables: BTreeMap<String, Held>,
    /// Steps that were entered, skipped or arrived at; others are as they were at the start.
    pub steps: BTreeMap<String, Step>,
    /// Steps that run or are parked.
    pub live: BTreeSet<String>,
    /// Steps that an arc led to and that wait for others.
    pub waiting: BTreeSet<String>,
    /// Commands that were issued and not reported, children among them.
    pub in_flight: u32,
    /// The step that ended last: its result is the execution's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_ended: Option<String>,
    /// In the order they failed, once each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_steps: Vec<String>,
    /// The first failure that nothing handles: no step begins any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<Failing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Box<Finished>>,
}

impl State {
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.get(name)
    }

    pub fn phase(&self, name: &str) -> Phase {
        self.steps.get(name).map_or(Phase::Idle, |step| step.phase)
    }

    /// The command, if it was issued and is not reported.
    pub fn open(&self, id: &CommandId) -> Option<&Open> {
        let step = self.steps.get(&id.step).filter(|step| step.run == id.run)?;
        let open = match id.iteration {
            None => step.open.as_ref(),
            Some(index) => step.repeat.as_ref()?.open.get(&index),
        };
        open.filter(|open| open.attempt == id.attempt)
    }

    /// Every command that was issued and is not reported.
    pub fn commands(&self) -> impl Iterator<Item = (CommandId, &Open)> {
        self.live.iter().filter_map(|name| self.steps.get(name).map(|step| (name, step))).flat_map(|(name, step)| {
            let whole = step.open.iter().map(|open| (None, open));
            let each =
                step.repeat.iter().flat_map(|repeat| repeat.open.iter().map(|(index, open)| (Some(*index), open)));
            whole.chain(each).map(move |(iteration, open)| {
                (CommandId { step: name.clone(), run: step.run, iteration, attempt: open.attempt }, open)
            })
        })
    }

    /// What the execution would answer if it ended now.
    pub fn output(&self) -> Data {
        let last = self.last_ended.as_ref().and_then(|name| self.steps.get(name));
        last.and_then(|step| step.result.as_ref()).map(|result| result.data.clone()).unwrap_or_default()
    }
}

/// A failure that nothing handles, and the step it began with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failing {
    pub step: String,
    pub error: Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing happened to the step yet.
    #[default]
    Idle,
    Running,
    Parked,
    Done,
    Failed,
    Skipped,
}

impl Phase {
    pub fn is_live(self) -> bool {
        matches!(self, Phase::Running | Phase::Parked)
    }

    pub fn is_ended(self) -> bool {
        matches!(self, Phase::Done | Phase::Failed | Phase::Skipped)
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Step {
    pub phase: Phase,
    /// How often it was entered.
    pub run: u32,
    /// The events that began and ended the latest run.
    pub entered: u64,
    pub ended: u64,
    /// Of the run that ended last; it stays until the next one ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Outcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Arrival>,
    /// The command of a step without a loop, or a cursor's claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Open>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Box<Repeat>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Wait>,
    /// It failed because its work could not be done at all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hard: bool,
    /// It ended after the execution began to fail, so its arcs were never looked at.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unrouted: bool,
}

/// The arc that led to a step first, and the event that says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrival {
    pub from: String,
    pub arc: u32,
    pub event: u64,
}

/// A command somebody works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    pub attempt: u32,
    /// How often its worker was lost, attempts before this one included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub losses: u32,
    /// When and by which event it was issued.
    pub at: u64,
    pub event: u64,
    /// The execution that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<String>,
    /// The execution that a tool of it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Data>,
}

/// What a parked step waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
