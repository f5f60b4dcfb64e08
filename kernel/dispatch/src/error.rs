//! What a caller of the kernel can be told. Each error has a stable code (a help page each) and the HTTP
//! status it maps to, decided here once for every transport.

use std::time::Duration;

use noetl_contract::manifest::{HostPattern, Language, ManifestErrors};
use noetl_contract::{CapabilitySet, PluginPath, Version};
use noetl_host::{Denied, Fault, FaultClass, PrepareError};
use noetl_registry::signatures::{AttestationError, Unsigned};
use noetl_registry::{CatalogError, ResolveError};

use crate::calls::Reply;
use crate::case::Unmasked;

/// The kernel could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot open the log")]
    Log(#[from] noetl_store::log::file::OpenError),
    #[error("cannot open the payload store")]
    Payloads(#[source] std::io::Error),
    #[error("cannot open the index")]
    Index(#[from] noetl_store::index::IndexError),
    #[error("cannot open the catalog")]
    Catalog(#[from] noetl_registry::OpenError),
    #[error("cannot open the tokens")]
    Tokens(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot open the wallet")]
    Wallet(#[from] noetl_store::wallet::VaultError),
    #[error(transparent)]
    Host(#[from] noetl_host::StartError),
    #[error("cannot open {what} of the engine")]
    Engine { what: &'static str, source: Box<dyn std::error::Error + Send + Sync> },
}

/// Why a push was refused. The catalog is as it was.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("{}", inspecting(.0))]
    Inspect(PrepareError),
    #[error("the component carries no manifest: build it with `noetl plugin build`, which embeds plugin.toml in it")]
    NoManifest,
    #[error("plugin.toml is not valid:\n{0}")]
    Manifest(ManifestErrors),
    #[error(
        "`{path}` is an interpreter, which sees the calls of everybody: it is pushed to \
         `system/interpreters/<language>`, with an administrator's token and to the ring `system`"
    )]
    InterpreterPath { path: PluginPath },
    #[error("`{path}` is one of the platform's own paths: pushing there needs an administrator's token")]
    Reserved { path: PluginPath },
    #[error("the token's tenant does not own `{path}`")]
    Foreign { path: PluginPath },
    #[error("ring `{asked}` is above what the path and the token allow (`{allowed}`)")]
    RingTooHigh { asked: noetl_contract::Ring, allowed: noetl_contract::Ring },
    #[error(transparent)]
    Denied(Denied),
    #[error("the component does not fit this server's contract:\n{}", .0.join("\n"))]
    Skew(Vec<String>),
    #[error(
        "{path} {version} asks for more than {running} has: {added}{}; push again with `--grant {}` to allow it",
        reaching(.hosts),
        .added.iter().map(|capability| capability.name()).collect::<Vec<_>>().join(",")
    )]
    NeedsGrant {
        path: PluginPath,
        version: Version,
        /// Boxed, because an error is the other side of every result here and should be small.
        running: Box<Version>,
        added: CapabilitySet,
        hosts: Vec<HostPattern>,
    },
    #[error(
        "there is no interpreter for `{language}` (`source.language`); this server runs {}", .known.join(", ")
    )]
    NoInterpreter { language: Language, known: Vec<String> },
    #[error("{path} {version} cannot be loaded, so nothing of it was kept:\n{why}")]
    SourceBroken { path: PluginPath, version: Version, why: String },
    #[error(transparent)]
    Attestation(#[from] AttestationError),
    #[error(transparent)]
    Unsigned(#[from] Box<Unsigned>),
    #[error("{0}")]
    Compile(PrepareError),
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error("the bytes could not be stored: {0}")]
    Store(#[from] std::io::Error),
    #[error("{0}")]
    InvalidChannel(#[from] noetl_contract::ids::InvalidId),
}

fn reaching(hosts: &[HostPattern]) -> String {
    let hosts: Vec<_> = hosts.iter().map(|host| format!("`{host}`")).collect();
    if hosts.is_empty() { String::new() } else { format!(" (to reach {})", hosts.join(", ")) }
}

/// The reader's own words where there are some: nothing was compiled yet.
fn inspecting(error: &PrepareError) -> String {
    match error {
        PrepareError::Rejected(said) => said.clone(),
        PrepareError::TimedOut { seconds } => {
            format!("reading the component took longer than {seconds} s (`host.compile_timeout_secs`)")
        }
        other => other.to_string(),
    }
}

impl PushError {
    pub fn code(&self) -> &'static str {
        match self {
            PushError::NoManifest => "no_manifest",
            PushError::Manifest(_) => "invalid_manifest",
            PushError::Reserved { .. } | PushError::InterpreterPath { .. } => "reserved_path",
            PushError::Foreign { .. } => "forbidden_tenant",
            PushError::RingTooHigh { .. } => "ring_too_high",
            PushError::Denied(_) => "capability_denied",
            PushError::Skew(_) => "contract_skew",
            PushError::NeedsGrant { .. } => "needs_grant",
            PushError::Inspect(PrepareError::Rejected(_)) => "not_a_component",
            PushError::Inspect(PrepareError::TimedOut { .. } | PrepareError::Crashed { .. }) => "compile_failed",
            PushError::Inspect(_) => "store_unavailable",
            PushError::Attestation(_) => "invalid_attestation",
            PushError::Unsigned(_) => "signature_required",
            PushError::NoInterpreter { .. } => "no_interpreter",
            PushError::SourceBroken { .. } => "source_broken",
            PushError::Compile(PrepareError::Denied(_)) => "capability_denied",
            PushError::Compile(PrepareError::Skew(_)) => "contract_skew",
            PushError::Compile(PrepareError::Rejected(_)) => "not_a_component",
            PushError::Compile(PrepareError::TimedOut { .. } | PrepareError::Crashed { .. }) => "compile_failed",
            PushError::Compile(_) | PushError::Store(_) => "store_unavailable",
            PushError::Catalog(error) => error.code(),
            PushError::InvalidChannel(_) => "invalid_parameter",
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            PushError::Catalog(error) => catalog_status(error),
            _ => match self.code() {
                "reserved_path" | "forbidden_tenant" | "ring_too_high" | "signature_required" => 403,
                "needs_grant" => 409,
                "store_unavailable" => 503,
                "invalid_parameter" => 400,
                _ => 422,
            },
        }
    }
}

/// The status a refusal of the catalog maps to.
pub fn catalog_status(error: &CatalogError) -> u16 {
    match error.code() {
        "plugin_not_found" | "version_not_found" => 404,
        "forbidden" | "foreign_tenant" => 403,
        "store_unavailable" => 503,
        "not_overridable" | "other_world" | "ring_too_high" | "bound_to_itself" | "invalid_attestation" => 422,
        _ => 409,
    }
}

/// Why a call was not answered by the plugin.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The operator wants a signature that the version does not have.
    #[error(transparent)]
    Unsigned(Box<Unsigned>),
    #[error("{path} {version}: {fault}")]
    Fault { path: PluginPath, version: Version, fault: Fault },
    #[error(
        "{path} {version} faulted too often in a row and is not called for another {} s; \
         `noetl plugin release {path}` ends this at once",
        .retry_after.as_secs() + 1
    )]
    Quarantined { path: PluginPath, version: Version, retry_after: Duration },
    #[error("{path} {version}: its writes conflict with another call's: {reason}; try again")]
    Conflict { path: PluginPath, version: Version, reason: String },
    #[error("{path} {version}: its writes could not be stored: {reason}")]
    NotStored { path: PluginPath, version: Version, reason: String },
    /// The call was made; the case of it is not shown.
    #[error("{path} {version}: the call cannot be written down: {reason}")]
    NotWritten { path: PluginPath, version: Version, reason: String },
}

