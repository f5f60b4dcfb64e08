//! `plugin.toml`: what a plugin says about itself.
//!
//! The file is a request, never a grant: it can ask for less than its ring allows, not for more, and it
//! cannot name its ring or its digest. Because it decides what code may touch, nothing in it is ignored: an
//! unknown key, a wrong type or a value out of bounds is an error, and all errors of a file are reported
//! at once, each with line, column and what to write instead.
//!
//! Invariants:
//! 1. A [`Manifest`] that exists passed every check of this module.
//! 2. What a file leaves out has the default of its row in [`options::OPTIONS`], and that is what the
//!    documentation shows.
//!
//! The text travels inside the component, in a custom section ([`section`]), so that one digest covers
//! code and request alike.

use std::collections::BTreeMap;
use std::fmt;

use semver::VersionReq;
use serde::{Deserialize, Serialize};

use crate::ids::{PluginPath, Version};
use crate::limits::Limits;
use crate::packages::{ENGINE_PACKAGE, INTERPRETER_PACKAGE, WORLDS_PACKAGE};
use crate::rings::CapabilitySet;

pub mod docs;
pub(crate) mod errors;
mod hosts;
mod language;
pub mod options;
mod parse;
pub mod section;

pub use errors::{ManifestErrors, Problem};
pub use hosts::HostPattern;
pub use language::Language;
pub use section::{SECTION, SectionError, embed, extract, replace};

/// A checked `plugin.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub path: PluginPath,
    pub version: Version,
    pub world: World,
    pub description: String,
    pub capabilities: CapabilitySet,
    pub overridable: bool,
    pub instance: InstancePolicy,
    /// Whether a call with an unknown outcome may be made again.
    pub retry_safe: bool,
    pub limits: Limits,
    pub failure: FailurePolicy,
    pub http: HttpPolicy,
    /// Package without version (`noetl:kv`) to what the plugin needs of it.
    pub contract: BTreeMap<String, VersionReq>,
    pub build: BuildPolicy,
    /// For a plugin that is source text: what runs it, and where it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourcePolicy>,
}

/// The shape of a plugin: which functions it exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    Transform,
    Tool,
    Interpreter,
    Orchestrator,
    Runner,
    StateBuilder,
    Projector,
    Publisher,
}

impl World {
    pub const ALL: [World; 8] = [
        World::Transform,
        World::Tool,
        World::Interpreter,
        World::Orchestrator,
        World::Runner,
        World::StateBuilder,
        World::Projector,
        World::Publisher,
    ];

    /// As in `plugin.toml` and in the WIT package `noetl:worlds`.
    pub fn name(self) -> &'static str {
        match self {
            World::Transform => "transform",
            World::Tool => "tool",
            World::Interpreter => "interpreter",
            World::Orchestrator => "orchestrator",
            World::Runner => "runner",
            World::StateBuilder => "state-builder",
            World::Projector => "projector",
            World::Publisher => "publisher",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|world| world.name() == name)
    }

    /// The package that defines it.
    pub fn package(self) -> &'static str {
        match self {
            World::Transform | World::Tool => WORLDS_PACKAGE,
            World::Interpreter => INTERPRETER_PACKAGE,
            _ => ENGINE_PACKAGE,
        }
    }

    /// Whether the kernel itself calls it, and nobody else: a service of the engine.
    pub fn is_service(self) -> bool {
        !matches!(self, World::Transform | World::Tool | World::Interpreter)
    }

    /// The functions a component of this world must export.
    pub fn exports(self) -> &'static [&'static str] {
        match self {
            World::Transform => &["run"],
            World::Tool => &["call"],
            World::Interpreter => &["load", "run", "call", "describe"],
            World::Orchestrator => &["noetl:engine/orchestration@0.1.0", "noetl:engine/scheduling@0.1.0"],
            World::Runner => &["noetl:engine/running@0.1.0"],
            World::StateBuilder => &["noetl:engine/state-building@0.1.0"],
            World::Projector => &["noetl:engine/projecting@0.1.0"],
            World::Publisher => &["noetl:engine/publishing@0.1.0"],
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How long a sandbox lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstancePolicy {
    /// One call.
    #[default]
    Fresh,
    /// Until it is dropped, which can be at any time.
    Resident,
}

/// What happens when calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailurePolicy {
    /// Faults in a row before the plugin rests; 0 is never.
    pub quarantine_after: u32,
    pub quarantine_secs: u32,
    /// Whether a bad new version is taken back by itself.
    pub rollback: bool,
}

/// Which hosts `http-client` may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HttpPolicy {
    pub allow: Vec<HostPattern>,
}

impl HttpPolicy {
    /// Whether any pattern covers the host (a name or address without brackets) and port.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.allow.iter().any(|pattern| pattern.matches(host, port))
    }

    /// The patterns that reach beyond what the other policy allows.
    pub fn beyond(&self, other: &HttpPolicy) -> Vec<HostPattern> {
        let is_new = |pattern: &&HostPattern| !other.allow.iter().any(|known| known.covers(pattern));
        self.allow.iter().filter(is_new).cloned().collect()
    }
}

/// How `noetl plugin build` makes the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct BuildPolicy {
    pub target: BuildTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum BuildTarget {
    #[default]
    #[serde(rename = "wasm32-unknown-unknown")]
    Unknown,
    #[serde(rename = "wasm32-wasip2")]
    Wasip2,
}

impl BuildTarget {
    /// As the compiler spells it.
    pub fn name(self) -> &'static str {
        match self {
            BuildTarget::Unknown => "wasm32-unknown-unknown",
            BuildTarget::Wasip2 => "wasm32-wasip2",
        }
    }
}

/// What a plugin that is source text says about its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SourcePolicy {
    /// `python`: the interpreter is the plugin `system/interpreters/python`.
    pub language: Language,
    /// The file that is run first, by its path in the bundle.
    pub entry: String,
}

impl Manifest {
    /// Reads a `plugin.toml`, reporting everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Manifest, ManifestErrors> {
        parse::parse(text)
    }
}

#[cfg(test)]
mod tests;
