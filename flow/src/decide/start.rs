//! How an execution begins, afresh or where another one failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::api::{Again, Happening, Start};
use super::happen::Turned;
use super::program::Program;
use super::turn::{Arrive, Execution, Job, Progress, Turn, write_line};
use super::workload::workload;
use crate::event::{Adopted, AdoptedStep, Ending, Event, Failure, Parent, Recorded, Started};
use crate::keychain::SEAL;
use crate::playbook::Failures;
use crate::state::{Phase, State, fold_lines};

/// Takes a start in. The program is missing, with the reason, when the playbook cannot be run.
pub(super) fn start(
    id: u64,
    at: u64,
    start: &Start,
    program: Result<Arc<Program>, String>,
) -> Result<(Execution, Box<Progress>), Turned> {
    let (program, problem) = match program {
        Ok(program) => (program, None),
        Err(problem) => (Arc::new(Program::none(&start.digest)), Some(problem)),
    };
    let old = start.again.as_ref().map(|again| old_state(again, &program)).transpose()?;
    let started = started(id, at, start, &program, old.as_ref())?;
    let first = Recorded { id: 1, at, cause: 0, event: Event::Started(Box::new(started)) };
    let mut now = Box::new(Progress::new(at));
    now.input = Happening::Start(Box::new(start.clone()));
    write_line(&mut now.out.events, &first);
    let state = State::begin(first).expect("the first event is `started`");
    let mut execution = Execution { id, state, program, values: BTreeMap::new(), paused: None };
    let mut turn = Turn { execution: &mut execution, now };
    match (problem, &start.again, old) {
        (Some(message), ..) => {
            let error = Failure { code: "invalid_playbook".to_owned(), message, retryable: false };
            turn.finish(Ending::Failed, Some(error));
        }
        (None, Some(again), Some(old)) => turn.adopt(again, &old),
        (None, ..) => {
            let entry = turn.program().place(&turn.program().playbook.entry);
            let arrive = entry.map(|to| Job::Arrive(Arrive { to, from: None, cause: 1 }));
            turn.now.agenda.extend(arrive);
        }
    }
    let now = turn.now;
    Ok((execution, now))
}

fn started(id: u64, at: u64, start: &Start, program: &Program, old: Option<&State>) -> Result<Started, Turned> {
    let refused = |problem: String| Turned::Refused(problem);
    let given: Map<String, Json> = serde_json::from_str(&start.payload)
        .map_err(|error| refused(format!("the payload must be one JSON object: {error}")))?;
    // Whoever runs an execution again may change parts of what it was given.
    let mut payload = old.and_then(|old| old.workload.json().as_object().cloned()).unwrap_or_default();
    payload.extend(given);
    let parent = match &start.parent {
        None => None,
        Some(parent) => Some(Parent {
            execution: parent.execution.to_string(),
            command: parent.command.parse().map_err(|error| refused(format!("{error}")))?,
        }),
    };
    let env: Map<String, Json> = start
        .environment
        .iter()
        .filter(|(name, _)| name != SEAL && program.environment.as_ref().is_none_or(|used| used.contains(name)))
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let seal = start.environment.iter().find(|(name, _)| name == SEAL).map(|(_, seal)| seal.clone());
    let id = id.to_string();
    let known = json!({
        "execution_id": id, "job": { "uuid": id, "execution_id": id }, "env": env, "input": payload, "payload": payload,
        "path": start.path, "version": start.version,
        "parent_execution_id": parent.as_ref().map(|parent| &parent.execution),
    });
    let known = known.as_object().expect("it is written as one");
    Ok(Started {
        tenant: start.tenant.clone(),
        path: start.path.clone(),
        version: start.version,
        digest: start.digest.clone(),
        workload: workload(at, program, &payload, known, seal.as_deref()),
        parent,
        root: start.root.to_string(),
        pool: start.pool.clone(),
        env,
        seal,
        lenient: match program.playbook.executor.failures {
            Some(failures) => failures == Failures::Lenient,
            None => start.lenient,
        },
        trace: start.trace.clone(),
        requested_by: start.requested_by.clone(),
        returns: start.returns.clone(),
    })
}

