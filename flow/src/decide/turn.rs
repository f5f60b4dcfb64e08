//! One input, decided to its end.
//!
//! A turn records the event the input stands for and then does what follows from it, one job after the other, until
//! nothing follows any more. Every change goes through [`Turn::record`], which writes the event and folds it: the state
//! has no other way to change.
//!
//! A job renders whatever it has to render before it records anything. So when a payload is missing the job is put
//! back, the turn is kept as it is, and goes on from there when the same input is given again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::api::{Decided, Happening};
use super::graph::{Place, Standing};
use super::program::Program;
use super::scope::{Scope, Stop};
use crate::event::{Data, Event, Failure, INLINE_BYTES, Recorded, Reference};
use crate::extract::{extract, size};
use crate::state::{Phase, State, fold};

/// An execution in memory.
#[derive(Debug)]
pub(super) struct Execution {
    pub id: u64,
    pub state: State,
    pub program: Arc<Program>,
    /// Payloads at hand: supplied ones until they were used, collections as long as their loop is open.
    pub values: BTreeMap<String, Arc<Json>>,
    /// A turn that waits for a payload.
    pub paused: Option<Box<Progress>>,
}

/// How far a turn has come.
#[derive(Debug)]
pub(super) struct Progress {
    /// The input the turn is for, to know it again.
    pub input: Happening,
    pub at: u64,
    pub agenda: VecDeque<Job>,
    /// Arrivals at steps that others may still lead to.
    pub held: Vec<Arrive>,
    /// Targets of arcs that were not taken, and the steps these start from.
    pub dead: Vec<(Place, Place)>,
    /// Something ended since the steps that wait were last looked at.
    pub is_news: bool,
    /// How often a step was entered or skipped.
    pub entries: usize,
    pub out: Box<Decided>,
    /// Commands that carried the whole context.
    pub whole_contexts: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Job {
    /// Do the work of a step that was entered.
    Begin(Place),
    /// Follow the arcs of a step that ended.
    Route(Place),
    Arrive(Arrive),
    /// Enter a step that nobody else can lead to any more.
    Enter(Arrive),
    /// Issue iterations, or close the loop.
    Pump(Place),
    /// Take the rows a cursor handed out, as this event says.
    Take(Place, u64, Box<Data>),
}

/// An arc that is followed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrive {
    pub to: Place,
    /// Nothing for the first step and for steps that are run again.
    pub from: Option<(Place, u32)>,
    /// The event it follows from.
    pub cause: u64,
}

/// The payload that is missing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing(pub String);

pub(super) struct Turn<'a> {
    pub execution: &'a mut Execution,
    pub now: Box<Progress>,
}

impl Progress {
    pub fn new(at: u64) -> Self {
        Self {
            input: Happening::Wake,
            at,
            agenda: VecDeque::new(),
            held: Vec::new(),
            dead: Vec::new(),
            is_news: true,
            entries: 0,
            out: Box::default(),
            whole_contexts: 0,
        }
    }
}

