//! The runner: walks through the tools of one command, a turn at a time.
//!
//! A tool is prepared (its templates are rendered, [`Call`] or [`Execute`] goes out) and, when the outcome is in,
//! settled: kept under its label, `set` and the rules applied, and the next tool is prepared, the same one again after
//! a delay, or the command is done. Before either, payloads that the templates need whole are asked for. Between turns
//! everything is in the continuation, so a runner has nothing to lose but what it compiled and what it need not read again.
//!
//! Invariants:
//! 1. The next action is a function of the turn.
//! 2. No bytes make it panic: a task, continuation or news it cannot follow is a report with an error.
//! 3. A command ends: the calls of its tools are bounded by [`CALLS`], or [`CALLS_WITH_JUMPS`] if its rules jump.
//! 4. Command, label and visit name a piece of work. A retry of what failed is the same piece; coming back to a tool, or
//!    retrying what succeeded or a playbook, is another. When a command is run again from its beginning, its pieces of
//!    work have the same names as before.

use std::sync::Arc;

use super::kept::Kept;
use super::memory::{Memory, Stage};
use super::outcome::Outcome;
use super::plan::{Plan, Planned};
use super::policy::{Verdict, matching, render, verdict, write};
use super::prepare::{Caller, Prepared, prepare};
use super::report::finished;
use super::scope::{Bulk, Scope, missing, read_bulk, whole};
use super::turn::{Action, News, Next, Turn};
use super::{Inputs, PLANS};
use crate::cache::Cache;
use crate::event::Failure;
use crate::template::{Value, from_json, result_value};

/// Calls of tools in one command.
pub const CALLS: u32 = 10_000;
/// The same for a command whose rules can lead back: such loops do the work of whole steps.
pub const CALLS_WITH_JUMPS: u32 = 1_000_000;
/// Tools that may be settled within a turn without anything to do outside, which happens only when templates fail.
const IDLE: u32 = 1_000;
/// Times payloads are asked for: the results of a loop, and then the payloads they refer to.
const ROUNDS: u32 = 2;

/// Turns commands into actions. Compiled tasks are kept by the bytes of their first line.
#[derive(Debug)]
pub struct Runner {
    plans: Cache<Vec<u8>, Arc<Plan>>,
    kept: Kept,
}

impl Default for Runner {
    fn default() -> Self {
        Self { plans: Cache::new(PLANS), kept: Kept::default() }
    }
}

impl Runner {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn advance(&mut self, turn: Turn<'_>) -> Next {
        let end = turn.task.iter().position(|byte| *byte == b'\n').unwrap_or(turn.task.len());
        let (line, rest) = turn.task.split_at(end);
        let plan = match self.plans.get_or_make(line, || Plan::compile(line).map(Arc::new)) {
            Ok(plan) => plan,
            Err(message) => return finished(None, Memory::new(), None, Some(failure("invalid_task", message))),
        };
        let command = (turn.execution, turn.command);
        let memory = if turn.news == News::Begin && turn.continuation.is_empty() {
            Ok(Memory::new())
        } else {
            self.kept.take(command, turn.continuation).map_or_else(|| Memory::decode(turn.continuation), Ok)
        };
        let (memory, problem) = match memory {
            Ok(memory) => (memory, None),
            Err(message) => (Memory::new(), Some(failure("invalid_continuation", message))),
        };
        let time_ms = turn.time_ms;
        let mut run = Run { plan: &plan, line: rest, inputs: None, memory, bulk: Bulk::new(), time_ms, command };
        let next = match problem {
            Some(problem) => Err(problem),
            None => run.go(turn.news),
        };
        match next {
            Ok(next) => {
                if !matches!(next.action, Action::Done(_)) {
                    self.kept.keep(command, &next.continuation, run.memory);
                }
                next
            }
            Err(problem) => finished(Some(&plan), run.memory, None, Some(problem)),
        }
    }
}

fn failure(code: &str, message: String) -> Failure {
    Failure { code: code.to_owned(), message, retryable: false }
}

/// One turn.
struct Run<'t> {
    plan: &'t Plan,
    /// The second line of the task.
    line: &'t [u8],
    /// Read when something refers to them.
    inputs: Option<Inputs>,
    memory: Memory,
    bulk: Bulk,
    time_ms: u64,
    /// Execution and command.
    command: (u64, &'t str),
}

