//! What is written down about an execution.
//!
//! An event is here only if it changes what the fold decides. What people are shown besides (`command.claimed`,
//! `step.exit`, ...) follows from these and is made when it is read ([`crate::view`]).
//!
//! Invariants:
//! 1. An execution's first event is `started`, its last `finished`, and it has one of each.
//! 2. Ids count from 1 without gaps; `cause` is the id of an earlier event of the same execution.
//! 3. A value that decided something is in the event, so that folding resolves nothing.
//! 4. Data in an event is at most [`INLINE_BYTES`] of JSON; more is a payload, and the event has its sha256 and an
//!    extract.
//!
//! Fields and variants may be added, never changed or removed: every event ever written must fold for ever.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::ids::CommandId;

/// The most JSON an event carries of a result.
pub const INLINE_BYTES: usize = 4096;

/// An event with its place in the execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    pub id: u64,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The event this one follows from; 0 for the first.
    #[serde(rename = "by", default, skip_serializing_if = "is_zero")]
    pub cause: u64,
    #[serde(rename = "e")]
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started(Box<Started>),
    /// The finished part of a failed execution, taken over.
    Adopted(Box<Adopted>),
    /// A step begins another run.
    Entered {
        step: String,
        run: u32,
        /// The step whose arc led here, and the arc's place in its list; nothing for the first step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arc: Option<u32>,
    },
    /// An arc leads to a step that still waits for others that may lead there too.
    Arrived {
        step: String,
        from: String,
        arc: u32,
    },
    Issued {
        command: CommandId,
        /// Kinds of the tools in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<String>,
        /// The item of an iteration, when the collection is a payload.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<Data>,
    },
    Reported(Box<Reported>),
    /// The worker is gone and the command may be issued again, as the attempt after this one.
    Lost {
        command: CommandId,
    },
    LoopOpened {
        step: String,
        run: u32,
        mode: LoopMode,
        /// Nothing for a cursor, whose end is not known before it is reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        in_flight: Option<u32>,
        items: Items,
    },
    /// A cursor handed out so many items, the next iterations of the loop; after none the loop closes.
    Claimed {
        step: String,
        run: u32,
        count: u32,
        items: Items,
    },
    /// Results of iterations were moved into a payload: a JSON list of `[index, result]`, with a third
    /// element, the reference of the whole, where the result is an extract.
    LoopSpilled {
        step: String,
        run: u32,
        chunk: Reference,
        count: u32,
    },
    LoopClosed {
        step: String,
        run: u32,
        total: u32,
        succeeded: u32,
        failed: u32,
    },
    /// Variables written by `set`.
    Set {
        step: String,
        values: Map<String, Json>,
    },
    /// A step that will not run, because no arc of `from` leads to it any more.
    Skipped {
        step: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
    },
    ChildStarted {
        command: CommandId,
        execution: String,
        path: String,
        /// The tool of a pipeline that started it and waits. Nothing when the command is the child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// The step waits for somebody to resume it.
    Parked {
        step: String,
        run: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// When waiting ends with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    Resumed {
        step: String,
        run: u32,
        data: Data,
        requested_by: String,
    },
    /// A failure that nothing handles. What is in flight may end, nothing else begins.
    Failing {
        step: String,
        error: Failure,
    },
    CancelRequested {
        reason: String,
        requested_by: String,
    },
    Finished(Box<Finished>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    pub tenant: String,
    pub path: String,
    pub version: u32,
    /// The sha256 of the playbook's text.
    pub digest: String,
    /// Playbook's defaults under the request's payload, templates rendered.
    pub workload: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The first execution of the tree, as text.
    pub root: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// What of the environment the playbook refers to.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub env: Map<String, Json>,
    /// What placeholders of secrets are written with. It is shown to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    pub lenient: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    pub requested_by: String,
    /// The step whose result whoever started it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<String>,
}

impl Started {
    /// The execution that started this one: the one that waits for it as for a step, or the one whose pipeline did.
    pub fn starter(&self) -> Option<&str> {
        let waits = self.parent.as_ref().map(|parent| parent.execution.as_str());
        waits.or_else(|| self.requested_by.strip_prefix("execution "))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parent {
    /// Ids of executions are text in JSON, because many readers round large numbers.
    pub execution: String,
    pub command: CommandId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adopted {
    pub execution: String,
    /// The step that is run again.
    pub step: String,
    pub steps: Vec<AdoptedStep>,
    pub context: Map<String, Json>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdoptedStep {
    pub step: String,
    pub run: u32,
    /// Nothing for a step that was skipped.
    pub data: Option<Data>,
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    pub command: CommandId,
    pub data: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The work could not be done at all: no tool answered, or there was none. Where failures are passed over, such a one
    /// is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
    /// Variables written by policy rules.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Json>,
    /// Who did it last: `tools/http@0.1.0`, and the sha256 of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Calls of tools, more than one for pipelines and retries.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub calls: u32,
    /// Milliseconds inside tools.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub took: u64,
    /// The child that did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable, for rules to match: `timeout`, `invalid_input`, `outcome_unknown`, ...
    pub code: String,
    pub message: String,
    #[serde(default)]
    pub retryable: bool,
}

/// A result, whole or as an extract of a payload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Data {
    pub value: Json,
    /// Where the whole is, when `value` is only an extract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// Where the results of a loop are, in chunks, when `value` has only its numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chunks: Vec<Reference>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    pub sha256: String,
    pub size: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopMode {
    Sequential,
    Parallel,
    Cursor,
}

/// What a loop goes over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Items {
    /// `0..n`.
    Count(u32),
    List(Vec<Json>),
    /// A JSON list in a payload.
    Payload(Reference),
    /// Whatever the cursor claims.
    Cursor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Completed,
    Failed,
    Cancelled,
}

impl Ending {
    pub fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Failed => "failed",
            Ending::Cancelled => "cancelled",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub status: Ending,
    /// The result of the last step.
    pub output: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The result of the step that was asked for; nothing if nobody asked, or it never ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Returned>,
    /// Steps that failed, handled or not, in the order they did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_steps: Vec<String>,
}

/// What an execution tells of one of its steps when it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    pub step: String,
    pub data: Data,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_zero_u32(number: &u32) -> bool {
    *number == 0
}
