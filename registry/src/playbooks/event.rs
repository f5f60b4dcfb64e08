//! The events of the stream `playbooks`. They are written once and read for ever: fields are only added, with a
//! default, and a new kind of change is a new type.

use std::collections::BTreeMap;

use noetl_contract::{Digest, Tenant};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::{Owner, PlaybookPath};
use crate::ledger;

/// One change, with who made it; when is what the log says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PlaybookEvent {
    #[serde(flatten)]
    pub what: What,
    pub tenant: Owner,
    pub path: PlaybookPath,
    pub by: String,
    /// The tenant of whoever made it; none for an administrator.
    pub by_tenant: Option<Tenant>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum What {
    Registered(Box<NewVersion>),
    /// Versions that are not found by their path alone any more.
    Archived {
        versions: Vec<u32>,
    },
    Restored {
        versions: Vec<u32>,
    },
    /// Versions that are gone. Their numbers stay taken.
    Deleted {
        versions: Vec<u32>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct NewVersion {
    pub version: u32,
    pub digest: Digest,
    pub size: u64,
    pub kind: String,
    pub description: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub schedule: Option<Value>,
}

impl ledger::Event for PlaybookEvent {
    const KINDS: &'static [&'static str] = &["registered", "archived", "restored", "deleted"];
}
