//! Everything that can go wrong with a component, as values.
//!
//! A [`Fault`] belongs to one call: the server and every other call go on. Its class is stable, because
//! retry rules, quarantine, automatic rollback, metrics and HTTP statuses are all keyed by it.

use std::fmt;

use noetl_contract::{Capability, Digest, PluginPath, Ring};
use serde::{Deserialize, Serialize};

/// The kinds of fault, in the order metrics list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// The guest crashed: a panic, an unreachable, a stack overflow.
    Trap,
    /// `cpu_ms` or `wall_ms` was spent.
    Timeout,
    /// The guest asked for more memory than it may have.
    Memory,
    /// The answer is larger than the guest may give.
    Output,
    /// Something was asked for that is not granted.
    Denied,
    /// Too many or too large calls into the host.
    Quota,
    /// The component and the host disagree about the contract.
    Skew,
    /// The component's bytes or machine code could not be had.
    Fetch,
}

impl FaultClass {
    pub const ALL: [FaultClass; 8] = [
        FaultClass::Trap,
        FaultClass::Timeout,
        FaultClass::Memory,
        FaultClass::Output,
        FaultClass::Denied,
        FaultClass::Quota,
        FaultClass::Skew,
        FaultClass::Fetch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            FaultClass::Trap => "trap",
            FaultClass::Timeout => "timeout",
            FaultClass::Memory => "memory",
            FaultClass::Output => "output",
            FaultClass::Denied => "denied",
            FaultClass::Quota => "quota",
            FaultClass::Skew => "skew",
            FaultClass::Fetch => "fetch",
        }
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for FaultClass {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        FaultClass::ALL.into_iter().find(|class| class.name() == text).ok_or_else(|| {
            let names: Vec<_> = FaultClass::ALL.iter().map(|class| class.name()).collect();
            format!("`{text}` is not a fault class; use one of {}", names.join(", "))
        })
    }
}

/// Why one call could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub class: FaultClass,
    pub message: String,
}

impl Fault {
    pub fn new(class: FaultClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

/// An import the grant does not cover. The text names the import, the capability and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error(
        "import `{import}` needs the capability `{capability}`, which plugin.toml does not list: \
         add it to `capabilities`"
    )]
    NotListed { import: String, capability: Capability },
    #[error(
        "import `{import}` needs the capability `{capability}`, which the ring `{ring}` does not have; \
         it is allowed in: {}", names(.allowed)
    )]
    NotInRing { import: String, capability: Capability, ring: Ring, allowed: &'static [Ring] },
    #[error(
        "import `{import}` needs the capability `{capability}`, which this call does not grant: it grants {granted}"
    )]
    NotInCall { import: String, capability: Capability, granted: String },
    #[error(
        "import `{import}` needs the capability `{capability}`, which the operator's policy denies \
         (`policy.deny_capabilities`)"
    )]
    Policy { import: String, capability: Capability },
    #[error(
        "import `{import}` is WASI, which neither the ring `pure` nor a resident instance links: build for \
         wasm32-unknown-unknown"
    )]
    Wasi { import: String },
    #[error("import `{import}` is never available: {instead}")]
    Refused { import: String, instead: &'static str },
    #[error(
        "import `{import}` is unknown to this server; known are the noetl capabilities and WASI clocks, random and stdio"
    )]
    Unknown { import: String },
    #[error("the program used the capability `{capability}`, which plugin.toml does not list: write `{line}`")]
    Unasked { capability: Capability, line: String },
    #[error(
        "`{path}` is source text, and its interpreter needs clocks and randomness, which the ring `pure` does not have: \
         push it to the ring `user`"
    )]
    Interpreted { path: PluginPath },
    #[error(
        "`{path}` asks for resident instances, which only the platform's own components (`system/`, `tools/`) and source \
         text may have"
    )]
    ResidentPath { path: PluginPath },
    #[error(
        "a resident instance may hold what the ring `pure` has (log, metrics), not `{capability}`: write \
         `world = \"transform\"` and `capabilities = [\"log\"]`, or leave out `instance`"
    )]
    Resident { capability: Capability },
}

fn names(rings: &[Ring]) -> String {
    rings.iter().map(|ring| ring.name()).collect::<Vec<_>>().join(", ")
}

/// Why a component could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error("the component could not be compiled: {0}")]
    Rejected(String),
    #[error("compiling took longer than {seconds} s (`host.compile_timeout_secs`)")]
    TimedOut { seconds: u64 },
    #[error("the compiler process ended with {status}: {stderr}")]
    Crashed { status: String, stderr: String },
    #[error("machine code of {digest} did not match its recorded digest")]
    Tampered { digest: Digest },
    #[error("the bytes of the component are not those of {expected}: they have {actual}")]
    WrongBytes { expected: Digest, actual: Digest },
    #[error("cannot {doing}")]
    Io { doing: String, source: std::io::Error },
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("the component does not fit this host: {0}")]
    Skew(String),
}

impl PrepareError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// The same as a fault of the call that needed the component.
    pub fn into_fault(self) -> Fault {
        let class = match &self {
            PrepareError::Denied(_) => FaultClass::Denied,
            PrepareError::Skew(_) | PrepareError::Rejected(_) => FaultClass::Skew,
            _ => FaultClass::Fetch,
        };
        let mut message = self.to_string();
        if let Some(source) = std::error::Error::source(&self) {
            message = format!("{message}: {source}");
        }
        Fault::new(class, message)
    }
}

/// The host itself could not start.
#[derive(Debug, thiserror::Error)]
#[error("the component host could not start: cannot {doing}: {reason}")]
pub struct StartError {
    pub doing: &'static str,
    pub reason: String,
}
