//! One event after the other.

use std::fmt;

use crate::event::{Adopted, Data, Event, Items, LoopMode, Recorded, Reported, Started};
use crate::ids::CommandId;

use super::{Arrival, Failing, Frame, Held, Open, Outcome, Phase, Repeat, State, Step, Wait};

/// Why an event cannot follow the ones before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

type Folded = Result<(), Broken>;

/// Folds events as they are in a segment, one JSON object a line, onto a state or from the first one.
pub fn fold_lines(state: &mut Option<State>, lines: &[u8]) -> Folded {
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let recorded: Recorded =
            serde_json::from_slice(line).map_err(|error| Broken(format!("a line is not an event: {error}")))?;
        match state {
            Some(state) => fold(state, recorded)?,
            None => *state = Some(State::begin(recorded)?),
        }
    }
    Ok(())
}

/// Folds one event. After an error the state is of no use.
pub fn fold(state: &mut State, recorded: Recorded) -> Folded {
    let Recorded { id, at, event, .. } = recorded;
    if id != state.last + 1 {
        return Err(Broken(format!("event {id} follows event {}", state.last)));
    }
    if state.finished.is_some() {
        return Err(Broken(format!("event {id} follows the end of the execution")));
    }
    state.last = id;
    state.at = at;
    state.apply(id, at, event).map_err(|problem| Broken(format!("event {id}: {}", problem.0)))
}

impl State {
    /// The state after the first event.
    pub fn begin(recorded: Recorded) -> Result<Self, Broken> {
        match recorded {
            Recorded { id: 1, at, event: Event::Started(started), .. } => Ok(Self::new(at, *started)),
            other => Err(Broken(format!("a chain begins with event 1, `started`, and not with event {}", other.id))),
        }
    }

    fn new(at: u64, mut started: Started) -> Self {
        let workload = std::mem::take(&mut started.workload);
        Self {
            last: 1,
            at,
            started_at: at,
            workload: Held::new(workload.into()),
            started,
            variables: Default::default(),
            steps: Default::default(),
            live: Default::default(),
            waiting: Default::default(),
            in_flight: 0,
            last_ended: None,
            failed_steps: Vec::new(),
            failing: None,
            finished: None,
        }
    }

    fn apply(&mut self, id: u64, at: u64, event: Event) -> Folded {
        match event {
            Event::Started(_) => return Err(Broken("the execution was started before".to_owned())),
            Event::Adopted(adopted) => self.adopt(id, *adopted),
            Event::Entered { step, run, .. } => self.enter(id, step, run),
            Event::Arrived { step, from, arc } => {
                self.waiting.insert(step.clone());
                let arrival = Arrival { from, arc, event: id };
                self.steps.entry(step).or_default().waiting.get_or_insert(arrival);
            }
            Event::Issued { command, item, .. } => return self.issue(id, at, &command, item),
            Event::Reported(reported) => return self.report(id, *reported),
            Event::Lost { command } => {
                let open = self.open_mut(&command)?;
                open.losses += 1;
            }
            Event::LoopOpened { step, run, mode, total, in_flight, items } => {
                let step = self.running(&step, run)?;
                step.repeat = Some(Box::new(opened(id, mode, total, in_flight, items)));
            }
            Event::Claimed { step, run, count, items } => {
                let repeat = self.repeat(&step, run)?;
                repeat.frames += u32::from(count > 0);
                repeat.frame = Some(Frame { first: repeat.next, count, items });
            }
            Event::LoopSpilled { step, run, chunk, .. } => self.repeat(&step, run)?.spilled(chunk),
            Event::LoopClosed { step, run, total, succeeded, failed } => {
                let state = self.running(&step, run)?;
                let mut repeat =
                    state.repeat.take().ok_or_else(|| Broken(format!("`{step}` has no loop to be closed")))?;
                let (error, hard) = (repeat.error.take(), repeat.hard);
                self.end(id, step, repeat.result(total, succeeded, failed), error, hard);
            }
            Event::Set { values, .. } => self.set(values),
            Event::Skipped { step, .. } => {
                self.waiting.remove(&step);
                let step = self.steps.entry(step).or_default();
                step.phase = Phase::Skipped;
                step.waiting = None;
                step.ended = id;
            }
            Event::ChildStarted { command, execution, label, .. } => {
                let open = self.open_mut(&command)?;
                match label {
                    None => open.child = Some(execution),
                    Some(_) => open.waits_for = Some(execution),
                }
            }
            Event::Parked { step, run, message, until } => {
                let step = self.running(&step, run)?;
                step.phase = Phase::Parked;
                step.parked = Some(Wait { message, until });
            }
            Event::Resumed { step, run, data, .. } => {
                self.running(&step, run)?;
                self.end(id, step, data, None, false);
            }
            Event::Failing { step, error } => {
                self.failing.get_or_insert(Failing { step, error });
            }
            Event::CancelRequested { .. } => {}
            Event::Finished(finished) => {
                self.finished = Some(finished);
            }
        }
        Ok(())
    }

    fn adopt(&mut self, id: u64, adopted: Adopted) {
        for one in adopted.steps {
            let mut step = Step { run: one.run, ended: id, ..Step::default() };
            match one.data {
                Some(data) => {
                    step.phase = Phase::Done;
                    step.result = Some(Outcome::new(data, None));
                    self.last_ended = Some(one.step.clone());
                }
                None => step.phase = Phase::Skipped,
            }
            self.steps.insert(one.step, step);
        }
        self.set(adopted.context);
    }

