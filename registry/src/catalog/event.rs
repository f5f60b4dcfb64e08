//! The events of the stream `catalog`. They are written once and read for ever: fields are only added, with
//! a default, and a new kind of change is a new type.

use noetl_contract::{Digest, Manifest, PluginPath, Ring, Tenant, Version};
use serde::{Deserialize, Serialize};

use crate::ledger;
use crate::names::ChannelName;
use crate::signatures::Envelope;

/// One change, with who made it and why; when is what the log says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogEvent {
    #[serde(flatten)]
    pub what: What,
    pub by: String,
    /// The tenant of whoever made it; none for an administrator.
    pub by_tenant: Option<Tenant>,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// A version came into being and its channel points to it.
    VersionPushed(Box<PushedVersion>),
    /// `to: null` is the version compiled into the binary.
    ChannelMoved {
        path: PluginPath,
        channel: ChannelName,
        to: Option<Version>,
    },
    /// Like a move, but what was left is not somewhere to roll back to.
    RolledBack {
        path: PluginPath,
        channel: ChannelName,
        to: Option<Version>,
    },
    Pinned {
        tenant: Tenant,
        path: PluginPath,
        version: Version,
    },
    Unpinned {
        tenant: Tenant,
        path: PluginPath,
    },
    Bound {
        tenant: Tenant,
        service: PluginPath,
        to: PluginPath,
    },
    Unbound {
        tenant: Tenant,
        service: PluginPath,
    },
    VersionDeleted {
        path: PluginPath,
        version: Version,
    },
    /// All that is said about a version from now on: what was there and what came.
    VersionAttested {
        path: PluginPath,
        version: Version,
        attestations: Vec<Envelope>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PushedVersion {
    pub manifest: Manifest,
    pub digest: Digest,
    pub size: u64,
    pub ring: Ring,
    pub imports: Vec<String>,
    pub channel: ChannelName,
    /// What runs it, for a version that is source text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<Digest>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attestations: Vec<Envelope>,
}

impl ledger::Event for CatalogEvent {
    const KINDS: &'static [&'static str] = &[
        "version_pushed",
        "channel_moved",
        "rolled_back",
        "pinned",
        "unpinned",
        "bound",
        "unbound",
        "version_deleted",
        "version_attested",
    ];
}

impl What {
    /// The paths in whose history the change belongs.
    pub fn paths(&self) -> Vec<&PluginPath> {
        match self {
            What::VersionPushed(pushed) => vec![&pushed.manifest.path],
            What::ChannelMoved { path, .. }
            | What::RolledBack { path, .. }
            | What::Pinned { path, .. }
            | What::Unpinned { path, .. }
            | What::VersionDeleted { path, .. }
            | What::VersionAttested { path, .. } => vec![path],
            What::Bound { service, to, .. } => vec![service, to],
            What::Unbound { service, .. } => vec![service],
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        let target = |to: &Option<Version>| {
            to.as_ref().map_or_else(|| "the version compiled in".to_owned(), |version| version.to_string())
        };
        match self {
            What::VersionPushed(pushed) => format!(
                "pushed {} ({}, ring {}) to channel `{}`",
                pushed.manifest.version,
                pushed.digest.short(),
                pushed.ring,
                pushed.channel
            ),
            What::ChannelMoved { channel, to, .. } => format!("moved channel `{channel}` to {}", target(to)),
            What::RolledBack { channel, to, .. } => format!("rolled channel `{channel}` back to {}", target(to)),
            What::Pinned { tenant, version, .. } => format!("pinned tenant `{tenant}` to {version}"),
            What::Unpinned { tenant, .. } => format!("removed the pin of tenant `{tenant}`"),
            What::Bound { tenant, service, to } => format!("bound `{service}` to `{to}` for tenant `{tenant}`"),
            What::Unbound { tenant, service } => format!("removed the binding of `{service}` for tenant `{tenant}`"),
            What::VersionDeleted { version, .. } => format!("deleted {version}"),
            What::VersionAttested { version, .. } => format!("took attestations of {version}"),
        }
    }
}
