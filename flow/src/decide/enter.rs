//! Into a step: the barrier, its guards, its work.
//!
//! A step that several others lead to is entered when none of them can come any more. Whether one can is a question to
//! the graph: it is live, or a live step leads there. So branches that were not taken never hold anybody up, and neither
//! do arcs that begin another round of a loop the step is part of.
//!
//! Entering a step answers all arrivals at it that wait: they were waiting for each other.

use super::graph::Place;
use super::program::PreparedWork;
use super::scope::{Locals, Stop};
use super::turn::{Arrive, Execution, Job, Missing, Turn};
use crate::event::Event;
use crate::playbook::Work;

/// A loop of arcs over steps that have nothing to do goes on for ever in one turn; so often it may go round.
const ROUNDS: usize = 1_000;

impl Turn<'_> {
    /// Follows an arc to its step.
    pub fn arrive(&mut self, arrive: &Arrive) -> Result<(), Missing> {
        if self.state().failing.is_some() {
            return Ok(());
        }
        if !self.may_enter(arrive) {
            return Ok(());
        }
        if self.has_to_wait(arrive.to) {
            self.now.held.push(arrive.clone());
            return Ok(());
        }
        self.enter(arrive)
    }

    /// Whether the arrival means anything: a step runs once, unless it is part of a loop of arcs.
    fn may_enter(&self, arrive: &Arrive) -> bool {
        self.is_idle(arrive.to)
            || arrive.from.is_none_or(|(from, _)| self.execution.program.graph.same_knot(from, arrive.to))
    }

    /// Whether the step still runs, or somebody else may still lead to it.
    fn has_to_wait(&self, place: Place) -> bool {
        let Execution { program, state, .. } = &*self.execution;
        state.phase(program.name(place)).is_live()
            || (program.graph.is_fan_in(place) && program.graph.awaited(place, &self.standing()).is_some())
    }

    pub fn enter(&mut self, arrive: &Arrive) -> Result<(), Missing> {
        let program = self.program();
        let place = arrive.to;
        self.now.entries += 1;
        if self.now.entries > 2 * program.playbook.steps.len() + ROUNDS {
            let message = format!("step `{}` is entered again and again with nothing to wait for", program.name(place));
            self.fail(arrive.cause, place, "endless", message);
            return Ok(());
        }
        let from = arrive.from.map(|(from, _)| program.name(from).to_owned());
        let admitted = self.is_admitted(place);
        let Some(admitted) = self.rendered(admitted, arrive.cause, place, "guard")? else { return Ok(()) };
        let step = program.name(place).to_owned();
        self.now.held.retain(|held| held.to != place);
        if !admitted {
            self.record(arrive.cause, Event::Skipped { step, from });
            self.at_once(Job::Route(place));
            return Ok(());
        }
        let run = self.state().step(&step).map_or(0, |step| step.run) + 1;
        self.record(arrive.cause, Event::Entered { step, run, from, arc: arrive.from.map(|(_, arc)| arc) });
        self.at_once(Job::Begin(place));
        Ok(())
    }

    fn is_admitted(&self, place: Place) -> Result<bool, Stop> {
        let prepared = self.execution.program.prepared(place);
        let none = Locals::new();
        if let Some(when) = &prepared.when
            && !self.scope().holds(when, &none)?
        {
            return Ok(false);
        }
        for (when, allow) in &prepared.admit {
            if when.as_ref().map_or(Ok(true), |when| self.scope().holds(when, &none))? {
                return Ok(*allow);
            }
        }
        Ok(true)
    }

    /// Does what the step is there for.
    pub fn begin(&mut self, place: Place) -> Result<(), Missing> {
        let program = self.program();
        if program.step(place).repeat.is_some() {
            return self.open_loop(place);
        }
        match &program.prepared(place).work {
            PreparedWork::Park(_) => self.park(place),
            PreparedWork::Task(_) | PreparedWork::Child(_) => self.issue(place, None, 1),
        }
    }

    fn park(&mut self, place: Place) -> Result<(), Missing> {
        let program = self.program();
        let (PreparedWork::Park(message), Work::Park(park)) =
            (&program.prepared(place).work, &program.step(place).work)
        else {
            return Ok(());
        };
        let message = match message.as_ref().map(|message| self.scope().render(message, &Locals::new())) {
            Some(Ok(serde_json::Value::String(text))) => Some(text),
            Some(Ok(value)) => Some(value.to_string()),
            // Whoever reads it sees the template, which is better than no message.
            Some(Err(Stop::Failed(_))) => park.message.clone(),
            Some(Err(Stop::Need(digest))) => return Err(Missing(digest)),
            None => None,
        };
        let step = program.name(place);
        let (run, cause) = self.state().step(step).map_or((1, 0), |step| (step.run, step.entered));
        let timeout = park.timeout_ms.or(program.step(place).timeout_ms);
        let until = timeout.map(|timeout| self.now.at.saturating_add(timeout));
        self.record(cause, Event::Parked { step: step.to_owned(), run, message, until });
        Ok(())
    }

    /// Lets a step in that waited for something that has ended. True if there was one.
    pub fn admit_waiting(&mut self) -> bool {
        let program = self.program();
        let held = std::mem::take(&mut self.now.held);
        let waiting = self.state().waiting.iter().filter_map(|name| {
            let arrival = self.state().step(name)?.waiting.as_ref()?;
            let from = program.place(&arrival.from)?;
            Some(Arrive { to: program.place(name)?, from: Some((from, arrival.arc)), cause: arrival.event })
        });
        let all: Vec<Arrive> = waiting.chain(held).filter(|arrive| self.may_enter(arrive)).collect();
        // While one is asked about, all others are on their way too.
        self.now.held = all.clone();
        let ready = all.into_iter().find(|arrive| !self.has_to_wait(arrive.to));
        let Some(arrive) = ready else { return false };
        self.now.is_news = true;
        // Asked once. A second answer could be another one, and the step would be let in for ever.
        self.now.agenda.push_back(Job::Enter(arrive));
        true
    }

    /// Writes down which steps were led to and wait.
    pub fn keep_waiting(&mut self) {
        let program = self.program();
        for arrive in std::mem::take(&mut self.now.held) {
            let step = program.name(arrive.to).to_owned();
            if let Some((from, arc)) = arrive.from
                && self.may_enter(&arrive)
                && !self.state().waiting.contains(&step)
            {
                self.record(arrive.cause, Event::Arrived { step, from: program.name(from).to_owned(), arc });
            }
        }
    }

    /// Skips the steps no live step leads to any more.
    pub fn skip_dead(&mut self) {
        let program = self.program();
        let mut dead = std::mem::take(&mut self.now.dead);
        // In the order of the arcs, and the steps behind a skipped one right after it.
        dead.reverse();
        while let Some((place, from)) = dead.pop() {
            if !self.is_idle(place) || program.graph.can_come(place, &self.standing()) {
                continue;
            }
            let from = program.name(from);
            let cause = self.state().step(from).map_or(0, |step| step.ended);
            let step = program.name(place).to_owned();
            self.record(cause, Event::Skipped { step, from: Some(from.to_owned()) });
            dead.extend(program.graph.next(place).iter().rev().map(|target| (*target, place)));
        }
    }
}
