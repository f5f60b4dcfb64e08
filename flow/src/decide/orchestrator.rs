//! The executions in memory, and the playbooks they follow.
//!
//! Everything here can be dropped at any moment: an execution that is not in memory is asked for, a playbook likewise.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::api::{Decision, Happening, Input, LoadError, Need, Outcome, Owed, Usage};
use super::command::{child, command, coordinate};
use super::happen::Turned;
use super::program::Program;
use super::scope::Scope;
use super::settle::wake_at;
use super::start::start;
use super::turn::{Execution, Missing, Progress, Turn};
use crate::cache::Cache;
use crate::playbook::parse;
use crate::state::{State, fold_lines, restore};

/// Playbooks that are kept. One that is in use stays with its executions.
const PLAYBOOKS: usize = 256;

/// A playbook made ready, or what is wrong with it.
type Learned = Result<Arc<Program>, Arc<str>>;

#[derive(Debug)]
pub struct Orchestrator {
    executions: BTreeMap<u64, Execution>,
    playbooks: Cache<String, Learned>,
    whole_contexts: u64,
}

impl Default for Orchestrator {
    fn default() -> Self {
        Self { executions: BTreeMap::new(), playbooks: Cache::new(PLAYBOOKS), whole_contexts: 0 }
    }
}

impl Orchestrator {
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides on inputs, in order. After a need, further inputs of the execution answer the same need.
    pub fn drive(&mut self, batch: Vec<Input>) -> Vec<Decision> {
        let mut blocked: BTreeMap<u64, Need> = BTreeMap::new();
        let mut decisions = Vec::with_capacity(batch.len());
        for input in batch {
            let execution = input.execution;
            let outcome = match blocked.get(&execution) {
                Some(need) => Outcome::Needs(need.clone()),
                None => self.decide(input),
            };
            if let Outcome::Needs(need) = &outcome {
                blocked.insert(execution, need.clone());
            }
            decisions.push(Decision { execution, outcome });
        }
        decisions
    }

    fn decide(&mut self, input: Input) -> Outcome {
        let Input { execution: id, time_ms, what } = input;
        if let Some(paused) = self.executions.get_mut(&id).and_then(|execution| execution.paused.take()) {
            if paused.input == what {
                return self.go_on(id, paused);
            }
            // What was half decided is given up. Only the chain knows what was before.
            self.executions.remove(&id);
        }
        match self.begin(id, time_ms, what) {
            Ok(now) => self.go_on(id, now),
            Err(outcome) => outcome,
        }
    }

    /// Takes an input in, up to what follows from it.
    fn begin(&mut self, id: u64, time_ms: u64, what: Happening) -> Result<Box<Progress>, Outcome> {
        let Some(execution) = self.executions.get_mut(&id) else {
            let Happening::Start(begin) = what else { return Err(Outcome::Needs(Need::State)) };
            let need = || Outcome::Needs(Need::Playbook(begin.digest.clone()));
            let program = self.known(&begin.digest).ok_or_else(need)?;
            let program = program.map_err(|problem| problem.to_string());
            let (execution, now) = start(id, time_ms, &begin, program).map_err(turned)?;
            self.executions.insert(id, execution);
            return Ok(now);
        };
        // Times in a chain do not go back, whatever clock they come from.
        let at = time_ms.max(execution.state.at);
        let mut turn = Turn { execution, now: Box::new(Progress::new(at)) };
        turn.happen(&what).map_err(turned)?;
        turn.now.input = what;
        Ok(turn.now)
    }

    fn go_on(&mut self, id: u64, now: Box<Progress>) -> Outcome {
        let Some(execution) = self.executions.get_mut(&id) else { return Outcome::Needs(Need::State) };
        let mut turn = Turn { execution, now };
        let result = turn.run();
        let now = turn.now;
        match result {
            Ok(()) => {
                self.whole_contexts += now.whole_contexts;
                Outcome::Decided(now.out)
            }
            Err(Missing(digest)) => {
                execution.paused = Some(now);
                Outcome::Needs(Need::Value(digest))
            }
        }
    }