    fn enter(&mut self, id: u64, name: String, run: u32) {
        self.waiting.remove(&name);
        self.live.insert(name.clone());
        let step = self.steps.entry(name).or_default();
        step.phase = Phase::Running;
        step.run = run;
        step.entered = id;
        step.waiting = None;
        step.unrouted = false;
    }

    fn issue(&mut self, id: u64, at: u64, command: &CommandId, item: Option<Data>) -> Folded {
        let step = self.running(&command.step, command.run)?;
        let attempt = command.attempt;
        let mut open = Open { attempt, losses: 0, at, event: id, child: None, waits_for: None, item };
        let before = match (command.iteration, &mut step.repeat) {
            (None, repeat) => {
                if let Some(repeat) = repeat {
                    repeat.claims = command.attempt;
                }
                &mut step.open
            }
            (Some(index), Some(repeat)) => {
                repeat.next = repeat.next.max(index + 1);
                match repeat.open.entry(index) {
                    std::collections::btree_map::Entry::Vacant(place) => {
                        place.insert(open);
                        self.in_flight += 1;
                        return Ok(());
                    }
                    std::collections::btree_map::Entry::Occupied(place) => {
                        let place = place.into_mut();
                        open.losses = place.losses;
                        open.item = open.item.or(place.item.take());
                        open.waits_for = place.waits_for.take();
                        *place = open;
                        return Ok(());
                    }
                }
            }
            (Some(_), None) => return Err(Broken(format!("`{command}` is of no loop"))),
        };
        match before.replace(open) {
            // The child of a lost worker goes on; the next one finds it, or nobody waits for it any more.
            Some(lost) => {
                let open = before.as_mut().expect("it was just put there");
                (open.losses, open.waits_for) = (lost.losses, lost.waits_for);
            }
            None => self.in_flight += 1,
        }
        Ok(())
    }

    fn report(&mut self, id: u64, reported: Reported) -> Folded {
        let Reported { command, data, error, hard, set, .. } = reported;
        self.set(set);
        let step = self.running(&command.step, command.run)?;
        let Some(index) = command.iteration else {
            let was_open = step.open.take().is_some();
            // The claim of a cursor ends its step only when it fails.
            let ends = step.repeat.is_none() || error.is_some();
            self.in_flight -= u32::from(was_open);
            if ends {
                self.end(id, command.step, data, error, hard);
            }
            return Ok(());
        };
        let repeat = step.repeat.as_mut().ok_or_else(|| Broken(format!("`{command}` is of no loop")))?;
        if repeat.open.remove(&index).is_none() {
            return Err(Broken(format!("`{command}` is not open")));
        }
        match &error {
            None => repeat.succeeded += 1,
            Some(_) => repeat.failed += 1,
        }
        repeat.hard |= hard;
        repeat.collect(index, data, error.as_ref());
        if repeat.error.is_none() {
            repeat.error = error;
        }
        self.in_flight -= 1;
        Ok(())
    }

    fn end(&mut self, id: u64, name: String, data: Data, error: Option<crate::event::Failure>, hard: bool) {
        self.live.remove(&name);
        let unrouted = self.failing.is_some();
        let step = self.steps.entry(name.clone()).or_default();
        step.phase = if error.is_some() { Phase::Failed } else { Phase::Done };
        step.ended = id;
        step.parked = None;
        step.repeat = None;
        step.hard = hard;
        step.unrouted = unrouted;
        step.result = Some(Outcome::new(data, error));
        if step.phase == Phase::Failed && !self.failed_steps.contains(&name) {
            self.failed_steps.push(name.clone());
        }
        self.last_ended = Some(name);
    }

    fn set(&mut self, values: serde_json::Map<String, serde_json::Value>) {
        self.variables.extend(values.into_iter().map(|(name, value)| (name, Held::new(value))));
    }

    /// The step, which must be in this run of it.
    fn running(&mut self, name: &str, run: u32) -> Result<&mut Step, Broken> {
        match self.steps.get_mut(name) {
            Some(step) if step.run == run && step.phase.is_live() => Ok(step),
            _ => Err(Broken(format!("step `{name}` is not in run {run}"))),
        }
    }

    fn repeat(&mut self, name: &str, run: u32) -> Result<&mut Repeat, Broken> {
        let step = self.running(name, run)?;
        step.repeat.as_deref_mut().ok_or_else(|| Broken(format!("step `{name}` has no open loop")))
    }

    fn open_mut(&mut self, command: &CommandId) -> Result<&mut Open, Broken> {
        let step = self.running(&command.step, command.run)?;
        let open = match (command.iteration, &mut step.repeat) {
            (None, _) => step.open.as_mut(),
            (Some(index), Some(repeat)) => repeat.open.get_mut(&index),
            (Some(_), None) => None,
        };
        open.ok_or_else(|| Broken(format!("`{command}` is not open")))
    }
}

fn opened(id: u64, mode: LoopMode, total: Option<u32>, in_flight: Option<u32>, items: Items) -> Repeat {
    Repeat {
        mode,
        total,
        limit: in_flight.unwrap_or(1),
        items,
        epoch: id,
        next: 0,
        open: Default::default(),
        succeeded: 0,
        failed: 0,
        error: None,
        hard: false,
        results: Default::default(),
        collected: 0,
        chunks: Vec::new(),
        frame: None,
        frames: 0,
        claims: 0,
    }
}
