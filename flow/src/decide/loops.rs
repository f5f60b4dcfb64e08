//! Loops of one step: over a collection, or over what a cursor hands out.
//!
//! Iterations are issued in order, as many at a time as the loop allows. Where failures count, a failed one stops the
//! loop: those in flight end, no other begins. The loop closes when nothing is in flight and nothing is to come.
//!
//! A loop that cannot begin, because what it goes over cannot be rendered or counted, is a step that failed, like one whose
//! tool did: its arcs and `on_error` say what follows.

use serde_json::Value as Json;

use super::command::failed;
use super::graph::Place;
use super::items::{Collection, collection, item, rows};
use super::program::Program;
use super::scope::{Locals, Stop};
use super::turn::{Job, Missing, Turn};
use crate::event::{Data, Event, INLINE_BYTES, Items, LoopMode};
use crate::ids::CommandId;
use crate::playbook;
use crate::state::repeat::{SPILL_BYTES, json_size};
use crate::state::{Repeat, Step};

/// Iterations of a parallel loop in flight, when the playbook does not say.
const IN_FLIGHT: u32 = 100;

impl Turn<'_> {
    pub fn open_loop(&mut self, place: Place) -> Result<(), Missing> {
        let program = self.program();
        let (run, cause) = self.run_of(place);
        let Some(repeat) = &program.step(place).repeat else { return Ok(()) };
        let Some(in_flight) = self.in_flight(place, repeat)? else { return Ok(()) };
        let (total, items) = match &program.prepared(place).over {
            None => (None, Items::Cursor),
            Some(over) => {
                let scope = self.scope();
                let value = scope.led_here(place, &over.refers).and_then(|locals| scope.render(over, &locals));
                let what = format!("loop.in `{}`", text_of(&over.raw));
                let Some(value) = self.known(value, place, &what)? else { return Ok(()) };
                let Some(found) = self.countable(place, &what, value) else { return Ok(()) };
                (found.len(), self.items(found))
            }
        };
        let step = program.name(place).to_owned();
        let mode = repeat.mode;
        self.record(cause, Event::LoopOpened { step, run, mode, total, in_flight: Some(in_flight), items });
        self.at_once(Job::Pump(place));
        Ok(())
    }

    /// Ends the step of a loop that cannot begin. Nobody worked on it.
    fn cannot_begin(&mut self, place: Place, code: &str, message: String) {
        let (run, cause) = self.run_of(place);
        let step = self.program().name(place).to_owned();
        let nobodys = CommandId { step, run, iteration: None, attempt: 1 };
        self.report(cause, place, failed(nobodys, code, message));
    }

    /// What a template of the loop came to: a value, the end of the step (nothing), or a payload to wait for.
    fn known<T>(&mut self, result: Result<T, Stop>, place: Place, what: &str) -> Result<Option<T>, Missing> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Need(digest)) => Err(Missing(digest)),
            Err(Stop::Failed(problem)) => {
                self.cannot_begin(place, "template", format!("{what}: {problem}"));
                Ok(None)
            }
        }
    }

    fn countable(&mut self, place: Place, what: &str, value: Json) -> Option<Collection> {
        let problem = match collection(value) {
            Ok(found) if found.len().is_some() => return Some(found),
            Ok(_) => "has too many items".to_owned(),
            Err(instead) => format!("did not evaluate to an iterable (got {instead})"),
        };
        self.cannot_begin(place, "not_iterable", format!("{what} {problem}"));
        None
    }

    /// How many iterations may be in flight; nothing if the step fails because it does not say.
    fn in_flight(&mut self, place: Place, repeat: &playbook::Loop) -> Result<Option<u32>, Missing> {
        let program = self.program();
        let usual = match (repeat.mode, &repeat.cursor) {
            (LoopMode::Cursor, Some(cursor)) => return Ok(Some(cursor.row_concurrency.max(1))),
            (LoopMode::Parallel, _) => IN_FLIGHT,
            _ => return Ok(Some(1)),
        };
        let Some(limit) = &program.prepared(place).limit else { return Ok(Some(usual)) };
        let rendered = self.scope().render(limit, &Locals::new());
        let Some(value) = self.known(rendered, place, "max_in_flight")? else { return Ok(None) };
        let number = match &value {
            Json::String(text) => text.trim().parse().ok(),
            other => other.as_u64().or_else(|| other.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as u64)),
        };
        match number.filter(|number: &u64| *number > 0) {
            Some(number) => Ok(Some(u32::try_from(number).unwrap_or(u32::MAX))),
            None => {
                let message = format!("max_in_flight is `{value}`; it must be a whole number above 0");
                self.cannot_begin(place, "invalid_limit", message);
                Ok(None)
            }
        }
    }

    /// A collection as it is written down: what is too large becomes a payload.
    fn items(&mut self, found: Collection) -> Items {
        match found {
            Collection::Count(count) => Items::Count(count),
            Collection::List(list) => {
                let whole = Json::Array(list);
                if json_size(&whole) <= INLINE_BYTES as u64 {
                    let Json::Array(list) = whole else { unreachable!("it was just made a list") };
                    return Items::List(list);
                }
                Items::Payload(self.keep(whole))
            }
        }
    }

    /// Issues what may be in flight, and closes the loop at its end.
    pub fn pump(&mut self, place: Place) -> Result<(), Missing> {
        let program = self.program();
        self.spill(place, SPILL_BYTES);
        loop {
            let Some(repeat) = self.repeat_of(place) else { return Ok(()) };
            let stopped =
                self.state().failing.is_some() || (repeat.failed > 0 && !self.passes_over(place, repeat.hard));
            let known = repeat.known();
            if !stopped && repeat.next < known && (repeat.open.len() as u64) < u64::from(repeat.limit) {
                let next = repeat.next;
                self.issue(place, Some(next), 1)?;
                continue;
            }
            let idle = repeat.open.is_empty() && self.claim_of(place).is_none();
            if self.state().failing.is_some() || !idle || (!stopped && repeat.next < known) {
                return Ok(());
            }
            let drained = repeat.frame.as_ref().is_some_and(|frame| frame.count == 0);
            if repeat.mode == LoopMode::Cursor && !stopped && !drained {
                let attempt = repeat.claims + 1;
                self.issue_claim(place, attempt);
                return Ok(());
            }
            return self.close_loop(&program, place);
        }
    }

    fn close_loop(&mut self, program: &Program, place: Place) -> Result<(), Missing> {
        // What began to go into chunks is all there in the end, and so is a result that is itself an extract.
        let in_chunks = self.repeat_of(place).is_some_and(|repeat| {
            !repeat.chunks.is_empty() || repeat.results.values().any(|result| result.reference.is_some())
        });
        self.spill(place, if in_chunks { 0 } else { INLINE_BYTES as u64 });
        let (run, _) = self.run_of(place);
        let Some(repeat) = self.repeat_of(place) else { return Ok(()) };
        let (epoch, succeeded, failed) = (repeat.epoch, repeat.succeeded, repeat.failed);
        let total = repeat.total.unwrap_or(repeat.next);
        let step = program.name(place).to_owned();
        self.record(epoch, Event::LoopClosed { step, run, total, succeeded, failed });
        self.at_once(Job::Route(place));
        Ok(())
    }

    /// Moves the results of iterations out when they are more than this.
    fn spill(&mut self, place: Place, limit: u64) {
        let (run, _) = self.run_of(place);
        let Some(repeat) = self.repeat_of(place) else { return };
        if repeat.collected <= limit {
            return;
        }
        let (epoch, count, chunk) = (repeat.epoch, repeat.results.len() as u32, repeat.chunk());
        let chunk = self.keep(chunk);
        let step = self.program().name(place).to_owned();
        self.record(epoch, Event::LoopSpilled { step, run, chunk, count });
    }

    /// Makes iterations of the rows a claim came to.
    pub fn take(&mut self, place: Place, cause: u64, data: &Data) -> Result<(), Missing> {
        let program = self.program();
        let name = program.name(place);
        let (run, _) = self.run_of(place);
        let answer = if data.reference.is_some() {
            match self.scope().whole(data) {
                Ok(whole) => rows(&whole),
                Err(Stop::Need(digest)) => return Err(Missing(digest)),
                Err(Stop::Failed(_)) => None,
            }
        } else {
            rows(&data.value)
        };
        let Some(rows) = answer else {
            let message = format!("step `{name}`: the claim of the cursor answered no rows");
            self.fail(cause, place, "not_iterable", message);
            return Ok(());
        };
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let items = self.items(Collection::List(rows));
        self.record(cause, Event::Claimed { step: name.to_owned(), run, count, items });
        self.at_once(Job::Pump(place));
        Ok(())
    }

    /// The item of an iteration, if its event has to have it: the collection may not be at hand when it is needed.
    pub fn item_to_record(&mut self, place: Place, index: u32) -> Result<Option<Data>, Missing> {
        let Some(repeat) = self.repeat_of(place) else { return Ok(None) };
        let items = repeat.frame.as_ref().map_or(&repeat.items, |frame| &frame.items);
        if !matches!(items, Items::Payload(_)) {
            return Ok(None);
        }
        let value = match item(&self.scope(), repeat, index) {
            Ok(value) => value.into_owned(),
            Err(Stop::Need(digest)) => return Err(Missing(digest)),
            Err(Stop::Failed(_)) => Json::Null,
        };
        Ok(Some(self.inline(Data { value, ..Data::default() }, &[])))
    }

    fn step_of(&self, place: Place) -> Option<&Step> {
        self.execution.state.step(self.execution.program.name(place))
    }

    fn repeat_of(&self, place: Place) -> Option<&Repeat> {
        self.step_of(place)?.repeat.as_deref()
    }

    fn claim_of(&self, place: Place) -> Option<&crate::state::Open> {
        self.step_of(place)?.open.as_ref()
    }

    /// The run of a step, and the event that began it.
    fn run_of(&self, place: Place) -> (u32, u64) {
        self.step_of(place).map_or((1, 0), |step| (step.run, step.entered))
    }
}

fn text_of(raw: &Json) -> String {
    raw.as_str().map_or_else(|| raw.to_string(), str::to_owned)
}
