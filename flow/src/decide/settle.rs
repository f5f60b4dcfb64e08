//! The end of a turn: is the execution at its end, and if not, when does it have to be looked at again?
//!
//! Every execution that is not at its end has something in flight, parked or due; one that has nothing is ended here,
//! whatever the reason. So there is none that nobody owes anything.

use super::api::{Answer, Ended};
use super::program::Program;
use super::turn::Turn;
use crate::event::{Ending, Event, Failure, Finished, Items, Returned};
use crate::ids::CommandId;
use crate::state::{Open, Phase, State};

impl Turn<'_> {
    pub fn settle(&mut self) {
        if self.state().finished.is_none() {
            self.end_if_nothing_is_left();
        }
        match self.state().finished {
            None => self.now.out.wake_at = wake_at(self.state(), &self.execution.program),
            Some(_) => self.now.out.ended = Some(self.ended()),
        }
        self.forget_values();
    }

    fn end_if_nothing_is_left(&mut self) {
        let state = self.state();
        if let Some(failing) = &state.failing {
            let error = failing.error.clone();
            let working = state.commands().any(|(id, _)| !self.is_child(&id));
            if !working {
                self.finish(Ending::Failed, Some(error));
            }
            return;
        }
        if !state.live.is_empty() {
            return;
        }
        match stalled(state) {
            None => self.finish(Ending::Completed, None),
            Some(error) => self.finish(Ending::Failed, Some(error)),
        }
    }

    /// Ends the execution. What is still in flight is taken back.
    pub fn finish(&mut self, status: Ending, error: Option<Failure>) {
        let open: Vec<(CommandId, Option<String>, Option<String>)> =
            self.state().commands().map(|(id, open)| (id, open.child.clone(), open.waits_for.clone())).collect();
        for (id, child, waits_for) in open {
            self.now.out.orphaned.extend(waits_for.and_then(|child| child.parse::<u64>().ok()));
            match child.and_then(|child| child.parse().ok()) {
                Some(child) => self.now.out.orphaned.push(child),
                None => self.now.out.withdrawn.push(id.to_string()),
            }
        }
        let failed_steps = self.state().failed_steps.clone();
        let finished =
            Finished { status, output: self.state().output(), error, returned: self.returned(), failed_steps };
        let cause = self.state().last;
        self.record(cause, Event::Finished(Box::new(finished)));
        self.now.agenda.clear();
    }

    /// The result of the step whoever started the execution asked for. It is as small as every result in an event.
    fn returned(&self) -> Option<Returned> {
        let state = self.state();
        let step = state.started.returns.clone()?;
        let data = state.step(&step)?.result.as_ref()?.data.clone();
        Some(Returned { step, data })
    }

    pub fn is_child(&self, id: &CommandId) -> bool {
        let program = &self.execution.program;
        program.place(&id.step).is_some_and(|place| program.child(place).is_some())
    }

    fn ended(&self) -> Ended {
        let state = self.state();
        let finished = state.finished.as_ref().expect("asked for after the end");
        let mut answer = Answer { output: finished.output.clone(), error: finished.error.clone(), ..Answer::default() };
        answer.steps.extend(finished.returned.clone().map(|Returned { step, data }| (step, data)));
        let body = serde_json::to_string(&answer).expect("an answer has text keys only");
        Ended { status: finished.status.name().to_owned(), body }
    }

    /// Payloads are kept as long as a loop goes over them.
    fn forget_values(&mut self) {
        if self.execution.values.is_empty() {
            return;
        }
        let state = &self.execution.state;
        let repeats = || state.live.iter().filter_map(|name| state.steps.get(name)?.repeat.as_deref());
        let is_used = |digest: &str| {
            repeats().any(|repeat| {
                let items = repeat.frame.as_ref().map_or(&repeat.items, |frame| &frame.items);
                matches!(items, Items::Payload(reference) if reference.sha256 == digest)
            })
        };
        self.execution.values.retain(|digest, _| is_used(digest));
    }
}

/// Why an execution in which nothing goes on has not come to an end, if that is so.
fn stalled(state: &State) -> Option<Failure> {
    if state.waiting.is_empty() {
        return None;
    }
    let waits = |name: &String| {
        let from = state.step(name).and_then(|step| step.waiting.as_ref()).map_or("?", |arrival| arrival.from.as_str());
        format!("step `{name}`, reached from `{from}`, waits for the other steps that lead to it")
    };
    let message = state.waiting.iter().map(waits).collect::<Vec<_>>().join("; ");
    Some(Failure { code: "stalled".to_owned(), message, retryable: false })
}

/// When something of the execution is due.
pub(super) fn wake_at(state: &State, program: &Program) -> Option<u64> {
    if !program.has_timers {
        return None;
    }
    let whole = program.playbook.executor.timeout_ms.map(|timeout| state.started_at.saturating_add(timeout));
    let parked = state.live.iter().filter_map(|name| state.step(name)?.parked.as_ref()?.until);
    let children = state.commands().filter_map(|(id, open)| child_due(program, &id, open));
    whole.into_iter().chain(parked).chain(children).min()
}

/// When waiting for a child ends.
pub(super) fn child_due(program: &Program, id: &CommandId, open: &Open) -> Option<u64> {
    let place = program.place(&id.step)?;
    let timeout = program.step(place).timeout_ms.or(program.child(place)?.timeout_ms)?;
    Some(open.at.saturating_add(timeout))
}

/// Parked steps whose time has come.
pub(super) fn parked_due(state: &State, now: u64) -> Vec<String> {
    let due = |name: &&String| {
        let step = state.step(name).filter(|step| step.phase == Phase::Parked);
        step.and_then(|step| step.parked.as_ref()?.until).is_some_and(|until| until <= now)
    };
    state.live.iter().filter(due).cloned().collect()
}