impl CallError {
    pub(crate) fn not_written(reply: &Reply, error: &Unmasked) -> Self {
        Self::NotWritten { path: reply.path.clone(), version: reply.version.clone(), reason: error.to_string() }
    }

    /// The fault's class, where the host ended the call.
    pub fn class(&self) -> Option<FaultClass> {
        match self {
            CallError::Fault { fault, .. } => Some(fault.class),
            _ => None,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            CallError::Resolve(error) => error.code(),
            CallError::Unsigned(_) => "signature_required",
            CallError::Quarantined { .. } => "quarantined",
            CallError::Conflict { .. } => "conflict",
            CallError::NotStored { .. } => "store_unavailable",
            CallError::NotWritten { .. } => "internal",
            CallError::Fault { fault, .. } => match fault.class {
                FaultClass::Trap => "trap",
                FaultClass::Timeout => "timeout",
                FaultClass::Memory => "memory",
                FaultClass::Output => "output",
                FaultClass::Denied => "capability_denied",
                FaultClass::Quota => "quota",
                FaultClass::Skew => "contract_skew",
                FaultClass::Fetch => "fetch",
            },
        }
    }

    pub fn status(&self) -> u16 {
        match self.code() {
            "plugin_not_found" | "version_not_found" | "channel_not_found" => 404,
            "foreign_tenant" | "capability_denied" | "signature_required" => 403,
            "quarantined" | "fetch" | "store_unavailable" => 503,
            "conflict" | "pin_broken" | "binding_broken" => 409,
            "timeout" => 504,
            "internal" => 500,
            _ => 502,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CallError::Quarantined { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }
}

/// Why a change of what serves (channel, rollback, pin, binding) was refused.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The version is in the catalog but cannot run here now; nothing was switched.
    #[error("{path} {version} cannot run: {reason}; nothing was switched")]
    NotReady { path: PluginPath, version: Version, reason: String },
    #[error(transparent)]
    Unsigned(Box<Unsigned>),
}

/// Why a version could not be made ready for a call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadyError {
    #[error(transparent)]
    Unsigned(#[from] Box<Unsigned>),
    #[error(transparent)]
    Host(#[from] PrepareError),
}

impl From<ReadyError> for PushError {
    fn from(error: ReadyError) -> Self {
        match error {
            ReadyError::Unsigned(unsigned) => PushError::Unsigned(unsigned),
            ReadyError::Host(error) => PushError::Compile(error),
        }
    }
}

impl SwitchError {
    pub fn code(&self) -> &'static str {
        match self {
            SwitchError::Catalog(error) => error.code(),
            SwitchError::NotReady { .. } => "not_ready",
            SwitchError::Unsigned(_) => "signature_required",
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            SwitchError::Catalog(error) => catalog_status(error),
            SwitchError::NotReady { .. } => 503,
            SwitchError::Unsigned(_) => 403,
        }
    }
}
