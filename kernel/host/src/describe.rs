//! What a plugin says about itself, asked once a component.
//!
//! The answer is a function of the component alone, so it is kept by digest. It is asked for in a sandbox that can do
//! nothing else: no import of it has a capability behind it, and its time, memory and output are bounded far below those
//! of a call. A plugin that says nothing is one that says nothing: that is kept too. What it says is read and checked
//! here, so that nobody else ever sees a document that is none.
//!
//! A plugin that is source text can have the document as the file `describe.json` among its own, and is not even run.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lru::LruCache;
use noetl_contract::description::{Description, MAX_BYTES};
use noetl_contract::{CapabilitySet, Digest, Limits, Tenant};
use parking_lot::Mutex;
use wasmtime::component::{ComponentExportIndex, Instance};
use wasmtime::{Store, UpdateDeadline};

use crate::call;
use crate::caps::Drivers;
use crate::engine::{EngineKind, Engines};
use crate::error::{Fault, FaultClass, PrepareError};
use crate::fair::Budget;
use crate::module::{Module, Template};
use crate::state::{CallState, Identity};
use crate::{Host, Running, bindings};

/// Components whose descriptions are kept; asking again costs a sandbox.
const KEPT: NonZeroUsize = NonZeroUsize::new(1_024).expect("more than none");

/// No description needs more. An interpreter has to start before its program can speak.
const MOST: Limits = Limits {
    cpu_ms: 5_000,
    wall_ms: 15_000,
    memory_bytes: 512 << 20,
    output_bytes: MAX_BYTES as u64,
    host_calls: 10_000,
    host_bytes: 16 << 20,
};

/// What is known of components by their digest; `None` is one that says nothing.
pub(crate) struct Descriptions(Mutex<LruCache<Digest, Option<Arc<Description>>>>);

impl Default for Descriptions {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(KEPT)))
    }
}

impl Host {
    /// What a plugin says about itself; nothing when it says nothing. A fault is the component's: it crashed, took too
    /// long, or what it said is no description.
    pub async fn describe(&self, module: &Arc<Module>) -> Result<Option<Arc<Description>>, Fault> {
        let digest = module.spec.digest;
        if let Some(known) = self.descriptions.0.lock().get(&digest) {
            return Ok(known.clone());
        }
        let written = module.program().and_then(|program| program.description());
        let said = match (written, module.description()) {
            (Some(text), _) => Some(String::from_utf8_lossy(text).into_owned()),
            (None, None) => None,
            (None, Some(export)) => self.ask(module, export).await?,
        };
        let described = match said {
            None => None,
            Some(text) => {
                let read = Description::read(&text);
                Some(Arc::new(read.map_err(|error| Fault::new(FaultClass::Skew, error.to_string()))?))
            }
        };
        self.descriptions.0.lock().put(digest, described.clone());
        Ok(described)
    }

    async fn ask(&self, module: &Arc<Module>, export: ComponentExportIndex) -> Result<Option<String>, Fault> {
        let kind = module.spec.engine();
        let template = module.mute_template(self.engines.get(kind)).map_err(PrepareError::into_fault)?;
        let asking = Asking {
            engines: self.engines.clone(),
            drivers: self.drivers.clone(),
            budget: self.budget.clone(),
            module: module.clone(),
            template,
            export,
        };
        let Some(guests) = &self.guests else {
            return Err(Fault::new(FaultClass::Fetch, "the server is shutting down"));
        };
        let mut running = Running(match kind {
            EngineKind::Guest => guests.spawn(asking.on_a_fiber()),
            EngineKind::Pure => guests.spawn(asking.right_here()),
        });
        match (&mut running.0).await {
            Ok(said) => said,
            Err(error) => Err(Fault::new(FaultClass::Trap, format!("the host failed while it asked: {error}"))),
        }
    }
}

struct Asking {
    engines: Arc<Engines>,
    drivers: Arc<Drivers>,
    budget: Budget,
    module: Arc<Module>,
    template: Arc<Template>,
    export: ComponentExportIndex,
}