enum Work {
    Prepare,
    Settle(Box<Outcome>),
}

enum Step {
    Work(Work),
    Next(Box<Next>),
}

impl Run<'_> {
    fn go(&mut self, news: News) -> Result<Next, Failure> {
        let mut work = self.take(news)?;
        for _ in 0..IDLE {
            let step = match work {
                Work::Prepare => self.prepare()?,
                Work::Settle(outcome) => self.settle(outcome)?,
            };
            match step {
                Step::Next(next) => return Ok(*next),
                Step::Work(next) => work = next,
            }
        }
        Err(failure("too_many_calls", format!("{IDLE} tools were passed without one of them being called")))
    }

    /// What there is to do, now that what was waited for has come.
    fn take(&mut self, news: News) -> Result<Work, Failure> {
        if self.memory.at as usize >= self.plan.tools.len() {
            return Err(failure("invalid_continuation", format!("the task has no tool {}", self.memory.at)));
        }
        match (std::mem::take(&mut self.memory.stage), news) {
            (Stage::Fresh, News::Begin) | (Stage::Sleeping, News::Slept) => Ok(Work::Prepare),
            (Stage::Calling, News::Called(called)) => {
                self.memory.took = self.memory.took.saturating_add(called.duration_ms);
                self.memory.plugin = Some(called.plugin.clone());
                self.memory.digest = Some(called.digest.clone());
                Ok(Work::Settle(Box::new(Outcome::called(&self.tool().kind, called))))
            }
            (Stage::Executing { path, wanted }, News::Executed(executed)) => {
                Ok(Work::Settle(Box::new(Outcome::executed(&executed, &path, wanted))))
            }
            (Stage::Preparing, News::Resolved(payloads)) => {
                self.bulk = read_bulk(payloads)?;
                Ok(Work::Prepare)
            }
            (Stage::Settling(outcome), News::Resolved(payloads)) => {
                self.bulk = read_bulk(payloads)?;
                Ok(Work::Settle(outcome))
            }
            (stage, _) => {
                Err(failure("invalid_turn", format!("the news is not what was waited for: {}", name_of(&stage))))
            }
        }
    }

    fn tool(&self) -> &Planned {
        &self.plan.tools[self.memory.at as usize]
    }

    fn scope(&mut self) -> Result<Scope<'_>, Failure> {
        if self.inputs.is_none() {
            let inputs = match self.line.trim_ascii() {
                [] => Inputs::default(),
                line => serde_json::from_slice(line).map_err(|error| {
                    failure("invalid_task", format!("the inputs of the task cannot be read: {error}"))
                })?,
            };
            self.inputs = Some(inputs);
        }
        let inputs = self.inputs.as_ref().expect("it was just read");
        let keychain = self.plan.keychain.as_ref();
        Ok(Scope { inputs, memory: &self.memory, bulk: &self.bulk, keychain, time_ms: self.time_ms })
    }

    fn prepare(&mut self) -> Result<Step, Failure> {
        let plan = self.plan;
        let tool = &plan.tools[self.memory.at as usize];
        let wanted = self.scope()?.missing(&tool.before, true);
        if !wanted.is_empty() {
            return self.ask(wanted, Stage::Preparing);
        }
        self.memory.rounds = 0;
        let most = if plan.jumps { CALLS_WITH_JUMPS } else { CALLS };
        if self.memory.tried >= most {
            return Err(failure("too_many_calls", format!("the step has called its tools {most} times")));
        }
        self.memory.tried += 1;
        let attempt = self.memory.counts().0.saturating_add(1);
        let visit = self.memory.visit();
        let caller = Caller { execution: self.command.0, step: &plan.step, attempt, visit };
        match prepare(tool, &self.scope()?, &caller) {
            Ok(Prepared { action, stage }) => {
                self.memory.counts().0 = attempt;
                self.memory.calls = self.memory.calls.saturating_add(1);
                self.memory.stage = stage;
                Ok(self.next(action))
            }
            Err(outcome) => Ok(Step::Work(Work::Settle(outcome))),
        }
    }

    fn settle(&mut self, mut outcome: Box<Outcome>) -> Result<Step, Failure> {
        let plan = self.plan;
        let tool = &plan.tools[self.memory.at as usize];
        let mut wanted = missing(outcome.load.iter(), &self.bulk);
        if wanted.is_empty() && !(tool.set.is_empty() && tool.rules.is_empty()) {
            wanted = self.scope()?.missing(&tool.after, false);
        }
        if !wanted.is_empty() {
            return self.ask(wanted, Stage::Settling(outcome));
        }
        self.memory.rounds = 0;
        if let Some(place) = outcome.load.take()
            && let Some(data) = whole(&place, outcome.data.json(), &self.bulk)
        {
            outcome.complete(data);
        }
        if plan.pipeline {
            self.memory.results.insert(tool.label.clone(), outcome.data.clone());
        }
        let verdict = self.judge(tool, &outcome)?;
        Ok(self.follow(verdict, *outcome))
    }

    /// Applies `set` and the rules.
    fn judge(&mut self, tool: &Planned, outcome: &Outcome) -> Result<Verdict, Failure> {
        let unclear = |error: crate::template::RenderError| failure("template", format!("`{}`: {error}", tool.label));
        if !tool.set.is_empty() && outcome.answered && !outcome.broke {
            let scope = self.scope()?;
            let context = scope.context(&tool.after, [("output", result_value(outcome.data.shown()))]);
            let values = render(&tool.set, &context).map_err(unclear)?;
            let written = write(&tool.set, values, &scope);
            (self.memory.running, self.memory.set) = (written.running, written.set);
        }
        let mut action = None;
        if !tool.rules.is_empty() {
            let attempt = self.memory.counts().1.saturating_add(1);
            let own = [("output", outcome.envelope(attempt)), ("_attempt", Value::from(attempt))];
            let error = outcome.failure.is_some().then(|| ("error", from_json(&outcome.error())));
            let own = own.into_iter().chain(error);
            let scope = self.scope()?;
            let context = scope.context(&tool.after, own);
            if let Some(rule) = matching(tool, &context) {
                let values = render(&rule.set, &context).map_err(unclear)?;
                let written = write(&rule.set, values, &scope);
                (self.memory.running, self.memory.set) = (written.running, written.set);
                action = rule.decided(&context).map_err(unclear)?;
            }
        }
        Ok(verdict(self.plan, &mut self.memory, action.as_ref(), outcome, self.command))
    }

    fn follow(&mut self, verdict: Verdict, outcome: Outcome) -> Step {
        match verdict {
            Verdict::Next | Verdict::Break => {
                // A tool that was passed may be tried as often again when a jump leads back to it.
                self.memory.counts().1 = 0;
                self.memory.at += 1;
                if verdict == Verdict::Next && (self.memory.at as usize) < self.plan.tools.len() {
                    return Step::Work(Work::Prepare);
                }
                self.done(outcome, None)
            }
            Verdict::Jump(place) => {
                self.memory.at = place;
                Step::Work(Work::Prepare)
            }
            Verdict::Again(milliseconds) => {
                self.memory.same_work = outcome.failure.is_some() && self.tool().kind != "playbook";
                if milliseconds == 0 {
                    return Step::Work(Work::Prepare);
                }
                self.memory.stage = Stage::Sleeping;
                self.next(Action::Sleep(milliseconds))
            }
            Verdict::Fail(failure) => self.done(outcome, Some(failure)),
        }
    }

    fn ask(&mut self, wanted: Vec<String>, stage: Stage) -> Result<Step, Failure> {
        if self.memory.rounds >= ROUNDS {
            let message = format!("the payload {} that a template needs did not come", wanted[0]);
            return Err(failure("reference_missing", message));
        }
        self.memory.rounds += 1;
        self.memory.stage = stage;
        Ok(self.next(Action::Resolve(wanted)))
    }

    fn next(&self, action: Action) -> Step {
        Step::Next(Box::new(Next { action, continuation: self.memory.encode() }))
    }

    fn done(&mut self, outcome: Outcome, failure: Option<Failure>) -> Step {
        Step::Next(Box::new(finished(Some(self.plan), std::mem::take(&mut self.memory), Some(outcome), failure)))
    }
}

fn name_of(stage: &Stage) -> &'static str {
    match stage {
        Stage::Fresh => "the beginning",
        Stage::Calling => "a tool",
        Stage::Executing { .. } => "a playbook",
        Stage::Sleeping => "the end of a delay",
        Stage::Preparing | Stage::Settling(_) => "payloads",
    }
}
