//! From a step that ended to the steps that follow.

use serde_json::{Map, Value as Json, json};

use super::graph::Place;
use super::program::{Binding, Condition, Family};
use super::scope::{Locals, Stop};
use super::turn::{Arrive, Job, Missing, Turn};
use super::variables::{assign, too_large};
use crate::event::{Event, Failure};
use crate::playbook::{NextMode, OnError, OnNoMatch};
use crate::state::{Phase, Step, error_value};
use crate::task::PREVIOUS;
use crate::template::{References, Value, from_json};

/// What an ended step means for its arcs.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// All arcs are asked.
    Ended,
    /// Only those that ask about failures.
    Failed,
    /// By a guard of the step: there is no result.
    Skipped,
}

/// What following the arcs will record, known before anything is.
struct Plan {
    set: Map<String, Json>,
    /// Place of the arc in its list, target, variables.
    taken: Vec<(u32, Place, Map<String, Json>)>,
    dead: Vec<Place>,
}

impl Turn<'_> {
    pub fn route(&mut self, place: Place) -> Result<(), Missing> {
        self.now.is_news = true;
        if self.state().failing.is_some() {
            return Ok(());
        }
        let program = self.program();
        let name = program.name(place);
        let Some(step) = self.state().step(name) else { return Ok(()) };
        let (cause, manner) = (step.ended, self.manner(place, step));
        let plan = match self.plan(place, manner) {
            Ok(plan) => plan,
            Err((_, Stop::Need(digest))) => return Err(Missing(digest)),
            Err((what, Stop::Failed(problem))) => {
                self.fail(cause, place, "template", format!("step `{name}`: {what}: {problem}"));
                return Ok(());
            }
        };
        if let Some(problem) = too_large(plan.set.iter().chain(plan.taken.iter().flat_map(|(_, _, set)| set))) {
            self.fail(cause, place, "too_large", format!("step `{name}`: {problem}"));
            return Ok(());
        }
        self.follow(place, cause, plan, manner);
        Ok(())
    }

    fn follow(&mut self, place: Place, cause: u64, plan: Plan, manner: Manner) {
        let program = self.program();
        let name = program.name(place);
        self.set(cause, name, plan.set);
        if plan.taken.is_empty() && manner == Manner::Failed {
            return self.fail_with(cause, name, self.failure_of(name));
        }
        let next = &program.step(place).next;
        if plan.taken.is_empty() && !next.arcs.is_empty() && next.on_no_match == OnNoMatch::Fail {
            return self.fail(cause, place, "no_match", format!("step `{name}`: no arc matches"));
        }
        for (arc, to, set) in plan.taken {
            self.set(cause, name, set);
            self.now.agenda.push_back(Job::Arrive(Arrive { to, from: Some((place, arc)), cause }));
        }
        self.now.dead.extend(plan.dead.into_iter().map(|target| (target, place)));
    }

    fn set(&mut self, cause: u64, step: &str, values: Map<String, Json>) {
        if !values.is_empty() {
            self.record(cause, Event::Set { step: step.to_owned(), values });
        }
    }

    fn manner(&self, place: Place, step: &Step) -> Manner {
        match step.phase {
            Phase::Skipped => Manner::Skipped,
            Phase::Failed if !self.passes_over(place, step.hard) => Manner::Failed,
            _ => Manner::Ended,
        }
    }

    /// Whether a failure of the step counts as an end like any other. One whose work could not be done at all (`hard`) does
    /// so only where the step itself says it.
    pub fn passes_over(&self, place: Place, hard: bool) -> bool {
        match self.execution.program.step(place).on_error {
            Some(OnError::Continue) => true,
            Some(OnError::Fail) => false,
            None => self.state().started.lenient && !hard,
        }
    }

    fn failure_of(&self, step: &str) -> Failure {
        let result = self.state().step(step).and_then(|step| step.result.as_ref());
        let error = result.and_then(|result| result.error.clone());
        let Failure { code, message, retryable } = error.expect("a failed step has an error");
        Failure { code, message: format!("step `{step}` failed: {message}"), retryable }
    }

    /// Renders everything. An error says of what.
    fn plan(&self, place: Place, manner: Manner) -> Result<Plan, (String, Stop)> {
        let program = &*self.execution.program;
        let prepared = program.prepared(place);
        let mut plan = Plan { set: Map::new(), taken: Vec::new(), dead: Vec::new() };
        if manner == Manner::Ended {
            plan.set = self.assignments(place, &prepared.set, &Map::new()).map_err(|stop| ("set".to_owned(), stop))?;
        }
        let exclusive = program.step(place).next.mode == NextMode::Exclusive;
        for (number, arc) in (0..).zip(&prepared.arcs) {
            let open = !exclusive || plan.taken.is_empty();
            let saying = |stop| (format!("arc {} to `{}`", number + 1, program.name(arc.to)), stop);
            if open && self.arc_holds(place, arc.when.as_ref(), manner, &plan.set).map_err(saying)? {
                let set = self.assignments(place, &arc.set, &plan.set).map_err(saying)?;
                plan.taken.push((number, arc.to, set));
            } else {
                plan.dead.push(arc.to);
            }
        }
        Ok(plan)
    }

    fn arc_holds(
        &self,
        place: Place,
        when: Option<&Condition>,
        manner: Manner,
        set: &Map<String, Json>,
    ) -> Result<bool, Stop> {
        match when {
            None => Ok(manner != Manner::Failed),
            Some(condition) if manner == Manner::Failed && !condition.sees_failure => Ok(false),
            Some(condition) => {
                let locals = self.locals(place, &condition.refers, condition.family, set)?;
                self.scope().holds(condition, &locals)
            }
        }
    }

    /// Values of a `set`. A template that fails stays as it is written.
    fn assignments(
        &self,
        place: Place,
        set: &[(String, Binding)],
        before: &Map<String, Json>,
    ) -> Result<Map<String, Json>, Stop> {
        let mut values = Map::new();
        for (key, binding) in set {
            let locals = self.locals(place, &binding.refers, None, before)?;
            let value = match self.scope().render(binding, &locals) {
                Ok(value) => value,
                Err(Stop::Failed(_)) => binding.raw.clone(),
                Err(need) => return Err(need),
            };
            assign(&mut values, key, value, |name| before.get(name).cloned().or_else(|| self.variable(name)));
        }
        Ok(values)
    }

    /// What a variable is now.
    pub fn variable(&self, name: &str) -> Option<Json> {
        self.state().variables.get(name).map(|variable| variable.json().clone())
    }

    /// `output`, `event`, `error` and what the step itself has just set.
    fn locals<'a>(
        &self,
        place: Place,
        refers: &References,
        family: Option<Family>,
        set: &'a Map<String, Json>,
    ) -> Result<Locals<'a>, Stop> {
        let mut locals: Locals<'a> = set
            .iter()
            .filter(|(name, _)| refers.whole_context || refers.names().any(|used| used == *name))
            .map(|(name, value)| (name.as_str(), from_json(value)))
            .collect();
        let name = self.execution.program.name(place);
        let Some(step) = self.state().step(name) else { return Ok(locals) };
        let outcome = step.result.as_ref().filter(|_| step.phase != Phase::Skipped);
        for used in refers.names() {
            match (used, outcome) {
                ("event", _) => locals.push(("event", self.event_value(place, step, family))),
                ("output", Some(outcome)) => {
                    locals.push(("output", self.scope().output(name, "output", outcome, refers)?));
                }
                (PREVIOUS, Some(outcome)) if self.scope().is_previous(PREVIOUS) && !set.contains_key(PREVIOUS) => {
                    locals.push((PREVIOUS, self.scope().output(name, PREVIOUS, outcome, refers)?));
                }
                ("error", Some(outcome)) => {
                    if let Some(error) = &outcome.error {
                        locals.push(("error", from_json(&error_value(error, &outcome.data.value))));
                    }
                }
                _ => {}
            }
        }
        Ok(locals)
    }

    /// The name of what happened to a step, in the family of names the guard knows.
    fn event_value(&self, place: Place, ended: &Step, family: Option<Family>) -> Value {
        let (step, phase) = (self.execution.program.step(place), ended.phase);
        let usual = if step.repeat.is_some() { Family::Loop } else { Family::Call };
        let family = family.filter(|family| *family != Family::Loop).unwrap_or(usual);
        // A loop of which iterations failed has still come to its end, where failures do not count.
        let passed_over = family == Family::Loop && self.passes_over(place, ended.hard);
        let failed = phase == Phase::Failed && !passed_over;
        let name = match family {
            _ if phase == Phase::Skipped => "step.skipped",
            Family::Call if failed => "call.error",
            Family::Step if failed => "step.failed",
            Family::Loop if failed => "loop.failed",
            Family::Call => "call.done",
            Family::Step => "step.done",
            Family::Loop => "loop.done",
        };
        from_json(&json!({ "name": name, "type": name, "step": step.name }))
    }
}