    fn known(&mut self, digest: &str) -> Option<Learned> {
        self.playbooks.get_or_make(digest, || Err(())).ok()
    }

    /// Keeps a playbook by its digest. One that cannot be run is remembered too, so that its executions end with the
    /// reason.
    pub fn learn(&mut self, digest: &str, text: &str) -> Result<(), String> {
        let learned = match parse(text, false) {
            Ok(parsed) => Program::new(parsed.playbook),
            Err(problems) => Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        };
        let learned: Learned = learned.map(Arc::new).map_err(Arc::from);
        let answer = learned.as_ref().map(drop).map_err(ToString::to_string);
        // Whatever was known under the digest was made of the same text.
        let _ = self.playbooks.get_or_make(digest, || Ok::<_, ()>(learned));
        answer
    }

    /// Brings an execution into memory, from a checkpoint and what came after it, or from its first event.
    pub fn load(&mut self, id: u64, checkpoint: Option<&[u8]>, segments: &[Vec<u8>]) -> Result<Owed, LoadError> {
        let broken = |problem: crate::state::Broken| LoadError::Broken(problem.to_string());
        let mut state = checkpoint.map(restore).transpose().map_err(broken)?;
        for segment in segments {
            fold_lines(&mut state, segment).map_err(broken)?;
        }
        let state = state.ok_or_else(|| LoadError::Broken("the chain has no events".to_owned()))?;
        let digest = &state.started.digest;
        let program = match self.known(digest) {
            Some(Ok(program)) => program,
            Some(Err(_)) if state.finished.is_some() => Arc::new(Program::none(digest)),
            Some(Err(problem)) => return Err(LoadError::Broken(format!("its playbook cannot be run: {problem}"))),
            None => return Err(LoadError::Playbook(digest.clone())),
        };
        let execution = Execution { id, state, program, values: BTreeMap::new(), paused: None };
        let owed = owed(&execution);
        self.executions.insert(id, execution);
        Ok(owed)
    }

    /// A payload that was needed. What is not JSON is taken for nothing.
    pub fn supply(&mut self, execution: u64, digest: &str, value: &[u8]) {
        if let Some(execution) = self.executions.get_mut(&execution) {
            let value = serde_json::from_slice(value).unwrap_or_default();
            execution.values.insert(digest.to_owned(), Arc::new(value));
        }
    }

    pub fn evict(&mut self, executions: &[u64]) {
        for id in executions {
            self.executions.remove(id);
        }
    }

    pub fn usage(&self) -> Usage {
        Usage {
            executions: self.executions.len() as u64,
            playbooks: self.playbooks.len() as u64,
            whole_contexts: self.whole_contexts,
        }
    }

    /// The state of an execution in memory.
    pub fn state(&self, execution: u64) -> Option<&State> {
        self.executions.get(&execution).map(|execution| &execution.state)
    }
}

fn turned(turned: Turned) -> Outcome {
    match turned {
        Turned::Ignored(reason) => Outcome::Ignored(reason),
        Turned::Refused(reason) => Outcome::Refused(reason),
    }
}

/// What an execution waits for.
fn owed(execution: &Execution) -> Owed {
    let Execution { id, state, program, values, .. } = execution;
    let mut owed = Owed { ended: state.finished.is_some(), ..Owed::default() };
    if owed.ended {
        return owed;
    }
    owed.wake_at = wake_at(state, program);
    let scope = Scope { execution: *id, at: state.at, state, program, values };
    for (id, open) in state.commands() {
        let Some(place) = program.place(&id.step) else { continue };
        match (&open.child, program.child(place)) {
            (Some(child), _) => owed.waiting.extend(child.parse().ok().map(|child| (id.to_string(), child))),
            (None, Some(call)) => {
                let coordinate = coordinate(&scope, place, state.step(&id.step), id.iteration, open.item.as_ref());
                let asked = coordinate.and_then(|coordinate| child(&scope, call, &id, coordinate.as_ref()));
                owed.children.extend(asked.ok());
            }
            (None, None) => owed.commands.extend(command(&scope, place, &id)),
        }
    }
    owed
}
