//! What a playbook is once its text has been read and checked.
//!
//! Everything that can be settled without running is settled here, so that whoever runs a playbook meets one form of
//! each thing: old spellings are gone, references to the workbook are replaced by what they refer to, a step's `input`
//! is merged into its tools, durations are milliseconds, guards are templates or booleans.
//!
//! Invariants of a parsed playbook:
//! 1. `entry` names a step; names of steps are unique; every arc leads to a step.
//! 2. A step has at least one tool or parks. Labels are unique within a step and every jump finds one.
//! 3. Every template compiles.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::event::LoopMode;
use crate::keychain::Keychain;
use crate::task::{Spec, Tool};

#[derive(Debug, Clone, PartialEq)]
pub struct Playbook {
    /// The sha256 of the text, in hexadecimal.
    pub digest: String,
    pub metadata: Metadata,
    /// Defaults of the variables, templates as written.
    pub workload: Map<String, Json>,
    pub executor: Executor,
    /// The step an execution begins with.
    pub entry: String,
    /// In the order they were written.
    pub steps: Vec<Step>,
    /// What names of credentials stand for in templates.
    pub keychain: Keychain,
    /// As written, already checked: see [`crate::schedule`].
    pub schedule: Option<Json>,
}

impl Playbook {
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Kinds of tools that only playbooks below `system/` may use, once each.
    pub fn system_kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.tools().map(|tool| tool.kind.as_str()).filter(|kind| is_system(kind)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Every tool of every step, with the claims of cursors.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.steps.iter().flat_map(|step| {
            let tasks = match &step.work {
                Work::Task(spec) => spec.tools.as_slice(),
                Work::Park(_) => &[],
            };
            let claim = step.repeat.as_ref().and_then(|repeat| repeat.cursor.as_ref()).map(|cursor| &cursor.claim);
            tasks.iter().chain(claim)
        })
    }
}

fn is_system(kind: &str) -> bool {
    kind.starts_with("system_")
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    pub name: String,
    /// Where the catalog keeps it; the name when nothing else is said.
    pub path: String,
    pub description: Option<String>,
    pub labels: BTreeMap<String, String>,
}

/// How the playbook as a whole is run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Executor {
    pub profile: Option<String>,
    pub version: Option<String>,
    /// Tools and features the playbook cannot do without.
    pub requires: Requires,
    pub timeout_ms: Option<u64>,
    /// Nothing leaves the choice to the server.
    pub failures: Option<Failures>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requires {
    pub tools: Vec<String>,
    pub features: Vec<String>,
}

/// What a step that failed, and that nothing handles, does to its execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failures {
    /// Its arcs are followed as if it had succeeded.
    Lenient,
    /// The execution fails.
    Strict,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub description: Option<String>,
    /// A guard: when it is false the step is skipped.
    pub when: Option<Json>,
    /// Further guards, the first that holds decides; admitted if none does.
    pub admit: Vec<Admit>,
    pub work: Work,
    pub repeat: Option<Loop>,
    /// Variables written after the step: name (`ctx.x`, as written) and template.
    pub set: Map<String, Json>,
    pub next: Next,
    /// For all of the step's work, retries and waiting included, of each command of it.
    pub timeout_ms: Option<u64>,
    pub on_error: Option<OnError>,
    /// The kind of store that its result is meant for. All of them are kept alike.
    pub store: Option<String>,
}

/// `spec.on_error`: the choice of [`Failures`] for one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    Fail,
    Continue,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// What a runner is given: the tools in order, and which fields of the result to keep inline.
    Task(Spec),
    /// The step waits until somebody resumes it.
    Park(Park),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Park {
    /// A template: what whoever resumes should know.
    pub message: Option<String>,
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Admit {
    /// Nothing for `else`.
    pub when: Option<Json>,
    pub allow: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    pub mode: LoopMode,
    /// A template, or the list itself; null for a cursor.
    pub over: Json,
    /// Name of the variable an item is bound to.
    pub iterator: String,
    pub max_in_flight: Option<Limit>,
    /// There if and only if the mode is [`LoopMode::Cursor`].
    pub cursor: Option<Cursor>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// At least 1.
    Number(u32),
    Template(String),
}

/// A loop over what a query hands out, a frame at a time, until it hands out nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// Called for every frame; `claim` has become its `command`. Its label is `claim`.
    pub claim: Tool,
    /// `__frame_max_rows` of the claim; at least 1.
    pub max_rows: u32,
    /// Rows of a frame in flight; at least 1.
    pub row_concurrency: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    pub mode: NextMode,
    /// In order. Empty ends the path.
    pub arcs: Vec<Arc>,
    /// `executor.spec.no_next_is_error` is the default of every step's.
    pub on_no_match: OnNoMatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextMode {
    /// The first arc whose guard holds.
    Exclusive,
    /// Every arc whose guard holds.
    Inclusive,
}

/// What a step with arcs of which none matches does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNoMatch {
    /// Its path ends, as if it had no arcs.
    End,
    /// The execution fails.
    Fail,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Arc {
    pub step: String,
    /// A boolean or a template; nothing always holds.
    pub when: Option<Json>,
    /// Variables written when the arc is taken: name, as written, and template.
    pub set: Map<String, Json>,
}
