//! Replay: the state of an execution at any moment, with checksums.
//!
//! The answer has six surfaces, each an object by key, each with the sha256 of its canonical text:
//! - `execution`: the execution itself, its workload, output and error; `state_checksum` is that of the engine's own
//!   fold.
//! - `stages`: runs of steps, `step#run`.
//! - `frames`: iterations of loops, `step#run[index]`.
//! - `commands`: attempts at commands, by their ids.
//! - `loops`: loops, `step#run`.
//! - `business_objects`: the variables the playbook itself keeps, by name.
//!
//! Stages, frames, commands and loops are the rows of [`super::rows`], the same that the projector writes, so comparing
//! live rows with a replay compares two runs of the same code. The top-level checksum covers the six, the number of
//! events and the registry of upcasters.
//!
//! Events made of one compact event are one moment: the state at any of them is the state after all of them. A moment
//! before the first event is an answer without events. A chain with a gap or an event that is not known is refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::canonical::{self, checksum};
use super::expand::{ORGANIZATION, Outcome, compact_id, failure, last_id, outline};
use super::rows::{Change, CommandRow, ExecutionRow, LoopRow, StepRow, project_events};
use super::segment::{Broken, Placed, Segment, follow};
use super::time::rfc3339;
use super::upcast::Upcasters;
use crate::event::{Event, Started};
use crate::state::{self, State};

/// The moment a state is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cutoff {
    Head,
    /// An event of the expansion.
    Event(u64),
    /// A place in the whole log.
    Position(u64),
    TimeMs(u64),
}

/// The names of the surfaces.
pub const SURFACES: [&str; 6] = ["execution", "stages", "frames", "commands", "business_objects", "loops"];

/// The state at the cut-off, from the segments of the whole chain.
pub fn view(segments: &[Segment], cutoff: Cutoff) -> Result<Json, Broken> {
    view_with(segments, cutoff, &Upcasters::current())
}

pub fn view_with(segments: &[Segment], cutoff: Cutoff, upcasters: &Upcasters) -> Result<Json, Broken> {
    let mut events = follow(segments, upcasters)?;
    let first = segments.first().ok_or(Broken::Empty)?;
    // A chain's times and positions never go back, so whatever is asked for, what is wanted is the beginning.
    events.truncate(events.partition_point(|event| within(event, cutoff)));

    let mut surfaces = Surfaces::of(&events);
    if let Some(checksum) = state_checksum(&events)? {
        surfaces.execution.insert("state_checksum".to_owned(), checksum.into());
    }
    Ok(reply(first, &events, surfaces, upcasters))
}

/// The checksum of the engine's own state; none before the first event.
fn state_checksum(events: &[Placed]) -> Result<Option<String>, Broken> {
    let broken = |problem: state::Broken| Broken::State(problem.to_string());
    let Some((first, rest)) = events.split_first() else { return Ok(None) };
    let mut state = State::begin(first.recorded.clone()).map_err(broken)?;
    for event in rest {
        state::fold(&mut state, event.recorded.clone()).map_err(broken)?;
    }
    Ok(Some(state::checksum(&state)))
}

fn reply(first: &Segment, events: &[Placed], surfaces: Surfaces, upcasters: &Upcasters) -> Json {
    let mut reply = Map::new();
    let mut put = |name: &str, value: Json| reply.insert(name.to_owned(), value);
    put("tenant_id", first.tenant.as_str().into());
    put("organization_id", ORGANIZATION.into());
    put("execution_id", first.execution.to_string().into());
    put("projection", "all".into());
    let count: u64 = events.iter().map(|event| outline(event).len() as u64).sum();
    put("event_count", count.into());
    let last = events.last().and_then(|event| outline(event).pop());
    put("last_event_id", last.map(|(id, _)| id.to_string()).into());
    put("last_event_type", last.map(|(_, kind)| kind).into());
    let mut checksums = Map::new();
    for (name, surface) in SURFACES.into_iter().zip(surfaces.into_json()) {
        checksums.insert(name.to_owned(), checksum(&surface).into());
        put(name, surface);
    }
    put("upcaster_registry_digest", upcasters.digest().into());
    put("checksum_algorithm", canonical::ALGORITHM.into());
    put("projection_checksums", checksums.into());
    let covered = [
        "tenant_id",
        "organization_id",
        "execution_id",
        "event_count",
        "last_event_id",
        "upcaster_registry_digest",
        "projection_checksums",
    ];
    let covered: Map<String, Json> = covered.map(|name| (name.to_owned(), reply[name].clone())).into_iter().collect();
    reply.insert("checksum".to_owned(), checksum(&covered.into()).into());
    reply.into()
}

