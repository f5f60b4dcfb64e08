//! One driver a capability.
//!
//! A driver knows one WIT package: how to link it, what it needs to work ([`Drivers`], made once when the
//! host starts) and what it keeps for a call (in the call's own state). A linker is made of exactly the
//! drivers a grant names, so what is not granted does not exist for the guest.

use std::sync::Arc;

use noetl_contract::Capability;
use noetl_store::index::Index;
use noetl_store::payloads::Payloads;
use noetl_store::wallet::{Seals, Wallet};
use wasmtime::component::{HasSelf, Linker};

use crate::bindings::noetl as wit;
use crate::state::CallState;

pub mod clock;
pub mod files;
mod filling;
pub mod http_client;
pub mod kv;
pub mod log;
mod masking;
pub mod metrics;
pub mod nats;
mod nesting;
pub mod objects;
pub mod payload;
pub mod process;
pub mod random;
pub mod secrets;
pub mod sql;
pub(crate) mod temporary;

/// What the drivers work with; shared by all calls.
pub struct Drivers {
    pub log: Arc<dyn log::LogSink>,
    pub metrics: metrics::CustomMetrics,
    pub index: Arc<Index>,
    pub payloads: Payloads,
    pub http: Arc<dyn http_client::Outbound>,
    pub nats: nats::Connections,
    pub programs: process::Programs,
    /// Where credentials are opened, by drivers that make connections.
    pub wallet: Arc<dyn Wallet>,
    /// What placeholders are written with, and known by.
    pub seals: Seals,
    pub files: files::Files,
    pub sql: sql::Databases,
    /// Largest payload a guest may write or receive.
    pub max_payload: u64,
    /// Bytes that one call can have in temporary files at once.
    pub max_temporary: u64,
}

/// Adds one capability's functions to a linker.
pub(crate) fn link(capability: Capability, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Data = HasSelf<CallState>;
    match capability {
        Capability::Log => wit::log::log::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Metrics => wit::metrics::metrics::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Clock => wit::clock::clock::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Random => wit::random::random::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Kv => wit::kv::kv::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Objects => wit::objects::objects::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Payload => wit::payload::payload::add_to_linker::<_, Data>(linker, |state| state),
        Capability::HttpClient => wit::http_client::http_client::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Secrets => wit::secrets::secrets::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Files => wit::files::files::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Sql => wit::sql::sql::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Nats => wit::nats::nats::add_to_linker::<_, Data>(linker, |state| state),
        Capability::Process => wit::process::process::add_to_linker::<_, Data>(linker, |state| state),
    }
}

/// What every component gets: the last words of a guest, and the types worlds speak in.
pub(crate) fn link_base(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    type Data = HasSelf<CallState>;
    wit::worlds::diagnostics::add_to_linker::<_, Data>(linker, |state| state)?;
    wit::worlds::failures::add_to_linker::<_, Data>(linker, |state| state)?;
    wit::worlds::tooling::add_to_linker::<_, Data>(linker, |state| state)?;
    crate::services::chain::add_to_linker::<_, Data>(linker, |state| state)?;
    // Interpreters alone import it, and it has nothing but types in it.
    linker.instance("noetl:interpreter/programs@0.1.0").map(drop)
}

const LONGEST_PANIC: usize = 64 << 10;

impl wit::worlds::diagnostics::Host for CallState {
    fn panicked(&mut self, mut message: String) -> wasmtime::Result<()> {
        self.charge(message.len())?;
        truncate(&mut message, LONGEST_PANIC);
        self.panic_message = Some(message);
        Ok(())
    }
}

impl wit::worlds::failures::Host for CallState {}
impl wit::worlds::tooling::Host for CallState {}

/// Cut at a character boundary, marking the cut.
pub(crate) fn truncate(text: &mut String, longest: usize) {
    if text.len() > longest {
        let mut end = longest;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(" [cut]");
    }
}
