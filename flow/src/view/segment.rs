//! A commit of an execution, as it is read back.
//!
//! Readers of tables and streams must get past anything: an event of a kind this version does not know (it was written
//! by a newer one that has been taken back) is still an event with an id and a time, and a line that is not an event at
//! all is left out. Replay, which vouches for what it says, refuses both instead ([`follow`]).

use serde::Deserialize;
use serde_json::Value as Json;

use super::upcast::Upcasters;
use crate::event::{Event, Recorded};
use crate::ids::CommandId;

/// One commit of one execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Segment {
    pub execution: u64,
    pub tenant: String,
    /// Place in the execution's chain, from 1.
    pub version: u64,
    /// Place in the whole log.
    pub position: u64,
    pub time_ms: u64,
    /// The sha256 of the component that decided it.
    pub decided_by: String,
    /// Events, one JSON object a line.
    pub events: Vec<u8>,
}

/// An event that could be read, or as much of it as could.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<'a> {
    Known(Placed<'a>),
    Unknown(Unknown),
}

/// An event, the segment it came in, and what it means there.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<'a> {
    pub segment: &'a Segment,
    pub recorded: Recorded,
    /// A report that a cursor handed out items, which is not the end of its step. The report itself does not say so;
    /// the `claimed` event that follows it in the same segment does.
    pub claim: bool,
}

/// An event of a kind that is not known here.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Unknown {
    pub id: u64,
    pub at: u64,
    #[serde(rename = "by", default)]
    pub cause: u64,
    #[serde(rename = "e", default)]
    pub event: Json,
}

/// Why a chain cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    Empty,
    /// Segments of two executions, or not one after the other.
    Gap {
        expected: u64,
        found: u64,
    },
    Mixed {
        first: u64,
        other: u64,
    },
    Line {
        version: u64,
        problem: String,
    },
    /// Ids of events count from 1 without gaps.
    Id {
        expected: u64,
        found: u64,
    },
    /// The fold of the engine does not accept the chain.
    State(String),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Empty => write!(f, "there are no events of this execution"),
            Broken::Gap { expected, found } => {
                write!(f, "the chain has a gap: segment {expected} should follow, {found} does")
            }
            Broken::Mixed { first, other } => write!(f, "segments of executions {first} and {other} are mixed"),
            Broken::Line { version, problem } => write!(f, "an event of segment {version} cannot be read: {problem}"),
            Broken::Id { expected, found } => write!(f, "event {expected} should follow, {found} does"),
            Broken::State(problem) => write!(f, "the state cannot be folded: {problem}"),
        }
    }
}

impl std::error::Error for Broken {}

impl Segment {
    /// Whatever can be read of it.
    pub fn lines(&self, upcasters: &Upcasters) -> Vec<Line<'_>> {
        let lines = raw_lines(&self.events).filter_map(|raw| match parse(raw, upcasters) {
            Ok(recorded) => Some(Line::Known(Placed { segment: self, recorded, claim: false })),
            Err(_) => serde_json::from_slice(raw).ok().map(Line::Unknown),
        });
        let mut lines: Vec<_> = lines.collect();
        let known = lines.iter_mut().filter_map(|line| match line {
            Line::Known(placed) => Some(placed),
            Line::Unknown(_) => None,
        });
        mark_claims(known.collect());
        lines
    }
}

/// Finds the reports of claims among the events of one segment.
fn mark_claims(mut events: Vec<&mut Placed<'_>>) {
    for place in 0..events.len() {
        let Event::Claimed { step, run, .. } = &events[place].recorded.event else { continue };
        let of_same_step = |event: &Event| match event {
            Event::Reported(reported) => {
                let CommandId { step: of, run: in_run, iteration, .. } = &reported.command;
                reported.error.is_none() && iteration.is_none() && of == step && in_run == run
            }
            _ => false,
        };
        let report = events[..place].iter().rposition(|event| of_same_step(&event.recorded.event));
        if let Some(report) = report {
            events[report].claim = true;
        }
    }
}

/// All events of a whole chain, which must begin at its beginning and have no gap.
pub fn follow<'a>(segments: &'a [Segment], upcasters: &Upcasters) -> Result<Vec<Placed<'a>>, Broken> {
    let first = segments.first().ok_or(Broken::Empty)?;
    let mut events: Vec<Placed<'a>> = Vec::new();
    for (place, segment) in (1u64..).zip(segments) {
        if segment.execution != first.execution {
            return Err(Broken::Mixed { first: first.execution, other: segment.execution });
        }
        if segment.version != place {
            return Err(Broken::Gap { expected: place, found: segment.version });
        }
        let before = events.len();
        for raw in raw_lines(&segment.events) {
            let unreadable = |error: serde_json::Error| Broken::Line { version: place, problem: error.to_string() };
            let recorded = parse(raw, upcasters).map_err(unreadable)?;
            let expected = events.last().map_or(1, |last| last.recorded.id + 1);
            if recorded.id != expected {
                return Err(Broken::Id { expected, found: recorded.id });
            }
            events.push(Placed { segment, recorded, claim: false });
        }
        mark_claims(events[before..].iter_mut().collect());
    }
    if events.is_empty() { Err(Broken::Empty) } else { Ok(events) }
}

fn raw_lines(events: &[u8]) -> impl Iterator<Item = &[u8]> {
    events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn parse(raw: &[u8], upcasters: &Upcasters) -> Result<Recorded, serde_json::Error> {
    if upcasters.is_empty() {
        return serde_json::from_slice(raw);
    }
    serde_json::from_value(upcasters.lift(serde_json::from_slice(raw)?))
}