impl Turn<'_> {
    pub fn state(&self) -> &State {
        &self.execution.state
    }

    pub fn program(&self) -> Arc<Program> {
        Arc::clone(&self.execution.program)
    }

    pub fn scope(&self) -> Scope<'_> {
        let Execution { id, state, program, values, .. } = &*self.execution;
        Scope { execution: *id, at: self.now.at, state, program, values }
    }

    /// Writes an event down and folds it.
    pub fn record(&mut self, cause: u64, event: Event) -> u64 {
        let id = self.execution.state.last + 1;
        let recorded = Recorded { id, at: self.now.at, cause, event };
        write_line(&mut self.now.out.events, &recorded);
        fold(&mut self.execution.state, recorded).expect("a decided event follows from the state it was decided on");
        id
    }

    /// Does everything that follows.
    pub fn run(&mut self) -> Result<(), Missing> {
        while self.state().finished.is_none() {
            let Some(job) = self.now.agenda.pop_front() else {
                if self.look_around() {
                    continue;
                }
                break;
            };
            if let Err(missing) = self.perform(&job) {
                self.now.agenda.push_front(job);
                return Err(missing);
            }
        }
        self.settle();
        Ok(())
    }

    fn perform(&mut self, job: &Job) -> Result<(), Missing> {
        match job {
            Job::Begin(place) => self.begin(*place),
            Job::Route(place) => self.route(*place),
            Job::Arrive(arrive) => self.arrive(arrive),
            Job::Enter(arrive) => self.enter(arrive),
            Job::Pump(place) => self.pump(*place),
            Job::Take(place, cause, data) => self.take(*place, *cause, data),
        }
    }

    /// When nothing else is left: lets steps in that waited, and skips those nobody can come to any more. True if there
    /// is more to do.
    fn look_around(&mut self) -> bool {
        if self.state().failing.is_some() {
            self.now.held.clear();
            return false;
        }
        if std::mem::take(&mut self.now.is_news) && self.admit_waiting() {
            return true;
        }
        self.keep_waiting();
        self.skip_dead();
        false
    }

    /// Adds a job that comes before all others.
    pub fn at_once(&mut self, job: Job) {
        self.now.agenda.push_front(job);
    }

    /// An error nothing can be done about in this execution: it ends when what is in flight has ended.
    pub fn fail(&mut self, cause: u64, place: Place, code: &str, message: String) {
        let error = Failure { code: code.to_owned(), message, retryable: false };
        self.fail_with(cause, self.program().name(place), error);
    }

    pub fn fail_with(&mut self, cause: u64, step: &str, error: Failure) {
        if self.state().failing.is_none() {
            self.record(cause, Event::Failing { step: step.to_owned(), error });
        }
    }

    /// Takes what rendering came to: a value, the end of the execution (nothing), or a payload to wait for.
    pub fn rendered<T>(
        &mut self,
        result: Result<T, Stop>,
        cause: u64,
        place: Place,
        what: &str,
    ) -> Result<Option<T>, Missing> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Need(digest)) => Err(Missing(digest)),
            Err(Stop::Failed(problem)) => {
                let message = format!("step `{}`: {what}: {problem}", self.program().name(place));
                self.fail(cause, place, "template", message);
                Ok(None)
            }
        }
    }

    /// Data as it may be in an event: what is too large becomes a payload.
    pub fn inline(&mut self, data: Data, select: &[String]) -> Data {
        if size(&data.value, INLINE_BYTES).is_some() {
            return data;
        }
        let Data { value, reference, chunks } = data;
        let extract = extract(&value, INLINE_BYTES, select).value;
        let reference = reference.unwrap_or_else(|| self.keep(value));
        Data { value: extract, reference: Some(reference), chunks }
    }

    /// Has a value kept as a payload. Until the turn is over nobody else has it, so it is at hand.
    pub fn keep(&mut self, value: Json) -> Reference {
        let bytes = serde_json::to_vec(&value).expect("JSON values are written without fail");
        let reference = Reference { sha256: hex::encode(Sha256::digest(&bytes)), size: bytes.len() as u64 };
        self.now.out.keep.push(bytes);
        self.execution.values.insert(reference.sha256.clone(), Arc::new(value));
        reference
    }

    pub fn standing(&self) -> Places<'_> {
        let coming = self.now.agenda.iter().filter_map(|job| match job {
            Job::Arrive(arrive) | Job::Enter(arrive) => Some(arrive),
            _ => None,
        });
        let coming = coming.chain(&self.now.held).map(|arrive| arrive.to).collect();
        Places { state: self.state(), program: &self.execution.program, coming }
    }
}

pub(super) fn write_line(lines: &mut Vec<u8>, recorded: &Recorded) {
    serde_json::to_writer(&mut *lines, recorded).expect("an event has text keys only");
    lines.push(b'\n');
}

/// How steps stand, in the middle of a turn.
pub(super) struct Places<'a> {
    state: &'a State,
    program: &'a Program,
    coming: BTreeSet<Place>,
}

impl Standing for Places<'_> {
    fn is_live(&self, place: Place) -> bool {
        let name = self.program.name(place);
        self.coming.contains(&place) || self.state.live.contains(name) || self.state.waiting.contains(name)
    }

    fn is_ended(&self, place: Place) -> bool {
        self.state.phase(self.program.name(place)).is_ended()
    }
}

impl Turn<'_> {
    /// Whether the step was never entered, skipped or arrived at.
    pub fn is_idle(&self, place: Place) -> bool {
        let program = &self.execution.program;
        self.state().phase(program.name(place)) == Phase::Idle
    }
}
