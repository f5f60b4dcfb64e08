//! What a store holds: everything the host functions of one call can reach.
//!
//! There is no way from here to another call, another tenant's namespace or the catalog: a driver gets
//! this and nothing else.

use std::sync::Arc;
use std::time::Instant;

use noetl_contract::manifest::HttpPolicy;
use noetl_contract::{Limits, PluginPath, Tenant, Version};
use noetl_store::index::Namespace;
use noetl_store::wallet::Use;
use wasmtime::component::ResourceTable;

use crate::caps::Drivers;
use crate::caps::kv::Overlay;
use crate::caps::temporary::Temporary;
use crate::error::Fault;
use crate::fair::Long;
use crate::grant::Terms;
use crate::meter::Meter;
use crate::tape::Tape;
use crate::wasi::Wasi;

/// Who is calling what, for logs, namespaces and idempotency.
#[derive(Debug, Clone)]
pub struct Identity {
    pub tenant: Tenant,
    pub path: PluginPath,
    pub version: Version,
    /// Names this call in logs.
    pub call: String,
    /// The same for every attempt at the same work.
    pub idempotency_key: String,
    pub attempt: u32,
}

impl Identity {
    /// Who opens a credential, to send it there.
    pub(crate) fn using(&self, alias: &str, target: &str) -> Use {
        Use {
            tenant: self.tenant.clone(),
            alias: alias.to_owned(),
            by: format!("{}@{}", self.path, self.version),
            call: self.call.clone(),
            target: target.to_owned(),
        }
    }
}

/// Payloads, writers and streams a call can hold at once.
const MOST_HANDLES: usize = 1_000;

/// Store data of one call.
pub struct CallState {
    pub(crate) meter: Meter,
    pub(crate) table: ResourceTable,
    pub(crate) identity: Arc<Identity>,
    /// Why the call holds what it holds, for a denial to tell.
    pub(crate) terms: Terms,
    pub(crate) drivers: Arc<Drivers>,
    pub(crate) temporary: Temporary,
    pub(crate) kv: Overlay,
    pub(crate) http: Arc<HttpPolicy>,
    pub(crate) wasi: Option<Box<Wasi>>,
    pub(crate) panic_message: Option<String>,
    pub(crate) started: Instant,
    /// There from the first tick on that the guest computes.
    pub(crate) long: Option<Long>,
    pub(crate) tape: Tape,
    /// Effects of this call that carry its idempotency key.
    keyed: u32,
}

impl CallState {
    pub(crate) fn new(
        limits: Limits,
        identity: Arc<Identity>,
        terms: Terms,
        drivers: Arc<Drivers>,
        http: Arc<HttpPolicy>,
        wasi: bool,
    ) -> Self {
        let wasi = wasi.then(|| Box::new(Wasi::new(&identity, &drivers)));
        let mut table = ResourceTable::new();
        // Each handle can hold some memory of the host, which no limit of the guest's own memory sees.
        table.set_max_capacity(MOST_HANDLES);
        Self {
            meter: Meter::new(limits),
            table,
            identity,
            terms,
            temporary: Temporary::new(drivers.max_temporary),
            drivers,
            kv: Overlay::default(),
            http,
            wasi,
            panic_message: None,
            started: Instant::now(),
            long: None,
            tape: Tape::default(),
            keyed: 0,
        }
    }

    /// Ready a resident instance's state for its next call.
    pub(crate) fn next_call(&mut self, identity: Arc<Identity>) {
        self.meter.next_call();
        if let Some(wasi) = &self.wasi {
            wasi.speak_for(&identity);
        }
        self.identity = identity;
        self.kv = Overlay::default();
        self.panic_message = None;
        self.tape = Tape::default();
        self.keyed = 0;
        self.started = Instant::now();
    }

    /// The key of the call's next effect outside. The first has the call's own, each further one its number besides, in
    /// the order they are made: two messages of one call are two, and the same two when the call is made again.
    pub(crate) fn next_key(&mut self) -> String {
        self.keyed = self.keyed.saturating_add(1);
        match self.keyed {
            1 => self.identity.idempotency_key.clone(),
            number => format!("{}~{number}", self.identity.idempotency_key),
        }
    }

    /// Every host function starts here.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Fault> {
        self.meter.host_call(bytes)
    }

    pub(crate) fn namespace(&self) -> Namespace {
        Namespace { tenant: self.identity.tenant.clone(), path: self.identity.path.clone() }
    }
}