type Told = Result<Option<String>, bindings::Failure>;

impl Asking {
    async fn on_a_fiber(self) -> Result<Option<String>, Fault> {
        let _room =
            self.budget.reserve(&self.whose(), self.limits().memory_bytes, self.module.slots as usize, false).await;
        let _ticking = self.engines.ticker.enter();
        let mut store = self.store(EngineKind::Guest);
        let asked = async {
            let instance = self.template.pre.instantiate_async(&mut store).await?;
            if let Some(program) = self.module.program() {
                if let Err(failure) = program.load(&mut store, &instance).await? {
                    return Ok(Err(failure));
                }
                let describe = instance.get_typed_func::<(), (Told,)>(&mut store, self.export)?;
                return Ok(describe.call_async(&mut store, ()).await?.0);
            }
            let describe = instance.get_typed_func::<(), (String,)>(&mut store, self.export)?;
            Ok(Ok(Some(describe.call_async(&mut store, ()).await?.0)))
        };
        let asked = tokio::time::timeout(Duration::from_millis(self.limits().wall_ms), asked).await;
        match asked {
            Ok(Ok(told)) => told.map_err(|failure| {
                Fault::new(FaultClass::Trap, format!("it could not say what it does: {}", failure.message))
            }),
            Ok(Err(error)) => Err(call::classify(&mut store, &error)),
            Err(_) => Err(Fault::new(FaultClass::Timeout, "it took too long to say what it does")),
        }
    }

    /// On the engine without fibers. Nothing there waits, and its computing is bounded.
    async fn right_here(self) -> Result<Option<String>, Fault> {
        let _room = self.budget.reserve(&self.whose(), self.limits().memory_bytes, 0, false).await;
        let _ticking = self.engines.ticker.enter();
        let mut store = self.store(EngineKind::Pure);
        let asked = self.template.pre.instantiate(&mut store).and_then(|instance: Instance| {
            let describe = instance.get_typed_func::<(), (String,)>(&mut store, self.export)?;
            Ok(describe.call(&mut store, ())?.0)
        });
        asked.map(Some).map_err(|error| call::classify(&mut store, &error))
    }

    fn limits(&self) -> Limits {
        // Its own limits are for its work: one that allows itself 10 ms may still need more to start.
        MOST.capped(&Limits { memory_bytes: self.module.spec.limits.memory_bytes, ..MOST })
    }

    /// Room is taken from the tenant whose plugin it is.
    fn whose(&self) -> Tenant {
        self.module.spec.path.owner().unwrap_or_else(Tenant::main)
    }

    fn store(&self, kind: EngineKind) -> Store<CallState> {
        let spec = &self.module.spec;
        let identity = Identity {
            tenant: self.whose(),
            path: spec.path.clone(),
            version: spec.version.clone(),
            call: "describe".to_owned(),
            idempotency_key: "describe".to_owned(),
            attempt: 1,
        };
        let terms = spec.terms(Some(CapabilitySet::EMPTY), CapabilitySet::EMPTY);
        let limits = self.limits();
        let (drivers, http) = (self.drivers.clone(), spec.http.clone());
        let state = CallState::new(limits, Arc::new(identity), terms, drivers, http, self.template.wasi);
        let mut store = Store::new(self.engines.get(kind), state);
        store.limiter(|state| &mut state.meter);
        // What is lifted out of the guest is counted before it is allocated.
        store.set_hostcall_fuel(MAX_BYTES * 16);
        store.epoch_deadline_callback(move |mut store| {
            Ok(match (store.data_mut().meter.tick(), kind) {
                (false, _) => UpdateDeadline::Interrupt,
                (true, EngineKind::Guest) => UpdateDeadline::Yield(1),
                (true, EngineKind::Pure) => UpdateDeadline::Continue(1),
            })
        });
        store.set_epoch_deadline(1);
        store
    }
}
