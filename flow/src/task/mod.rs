//! What a command is to a runner.
//!
//! A task goes from the orchestrator to the runner as two lines of JSON: the [`Spec`], the same bytes for every command
//! of a step, so that a runner compiles its templates once; and the [`Inputs`], which differ. A [`Report`] comes back.
//!
//! [`Runner`] is what a runner does with it, a [`turn`] at a time.

pub(crate) mod aliases;
mod digits;
mod early;
mod held;
mod kept;
mod machine;
mod memory;
mod outcome;
mod plan;
mod policy;
mod prepare;
mod report;
mod scope;
pub mod turn;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::event::{Data, Failure, Reference};
use crate::keychain::Keychain;
use crate::template::is_template;

pub(crate) use early::acknowledges_early;
pub use machine::{CALLS, CALLS_WITH_JUMPS, Runner};

/// Tools that run the step's own code, which may ask where it is and what the execution's variables are.
pub const TOLD: &[&str] = &["python", "javascript"];
/// The name code knows the variables of the execution by.
pub const VARIABLES: &str = "variables";

/// The name code knows everything by that templates can name.
pub const CONTEXT: &str = "context";
/// What templates call the result of the step that led to theirs, where nothing else is called so.
pub const PREVIOUS: &str = "result";

/// Whether code of a step may look for results of other steps by itself. What it is may not be known yet.
pub fn reads_context(kind: &str, code: Option<&str>) -> bool {
    kind == "python" && code.is_none_or(|code| code.contains(CONTEXT) || is_template(code))
}

/// Compiled tasks a runner keeps.
const PLANS: usize = 1024;

/// The part of a task that is the same for every command of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub step: String,
    /// In order; one for a step whose tool is an object.
    pub tools: Vec<Tool>,
    /// Whether the step's tool was a list: then its result is an object of the results by label.
    pub pipeline: bool,
    /// Fields of a result to keep inline beside the reference, when it becomes a payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub output_select: Vec<String>,
    /// Whether the result is kept as a payload however small it is, because the playbook means to refer to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// What names of credentials stand for, when a template uses them.
    #[serde(default, skip_serializing_if = "Keychain::is_empty")]
    pub keychain: Keychain,
}

/// The name in a tool's `input` under which an expression stands that gives all of it: `input: "{{ row }}"`. Fields beside
/// it win.
pub const WHOLE: &str = "*";

/// One tool of a step, with its templates as they were written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub label: String,
    pub kind: String,
    /// Everything but `kind`, `name`, `input`, `set` and `spec`.
    pub config: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub input: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether a call with an unknown outcome may be made again; what the tool says of itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_safe: Option<bool>,
}

/// A policy rule: the first whose guard holds decides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// A template or a boolean; nothing for `else`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Json>,
    /// Nothing leaves the default: go on after a success, fail after an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Json>,
}

impl Rule {
    /// The template of its delay.
    pub fn delay(&self) -> Option<&str> {
        match &self.action {
            Some(Action::Retry { delay, .. }) => delay.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Continue,
    Break,
    Fail,
    Jump {
        to: String,
    },
    Retry {
        /// In total, the first one included.
        attempts: u32,
        backoff: Backoff,
        delay_ms: u64,
        /// The template of a delay, in whose place `delay_ms` is when it gives nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delay: Option<String>,
        /// No delay is longer than this.
        max_delay_ms: u64,
        /// Part of the delay, 0 to 1, that is taken from the hash of the command.
        jitter: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backoff {
    None,
    Fixed,
    Linear,
    Exponential,
}

/// The part of a task that differs from command to command.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Inputs {
    /// What the templates of the step refer to, at the top level of their context; `ctx`, `workload`, `iter`, `job` and
    /// `execution_id` among them.
    pub context: Map<String, Json>,
    /// Names in `context` whose value is only an extract, and where the whole is: `fetch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<(String, Partial)>,
    /// Names in `context` that are results of steps, which templates see as [`crate::template::step_value`] says; true
    /// for the result of a pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<(String, bool)>,
    /// Those of them that only their shape says to be a pipeline's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed_on: Vec<String>,
    /// Those of them that are what a loop over a pipeline came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
    /// The kinds of store that the playbook asks for, by the names of the results.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, String>,
    /// Merged into every tool's `input`, which wins: the iteration's variables.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub bind: Map<String, Json>,
    /// What placeholders of secrets are written with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// Where the whole of a step's result is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partial {
    Payload(Reference),
    /// Results of a loop: `results` and `data` are the chunks put together in order of their index.
    Chunks(Vec<Reference>),
}

/// What a runner says of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whole, or the extract of the bulk that goes with the report; `reference` is filled in by whoever keeps it.
    pub data: Data,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The work could not be done at all, as against a tool that says that it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(default)]
    pub calls: u32,
    #[serde(default)]
    pub took: u64,
}