fn within(event: &Placed, cutoff: Cutoff) -> bool {
    match cutoff {
        Cutoff::Head => true,
        Cutoff::Event(id) => event.recorded.id <= compact_id(id),
        Cutoff::Position(position) => event.segment.position <= position,
        Cutoff::TimeMs(ms) => event.recorded.at <= ms,
    }
}

#[derive(Default)]
struct Surfaces {
    execution: Map<String, Json>,
    stages: BTreeMap<String, Map<String, Json>>,
    frames: BTreeMap<String, Json>,
    commands: BTreeMap<String, Json>,
    objects: BTreeMap<String, Json>,
    loops: BTreeMap<String, Map<String, Json>>,
}

impl Surfaces {
    fn of(events: &[Placed]) -> Self {
        let mut surfaces = Self::default();
        for change in project_events(events) {
            surfaces.change(change);
        }
        for event in events {
            surfaces.details(event);
        }
        surfaces
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Execution(row) => self.execution = of_execution(row),
            Change::Step(row) => {
                self.stages.insert(format!("{}#{}", row.step, row.run), of_step(row));
            }
            Change::Command(row) => self.command(row),
            Change::Loop(row) => {
                self.loops.insert(format!("{}#{}", row.step, row.run), of_loop(row));
            }
        }
    }

    fn command(&mut self, row: CommandRow) {
        if let Some(index) = row.iteration {
            let stage = format!("{}#{}", row.step, row.run);
            let frame = json!({
                "stage_id": stage, "index": index, "attempts": row.attempt, "status": row.status, "error": row.error,
                "command_id": row.command, "version": row.version,
            });
            // Attempts come in their order, so the last one is what the iteration came to.
            self.frames.insert(format!("{stage}[{index}]"), frame);
        }
        let command = json!({
            "step": row.step, "run": row.run, "iteration": row.iteration, "attempt": row.attempt, "status": row.status,
            "tool": row.tool, "plugin": row.plugin, "issued_at": row.issued_ms.map(rfc3339),
            "ended_at": row.ended_ms.map(rfc3339), "error": row.error, "version": row.version,
        });
        self.commands.insert(row.command, command);
    }

    /// What the rows do not carry.
    fn details(&mut self, event: &Placed) {
        let Placed { segment, recorded, claim } = event;
        match &recorded.event {
            Event::Started(started) => self.start(started),
            Event::Adopted(adopted) => {
                self.execution.insert("adopted_from".to_owned(), adopted.execution.as_str().into());
                self.variables(event, &adopted.context);
            }
            Event::Entered { step, run, from, arc } => {
                self.stage(step, *run, "from", from.as_deref().into());
                self.stage(step, *run, "arc", (*arc).into());
            }
            Event::Reported(reported) => {
                self.variables(event, &reported.set);
                let command = &reported.command;
                if command.iteration.is_none() && !claim {
                    let ok = reported.error.is_none();
                    let result = Outcome::data(ok, &reported.data, &command.step, command.run, None);
                    let result = result.render(&segment.tenant, &segment.execution.to_string());
                    self.stage(&command.step, command.run, "result", result);
                }
            }
            Event::Resumed { step, run, data, .. } => {
                let result = Outcome::data(true, data, step, *run, None);
                self.stage(step, *run, "result", result.render(&segment.tenant, &segment.execution.to_string()));
            }
            Event::LoopOpened { step, run, mode, .. } => {
                self.stage(step, *run, "kind", "loop".into());
                if let Some(row) = self.loops.get_mut(&format!("{step}#{run}")) {
                    row.insert("mode".to_owned(), json!(mode));
                    row.insert("loop_event_id".to_owned(), last_id(recorded.id).to_string().into());
                }
            }
            Event::Set { values, .. } => self.variables(event, values),
            Event::CancelRequested { reason, requested_by } => {
                let cancel = json!({"reason": reason, "requested_by": requested_by});
                self.execution.insert("cancel".to_owned(), cancel);
            }
            Event::Finished(finished) => {
                self.execution.insert("output".to_owned(), json!(finished.output));
                self.execution.insert("error".to_owned(), finished.error.as_ref().map(failure).into());
                self.execution.insert("failed_steps".to_owned(), finished.failed_steps.clone().into());
            }
            Event::Failing { step, error } => {
                self.execution.insert("failing".to_owned(), json!({"step": step, "error": failure(error)}));
            }
            Event::Arrived { .. }
            | Event::Issued { .. }
            | Event::Claimed { .. }
            | Event::Lost { .. }
            | Event::LoopSpilled { .. }
            | Event::LoopClosed { .. }
            | Event::Skipped { .. }
            | Event::ChildStarted { .. }
            | Event::Parked { .. } => {}
        }
    }

    fn start(&mut self, started: &Started) {
        let mut put = |name: &str, value: Json| self.execution.insert(name.to_owned(), value);
        put("playbook_digest", started.digest.as_str().into());
        put("execution_pool", started.pool.as_deref().into());
        put("workload", started.workload.clone().into());
        put("lenient", started.lenient.into());
    }

    fn stage(&mut self, step: &str, run: u32, name: &str, value: Json) {
        if let Some(stage) = self.stages.get_mut(&format!("{step}#{run}")) {
            stage.insert(name.to_owned(), value);
        }
    }

    fn variables(&mut self, event: &Placed, values: &Map<String, Json>) {
        for (name, value) in values {
            let object = json!({
                "value": value,
                "event_id": last_id(event.recorded.id).to_string(),
                "version": event.segment.version,
            });
            self.objects.insert(name.clone(), object);
        }
    }

    /// In the order of [`SURFACES`].
    fn into_json(self) -> [Json; 6] {
        let objects = |rows: BTreeMap<String, Map<String, Json>>| {
            Json::Object(rows.into_iter().map(|(key, row)| (key, row.into())).collect())
        };
        let values = |rows: BTreeMap<String, Json>| Json::Object(rows.into_iter().collect());
        [
            self.execution.into(),
            objects(self.stages),
            values(self.frames),
            values(self.commands),
            values(self.objects),
            objects(self.loops),
        ]
    }
}

fn object(value: Json) -> Map<String, Json> {
    match value {
        Json::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn of_execution(row: ExecutionRow) -> Map<String, Json> {
    let text = |id: Option<u64>| id.map(|id| id.to_string());
    object(json!({
        "status": row.status, "path": row.path, "playbook_version": row.playbook_version,
        "parent_execution_id": text(row.parent), "root_execution_id": text(row.root),
        "started_at": row.started_ms.map(rfc3339), "ended_at": row.ended_ms.map(rfc3339), "current_step": row.step,
        "requested_by": row.requested_by, "last_event_id": row.last_event.to_string(), "version": row.version,
    }))
}

fn of_step(row: StepRow) -> Map<String, Json> {
    object(json!({
        "step": row.step, "run": row.run, "kind": "step", "status": row.status,
        "entered_at": row.entered_ms.map(rfc3339), "ended_at": row.ended_ms.map(rfc3339), "error": row.error,
        "version": row.version,
    }))
}

fn of_loop(row: LoopRow) -> Map<String, Json> {
    object(json!({
        "step": row.step, "run": row.run, "total": row.total, "succeeded": row.succeeded, "failed": row.failed,
        "status": row.status, "version": row.version,
    }))
}

#[cfg(test)]
mod tests;
