//! The events as people read them.
//!
//! A compact event becomes one to eight events of the full taxonomy: a report, for instance, is `command.claimed`,
//! `command.started`, `call.done`, `command.completed` and `step.exit`. What is written once is told in the words
//! people and their tools know.
//!
//! Ids are dense at the end: the last event made of compact event `n` has the id `8n + 7`, the one before it `8n + 6`,
//! and so on. So the event before the first one of `n` is known without reading it: it is `8(n-1) + 7`. That makes the
//! expansion of a part of a chain equal to that part of the expansion of the chain.
//!
//! Invariants:
//! 1. Every compact event gives at least one event, and at most eight; each has an id of its own.
//! 2. `prev_event_id` is the event before it in this order, null only for the first of the execution.
//! 3. `parent_event_id` is what it follows from: the last event made of the compact cause, or, within one compact
//!    event, the one before.
//! 4. A result's data is in one event only, `call.done` (`call.error`); the others refer to it by the command.
//!
//! All events made of one compact event have its time: they became known together. A line that cannot be read is left
//! out; an event of an unknown kind is shown as `event.unknown`.

use serde_json::{Value as Json, json};

use super::segment::{Line, Placed, Segment, Unknown};
use super::time::rfc3339;
use super::upcast::Upcasters;
use crate::event::Recorded;

mod draft;
mod told;

use draft::Draft;
pub(super) use draft::{Outcome, failure};
use told::drafts;

/// Events made of one compact event, at most.
pub const FACTOR: u64 = 8;

/// The id of the last event that is made of a compact event.
pub fn last_id(compact: u64) -> u64 {
    compact * FACTOR + FACTOR - 1
}

/// The compact event that an event was made of.
pub fn compact_id(expanded: u64) -> u64 {
    expanded / FACTOR
}

/// All events of the segments, in order.
pub fn expand(segments: &[Segment]) -> Vec<Json> {
    let upcasters = Upcasters::current();
    let mut events = Vec::new();
    for segment in segments {
        for line in segment.lines(&upcasters) {
            match line {
                Line::Known(placed) => expand_known(&placed, &mut events),
                Line::Unknown(unknown) => expand_unknown(segment, unknown, &mut events),
            }
        }
    }
    events
}

/// Ids and types of the events that are made of one; the last comes last.
pub fn outline(placed: &Placed) -> Vec<(u64, &'static str)> {
    let drafts = drafts(placed);
    let first = last_id(placed.recorded.id) + 1 - drafts.len() as u64;
    (first..).zip(drafts.iter().map(|draft| draft.kind)).collect()
}

fn expand_known(placed: &Placed, out: &mut Vec<Json>) {
    let drafts = drafts(placed);
    let Recorded { id, at, cause, .. } = placed.recorded;
    let place = Place::of(placed.segment, id, at, cause, drafts.len() as u64);
    for (k, draft) in (0u64..).zip(drafts) {
        out.push(place.finish(k, draft));
    }
}

fn expand_unknown(segment: &Segment, unknown: Unknown, out: &mut Vec<Json>) {
    let draft = Draft::new("event.unknown", "playbook", "unknown", "COMPLETED").meta("event", unknown.event);
    out.push(Place::of(segment, unknown.id, unknown.at, unknown.cause, 1).finish(0, draft));
}

/// What all events made of one compact event share.
struct Place<'a> {
    segment: &'a Segment,
    execution: String,
    created_at: String,
    /// Id of the first.
    first: u64,
    before: Option<u64>,
    cause: Option<u64>,
}

impl<'a> Place<'a> {
    fn of(segment: &'a Segment, id: u64, at: u64, cause: u64, count: u64) -> Self {
        Self {
            segment,
            execution: segment.execution.to_string(),
            created_at: rfc3339(at),
            first: last_id(id) + 1 - count,
            before: id.checked_sub(1).filter(|before| *before > 0).map(last_id),
            cause: Some(cause).filter(|cause| *cause > 0).map(last_id),
        }
    }

    fn finish(&self, k: u64, draft: Draft) -> Json {
        let id = self.first + k;
        let (prev, parent) = if k == 0 { (self.before, self.cause) } else { (Some(id - 1), Some(id - 1)) };
        let mut meta = draft.meta;
        meta.insert("decided_by".to_owned(), self.segment.decided_by.as_str().into());
        let text = |id: Option<u64>| id.map(|id| id.to_string());
        json!({
            "event_id": id.to_string(),
            "execution_id": self.execution,
            "event_type": draft.kind,
            "node_name": draft.node,
            "node_type": draft.node_type,
            "status": draft.status,
            "created_at": self.created_at,
            "prev_event_id": text(prev),
            "parent_event_id": text(parent),
            "parent_execution_id": draft.parent_execution,
            "tenant_id": self.segment.tenant,
            "organization_id": ORGANIZATION,
            "stream_version": self.segment.version,
            "result": draft.result.map(|result| result.render(&self.segment.tenant, &self.execution)),
            "error": draft.error,
            "meta": meta,
        })
    }
}

/// There is one organization a tenant.
pub const ORGANIZATION: &str = "default";

#[cfg(test)]
mod tests;
