//! What can go wrong with a change or a resolution. Each has a stable code for programs.

use noetl_contract::manifest::World;
use noetl_contract::{Digest, PluginPath, Ring, Tenant, Version};

use crate::ledger::LedgerError;
use crate::names::ChannelName;
use crate::signatures::AttestationError;

/// Why a change was refused. Nothing was written unless it is [`CatalogError::Ledger`].
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error(
        "{path} {version} is taken by other bytes ({}{}): versions never change, push under a new one",
        existing.short(), if *deleted { ", deleted since" } else { "" }
    )]
    VersionTaken { path: PluginPath, version: Version, existing: Digest, deleted: bool },
    #[error("{path} {version} is in ring `{existing}` and cannot change to `{asked}`: push under a new version")]
    RingTaken { path: PluginPath, version: Version, existing: Ring, asked: Ring },
    #[error("the bytes {digest} of {path} {version} are not in the store: push them again")]
    BytesMissing { path: PluginPath, version: Version, digest: Digest },
    #[error("`{actor}` acts for tenant `{tenant}` and cannot change `{what}`")]
    Forbidden { actor: String, tenant: Tenant, what: String },
    #[error("there is no plugin `{0}`")]
    NoPlugin(PluginPath),
    #[error("{path} has no version {version}: {}", known_versions(known))]
    NoVersion { path: PluginPath, version: Version, known: Vec<Version> },
    #[error("`{0}` serves nothing on channel `stable`: move that to a version first")]
    NotServing(PluginPath),
    #[error("channel `{channel}` of {path} has nothing to roll back to")]
    NothingBefore { path: PluginPath, channel: ChannelName },
    #[error("{path} {version} is in use by {by}: move that first")]
    InUse { path: PluginPath, version: Version, by: String },
    #[error("{path} {version} is compiled into the binary: it cannot be deleted, and it is trusted as the binary is")]
    CompiledIn { path: PluginPath, version: Version },
    #[error("`{path}` belongs to another tenant than `{tenant}`")]
    Foreign { path: PluginPath, tenant: Tenant },
    #[error("`{service}` cannot be overridden: its manifest does not say `overridable = true`")]
    NotOverridable { service: PluginPath },
    #[error("`{service}` cannot be bound to itself")]
    BoundToItself { service: PluginPath },
    #[error("`{to}` is a {to_world}, but `{service}` is a {service_world}: bind a plugin of the same world")]
    OtherWorld { service: PluginPath, service_world: World, to: PluginPath, to_world: World },
    #[error("`{to}` is in ring `{ring}`: a tenant's override runs in ring `tenant` or below")]
    RingTooHigh { to: PluginPath, ring: Ring },
    #[error(transparent)]
    Attestation(#[from] AttestationError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl CatalogError {
    pub fn code(&self) -> &'static str {
        match self {
            CatalogError::VersionTaken { .. } => "version_taken",
            CatalogError::RingTaken { .. } => "ring_taken",
            CatalogError::BytesMissing { .. } => "bytes_missing",
            CatalogError::Forbidden { .. } => "forbidden",
            CatalogError::NoPlugin(_) => "plugin_not_found",
            CatalogError::NoVersion { .. } => "version_not_found",
            CatalogError::NotServing(_) => "not_serving",
            CatalogError::NothingBefore { .. } => "nothing_before",
            CatalogError::InUse { .. } => "version_in_use",
            CatalogError::CompiledIn { .. } => "compiled_in",
            CatalogError::Foreign { .. } => "foreign_tenant",
            CatalogError::NotOverridable { .. } => "not_overridable",
            CatalogError::BoundToItself { .. } => "bound_to_itself",
            CatalogError::OtherWorld { .. } => "other_world",
            CatalogError::RingTooHigh { .. } => "ring_too_high",
            CatalogError::Attestation(_) => "invalid_attestation",
            CatalogError::Ledger(_) => "store_unavailable",
        }
    }
}

/// Why no version was found for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    #[error("there is no plugin `{0}`")]
    NotFound(PluginPath),
    #[error("`{path}` belongs to another tenant than `{tenant}`")]
    Foreign { path: PluginPath, tenant: Tenant },
    #[error("{path} has no version {version}: {}", known_versions(known))]
    NoVersion { path: PluginPath, version: Version, known: Vec<Version> },
    #[error("{path} has no channel `{channel}`: {}", known_channels(known))]
    NoChannel { path: PluginPath, channel: ChannelName, known: Vec<ChannelName> },
    #[error("tenant `{tenant}` is pinned to {path} {version}, which is gone: move or remove the pin")]
    PinBroken { tenant: Tenant, path: PluginPath, version: Version },
    #[error("tenant `{tenant}` has `{service}` bound to `{to}`, which cannot serve: {problem}; bind another plugin")]
    BindingBroken { tenant: Tenant, service: PluginPath, to: PluginPath, problem: String },
}

impl ResolveError {
    pub fn code(&self) -> &'static str {
        match self {
            ResolveError::NotFound(_) => "plugin_not_found",
            ResolveError::Foreign { .. } => "foreign_tenant",
            ResolveError::NoVersion { .. } => "version_not_found",
            ResolveError::NoChannel { .. } => "channel_not_found",
            ResolveError::PinBroken { .. } => "pin_broken",
            ResolveError::BindingBroken { .. } => "binding_broken",
        }
    }
}

/// Why the catalog could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the catalog could not be read from the log")]
    Ledger(#[from] LedgerError),
    #[error("two components compiled into the binary have the path `{0}`")]
    EmbeddedTwice(PluginPath),
}

fn known_versions(known: &[Version]) -> String {
    match known {
        [] => "it has none".to_owned(),
        known => {
            let newest: Vec<String> = known.iter().rev().take(5).map(Version::to_string).collect();
            format!("the newest are {}", newest.join(", "))
        }
    }
}

fn known_channels(known: &[ChannelName]) -> String {
    match known {
        [] => "it has none".to_owned(),
        known => format!("it has {}", known.iter().map(ChannelName::as_str).collect::<Vec<_>>().join(", ")),
    }
}
