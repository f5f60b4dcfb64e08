//! What goes into a drive and what comes out, with the names of the contract's `orchestration`.

use crate::event::{Data, Failure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub execution: u64,
    pub command: String,
}

/// The ended execution a new one takes the finished steps of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Again {
    pub execution: u64,
    /// The step to go on from; the failed ones when absent.
    pub step: Option<String>,
    /// Event lines of its commits, in order.
    pub segments: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub tenant: String,
    pub path: String,
    pub version: u32,
    pub digest: String,
    /// One JSON object, laid over the playbook's own workload.
    pub payload: String,
    pub parent: Option<Parent>,
    pub root: u64,
    pub pool: Option<String>,
    pub environment: Vec<(String, String)>,
    pub lenient: bool,
    pub trace: Option<String>,
    pub requested_by: String,
    pub again: Option<Again>,
    /// The step whose result whoever started it asks for.
    pub returns: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportInput {
    pub command: String,
    /// A [`crate::task::Report`].
    pub body: Vec<u8>,
    /// The payload the runner's bulk was kept as: sha256, size in bytes.
    pub stored: Option<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildStarted {
    pub command: String,
    pub execution: u64,
    /// The tool of a pipeline that started it and waits for it: its label, and the playbook's path.
    pub by: Option<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnded {
    pub command: String,
    pub execution: u64,
    pub status: String,
    /// An [`Answer`].
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    pub step: String,
    /// One JSON value: the step's result.
    pub value: String,
    pub requested_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    pub reason: String,
    pub requested_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    Start(Box<Start>),
    Report(ReportInput),
    ChildStarted(ChildStarted),
    ChildEnded(ChildEnded),
    Wake,
    /// The worker of a command is gone. True: the command may run again.
    Lost(String, bool),
    Resume(Resume),
    Cancel(Cancel),
    Abort(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub execution: u64,
    /// Milliseconds since 1970; never goes back within an execution.
    pub time_ms: u64,
    pub what: Happening,
}

/// Work for a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    pub id: String,
    pub pool: String,
    pub tools: Vec<String>,
    /// Two lines of JSON: see [`crate::task`].
    pub task: Vec<u8>,
    pub timeout_ms: Option<u64>,
    /// Whether it may run again when its outcome was lost; what its tools say of themselves when absent.
    pub retry_safe: Option<bool>,
}

/// Another playbook to start, for one of this execution's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pub command: String,
    pub path: String,
    pub version: Option<u32>,
    pub payload: String,
    /// The step of it whose result is wanted.
    pub returns: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub status: String,
    /// An [`Answer`].
    pub body: String,
}

/// What an execution tells whoever started it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The result of the last step.
    #[serde(default)]
    pub output: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The result of the step that was asked for, if it ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, Data>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decided {
    /// To be appended to the chain: one JSON object a line.
    pub events: Vec<u8>,
    /// Payloads the events refer to by their sha256.
    pub keep: Vec<Vec<u8>>,
    pub commands: Vec<Command>,
    pub children: Vec<Child>,
    /// Commands nobody needs any more.
    pub withdrawn: Vec<String>,
    /// Children to be cancelled with their parent.
    pub orphaned: Vec<u64>,
    /// When to be woken at the latest; replaces what was asked before.
    pub wake_at: Option<u64>,
    pub ended: Option<Ended>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    State,
    Playbook(String),
    Value(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Decided(Box<Decided>),
    Needs(Need),
    Ignored(String),
    Refused(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub execution: u64,
    pub outcome: Outcome,
}

/// What a loaded execution waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owed {
    pub commands: Vec<Command>,
    pub children: Vec<Child>,
    /// Children that were started and have not been seen to end: command and execution.
    pub waiting: Vec<(String, u64)>,
    pub wake_at: Option<u64>,
    pub ended: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// The playbook of this digest has to be learned first.
    Playbook(String),
    /// The chain cannot be followed.
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub executions: u64,
    pub playbooks: u64,
    /// Commands that carried the whole context, because it could not be told what their templates refer to.
    pub whole_contexts: u64,
}