/// The state of the execution that is gone on from, if it can be.
fn old_state(again: &Again, program: &Program) -> Result<State, Turned> {
    let refused = |problem: String| Turned::Refused(format!("execution {} {problem}", again.execution));
    let mut state = None;
    for segment in &again.segments {
        fold_lines(&mut state, segment).map_err(|error| refused(format!("cannot be followed: {error}")))?;
    }
    let state = state.ok_or_else(|| refused("has no events".to_owned()))?;
    let Some(finished) = &state.finished else { return Err(refused("has not ended; cancel it first".to_owned())) };
    match &again.step {
        Some(step) if program.place(step).is_none() => {
            Err(refused(format!("cannot go on from `{step}`: no such step")))
        }
        None if steps_to_run(&state, program).is_empty() && steps_to_follow(&state, program).is_empty() => {
            let status = finished.status.name();
            Err(refused(format!("has no step to be run again ({status}); name the step to go on from")))
        }
        _ => Ok(state),
    }
}

/// Steps that failed with nothing to handle it, that had not ended, or that could not be entered.
fn steps_to_run<'a>(old: &'a State, program: &Program) -> Vec<&'a str> {
    let stopped = old.failing.iter().map(|failing| &failing.step).filter(|name| old.phase(name) != Phase::Done);
    let failed = old.failed_steps.iter().filter(|name| is_unrouted(old, name) && old.phase(name) == Phase::Failed);
    let mut names: Vec<&str> = Vec::new();
    for name in stopped.chain(failed).chain(&old.live) {
        if program.place(name).is_some() && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Steps that ended well and whose arcs were never followed to an end.
fn steps_to_follow<'a>(old: &'a State, program: &Program) -> Vec<&'a str> {
    let ended = old.steps.iter().filter(|(_, step)| step.phase == Phase::Done).map(|(name, _)| name.as_str());
    ended.filter(|name| is_unrouted(old, name) && program.place(name).is_some()).collect()
}

fn is_unrouted(old: &State, name: &str) -> bool {
    let stopped = old.failing.as_ref().is_some_and(|failing| failing.step == name);
    stopped || old.step(name).is_some_and(|step| step.unrouted)
}

impl Turn<'_> {
    /// Takes over what the old execution has done, and goes on from what it has not.
    fn adopt(&mut self, again: &Again, old: &State) {
        let program = self.program();
        let to_run: Vec<String> = match &again.step {
            Some(step) => vec![step.clone()],
            None => steps_to_run(old, &program).into_iter().map(str::to_owned).collect(),
        };
        let adopted = Adopted {
            execution: again.execution.to_string(),
            step: to_run.first().cloned().unwrap_or_default(),
            steps: finished_steps(old, &to_run),
            context: old.variables.iter().map(|(name, value)| (name.clone(), value.json().clone())).collect(),
        };
        let cause = self.record(1, Event::Adopted(Box::new(adopted)));
        let follow = steps_to_follow(old, &program).into_iter().filter(|name| to_run.iter().all(|run| run != name));
        self.now.agenda.extend(follow.filter_map(|name| program.place(name)).map(Job::Route));
        let waiting = old.steps.iter().filter_map(|(name, step)| {
            let arrival = step.waiting.as_ref()?;
            let from = program.place(&arrival.from)?;
            Some(Arrive { to: program.place(name)?, from: Some((from, arrival.arc)), cause })
        });
        let run = to_run.iter().filter_map(|name| Some(Arrive { to: program.place(name)?, from: None, cause }));
        self.now.agenda.extend(run.chain(waiting).map(Job::Arrive));
    }
}

/// What is taken over, in the order it ended.
fn finished_steps(old: &State, to_run: &[String]) -> Vec<AdoptedStep> {
    let mut ended: Vec<_> =
        old.steps.iter().filter(|(name, step)| step.phase.is_ended() && !to_run.contains(name)).collect();
    ended.sort_by_key(|(_, step)| step.ended);
    ended
        .into_iter()
        .map(|(name, step)| AdoptedStep {
            step: name.clone(),
            run: step.run,
            data: step.result.as_ref().filter(|_| step.phase != Phase::Skipped).map(|result| result.data.clone()),
        })
        .collect()
}
