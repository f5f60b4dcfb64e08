//! What a runner remembers of a command between turns: the continuation.
//!
//! It is JSON with a version in front, and what is nothing is left out, since for most commands there is one turn to
//! remember and nothing but the number of the call. One that cannot be read ends the command with an error: going on
//! from a guess could call a tool twice.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::held::{Names, Settable};
use super::outcome::{Outcome, Wanted};

const VERSION: u8 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    #[serde(rename = "v")]
    version: u8,
    /// The tool at work, by its place.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at: u32,
    #[serde(rename = "s")]
    pub stage: Stage,
    /// Tools tried to be called, for the limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub calls: u32,
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub took: u64,
    /// By the tool's place: calls, and retries since it was last passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<(u32, u32)>,
    /// By the tool's place: pieces of work begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    visits: Vec<u32>,
    /// The next call is another try at the same piece of work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_work: bool,
    /// Rounds of asking for payloads without going on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rounds: u32,
    /// Outputs by label.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub results: Names,
    /// Names that were set in this run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub running: IndexMap<String, Settable>,
    /// Those of them that outlive it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub set: Names,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What a command waits for.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// Nothing yet.
    #[default]
    Fresh,
    Calling,
    Executing {
        path: String,
        wanted: Wanted,
    },
    Sleeping,
    /// For payloads, to call the tool.
    Preparing,
    /// For payloads, to make something of what the tool answered.
    Settling(Box<Outcome>),
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let memory: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("the continuation cannot be read: {error}"))?;
        if memory.version == VERSION {
            Ok(memory)
        } else {
            Err(format!("the continuation is of version {} and not {VERSION}", memory.version))
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("everything in it has text keys and finite numbers")
    }

    /// The piece of work the tool is called for now: another one, unless it is the same again.
    pub(super) fn visit(&mut self) -> u32 {
        let place = self.at as usize;
        if self.visits.len() <= place {
            self.visits.resize(place + 1, 0);
        }
        let visit = &mut self.visits[place];
        if !std::mem::take(&mut self.same_work) || *visit == 0 {
            *visit = visit.saturating_add(1);
        }
        *visit
    }

    /// The counts of the tool at work: calls, and retries.
    pub(super) fn counts(&mut self) -> &mut (u32, u32) {
        let place = self.at as usize;
        if self.counts.len() <= place {
            self.counts.resize(place + 1, (0, 0));
        }
        &mut self.counts[place]
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_zero_u64(number: &u64) -> bool {
    *number == 0
}
