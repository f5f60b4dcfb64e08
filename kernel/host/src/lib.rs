//! The component host: the only crate that knows wasmtime.
//!
//! It turns bytes into modules, and a module plus a grant plus an input into an answer or a typed fault.
//! It knows worlds and capabilities; it knows no plugin, no catalog and no tenant rules.
//!
//! Invariants:
//! 1. A guest can call exactly what its grant names: the linker holds nothing else ([`grant`]).
//! 2. Every call is bounded in time, memory, output and host calls; breaking a bound is a [`Fault`] of
//!    that call and of nothing else ([`meter`](self)).
//! 3. Machine code comes from our own compiler process and its recorded digest, or not at all
//!    ([`compile`]).
//! 4. Staged effects leave a call only with its success ([`call::Effects`]).
//! 5. Guests never run on the threads that serve HTTP or commit the log.
//! 6. A call ends with whoever asked for it: what nobody waits for any more holds no memory and no thread.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use lru::LruCache;
use noetl_contract::inspect::Inspection;
use noetl_contract::manifest::InstancePolicy;
use noetl_contract::{CapabilitySet, Digest, Limits, PluginPath, Ring, Tenant, Version};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::{OnceCell, oneshot};
use tracing::Instrument;

mod bindings;
pub mod call;
pub mod caps;
pub mod compile;
pub mod egress;
mod engine;
pub mod error;
pub mod fair;
pub mod grant;
mod meter;
mod metrics;
mod module;
mod resident;
pub mod services;
mod shards;
mod state;
mod wasi;

pub use call::{Effects, Failure, Finished, Input, Output, Usage};
pub use error::{Denied, Fault, FaultClass, PrepareError, StartError};
pub use metrics::HostMetrics;
pub use module::{Module, Spec};
pub use resident::Residents;
pub use state::Identity;

use caps::Drivers;
use compile::{CompileOptions, Compiler};
use engine::Engines;
use fair::Budget;
use shards::{Job, Shards};

/// How the host is set up.
#[derive(Debug, Clone)]
pub struct HostOptions {
    pub cache_dir: PathBuf,
    /// Threads that run guests.
    pub threads: usize,
    /// Threads that run resident components.
    pub shards: usize,
    /// Memory all guests together may use.
    pub memory_budget: u64,
    /// The part of it only system services can use.
    pub system_reserve: u64,
    /// No plugin gets more than this, whatever its manifest says.
    pub ceiling: Limits,
    /// Modules kept ready.
    pub max_modules: usize,
    /// Guest memories that can exist at once.
    pub max_instances: u32,
    pub compile: CompileOptions,
    /// Capabilities the operator denies to everybody.
    pub denied: CapabilitySet,
}

/// One call.
pub struct Call {
    pub identity: Arc<Identity>,
    /// The caller's own narrowing of what the plugin may hold.
    pub capabilities: Option<CapabilitySet>,
    pub input: Input,
}

type Slot = Arc<OnceCell<Arc<Module>>>;

/// An input up to this size costs a resident component nothing worth counting.
const SMALL_INPUT: u64 = 256 << 10;

/// The host. Cheap to share behind an `Arc`.
pub struct Host {
    options: HostOptions,
    engines: Arc<Engines>,
    compiler: Compiler,
    budget: Budget,
    drivers: Arc<Drivers>,
    modules: Mutex<LruCache<Digest, Slot>>,
    shards: Shards,
    metrics: HostMetrics,
    guests: Option<tokio::runtime::Runtime>,
}

impl Host {
    pub fn start(options: HostOptions, drivers: Drivers, registry: &mut Registry) -> Result<Self, StartError> {
        let engines = Arc::new(Engines::new(options.max_instances.max(1), options.threads)?);
        let compiler = Compiler::new(options.compile.clone(), &options.cache_dir)
            .map_err(|error| StartError { doing: "open the cache of machine code", reason: error.to_string() })?;
        registry.register_collector(Box::new(drivers.metrics.clone()));
        let drivers = Arc::new(drivers);
        let guests = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .thread_name("guest")
            .enable_all()
            .build()
            .map_err(|error| StartError { doing: "start the guest threads", reason: error.to_string() })?;
        Ok(Self {
            budget: Budget::new(options.memory_budget, options.system_reserve, options.max_instances.max(1) as usize),
            shards: Shards::start(options.shards, || residents(&engines, &drivers, options.denied))?,
            modules: Mutex::new(LruCache::new(NonZeroUsize::new(options.max_modules).unwrap_or(NonZeroUsize::MIN))),
            metrics: HostMetrics::register(registry),
            guests: Some(guests),
            engines,
            compiler,
            drivers,
            options,
        })
    }

    pub fn metrics(&self) -> &HostMetrics {
        &self.metrics
    }

    pub fn drivers(&self) -> &Arc<Drivers> {
        &self.drivers
    }

    /// What the operator denies to everybody.
    pub fn denied(&self) -> CapabilitySet {
        self.options.denied
    }

    /// A module that is ready now, without waiting for anything.
    pub fn ready(&self, digest: &Digest) -> Option<Arc<Module>> {
        self.modules.lock().get(digest).and_then(|slot| slot.get().cloned())
    }

    /// What a component is: its manifest, imports and where it differs from the contract. Read in a process of
    /// its own, in turn by tenant; an error here is about the bytes.
    pub async fn inspect(
        &self,
        whose: &Tenant,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<Inspection, PrepareError> {
        self.compiler.inspect(whose, bytes).await
    }

    /// Make a component ready: from memory, from the cache, or by compiling. Callers for the same digest
    /// share one compilation; a failed one leaves nothing behind and can be tried again.
    pub async fn prepare(
        &self,
        mut spec: Spec,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<Arc<Module>, PrepareError> {
        let digest = spec.digest;
        let whose = spec.path.owner().unwrap_or_else(Tenant::main);
        let slot = self.modules.lock().get_or_insert(digest, Slot::default).clone();
        let prepared = slot.get_or_try_init(|| async {
            spec.check(self.options.denied)?;
            spec.limits = spec.limits.capped(&self.options.ceiling);
            spec.limits.memory_bytes = spec.limits.memory_bytes.min(self.budget.largest());
            let kind = spec.engine();
            let engine = self.engines.get(kind);
            let compiled = self.compiler.load(engine, kind, (spec.digest, &whose), bytes).await?;
            let metrics = self.metrics.module(spec.path.as_str(), &spec.version.to_string());
            metrics.compiled(compiled.took);
            let module = Module::new(spec, compiled.component, metrics)?;
            // Linking now makes a skew an error of the push instead of the first call.
            module.template(engine, &module.spec.terms(None, self.options.denied))?;
            Ok(Arc::new(module))
        });
        let prepared = prepared.await.cloned();
        if prepared.is_err() {
            let mut modules = self.modules.lock();
            if modules.peek(&digest).is_some_and(|slot| slot.get().is_none()) {
                modules.pop(&digest);
            }
        }
        prepared
    }

    /// Forget a module; it is freed when its last call ends.
    pub fn retire(&self, digest: Digest) {
        self.modules.lock().pop(&digest);
        self.shards.forget(digest);
    }

    /// The threads guests run on. Work that makes many calls can be put there itself.
    pub fn threads(&self) -> Option<&tokio::runtime::Handle> {
        self.guests.as_ref().map(tokio::runtime::Runtime::handle)
    }

    /// Resident instances for a thread of the caller's own.
    pub fn residents(&self) -> Residents {
        residents(&self.engines, &self.drivers, self.options.denied)
    }

    /// Digests of all modules in the table.
    pub fn loaded(&self) -> Vec<Digest> {
        self.modules.lock().iter().map(|(digest, _)| *digest).collect()
    }

    /// Call a module. Returns when the guest answered or a bound ended it. Dropping the call ends it at its next await
    /// or tick; its effects are in what it returns, so one that is dropped has none.
    pub async fn call(&self, module: &Arc<Module>, call: Call) -> Result<Finished, Fault> {
        let engine = self.engines.get(module.spec.engine());
        let terms = module.spec.terms(call.capabilities, self.options.denied);
        let template = module.template(engine, &terms).map_err(PrepareError::into_fault)?;
        let queued = Instant::now();
        if module.spec.instance == InstancePolicy::Resident {
            let (answer, receiver) = oneshot::channel();
            let key = shard_key(&call.identity.idempotency_key);
            let (identity, input) = (call.identity, call.input);
            // The instance's own memory is the platform's; what a caller brings is the caller's.
            let room = match input.weight() {
                0..=SMALL_INPUT => None,
                weight => Some(self.budget.reserve(&identity.tenant, weight, 0, false).await),
            };
            let input = input.load(&self.drivers.payloads).await?;
            let job = Job { module: module.clone(), template, identity, input, queued, answer, room };
            return self.shards.call(key, job, receiver).await;
        }
        let span = tracing::debug_span!(
            "plugin_call",
            plugin = %module.spec.path,
            version = %module.spec.version,
            tenant = %call.identity.tenant,
            call = %call.identity.call,
        );
        let system = is_the_platforms(&module.spec, &call.identity);
        let (engines, drivers, budget, module) =
            (self.engines.clone(), self.drivers.clone(), self.budget.clone(), module.clone());
        let running = async move {
            let weight = module.spec.limits.memory_bytes.saturating_add(call.input.weight());
            let _room = budget.reserve(&call.identity.tenant, weight, module.slots as usize, system).await;
            let input = call.input.load(&drivers.payloads).await?;
            let queue = queued.elapsed();
            call::run(&engines, &module, &template, call.identity, drivers, input, queue).await
        };
        let Some(guests) = &self.guests else {
            return Err(Fault::new(FaultClass::Fetch, "the server is shutting down"));
        };
        // Waking another thread costs as much as the call itself, so a caller that is here already stays.
        if tokio::runtime::Handle::try_current().is_ok_and(|current| current.id() == guests.handle().id()) {
            return running.instrument(span).await;
        }
        let mut running = Running(guests.spawn(running.instrument(span)));
        match (&mut running.0).await {
            Ok(finished) => finished,
            Err(error) => Err(Fault::new(FaultClass::Trap, format!("the host failed while it ran the call: {error}"))),
        }
    }
}

/// A task that ends with whoever waits for it.
struct Running<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn residents(engines: &Arc<Engines>, drivers: &Arc<Drivers>, denied: CapabilitySet) -> Residents {
    let kernel = Identity {
        tenant: Tenant::main(),
        path: PluginPath::new("system/kernel").expect("a path of ours"),
        version: Version::new(0, 0, 0),
        call: "kernel".to_owned(),
        idempotency_key: "kernel".to_owned(),
        attempt: 1,
    };
    Residents::new(engines.clone(), drivers.clone(), denied, Arc::new(kernel))
}

/// Whether a call is the platform's own work, which the reserve is for. A tool of the platform that a tenant calls, and
/// a service that it calls for itself, are the tenant's work: were they not, any tenant could use up the reserve.
fn is_the_platforms(spec: &Spec, identity: &Identity) -> bool {
    spec.ring == Ring::System && spec.path.as_str().starts_with("system/") && identity.tenant == Tenant::main()
}

fn shard_key(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Drop for Host {
    fn drop(&mut self) {
        self.engines.ticker.stop();
        if let Some(guests) = self.guests.take() {
            // Calls still running are interrupted at their next await; they were not acknowledged. Nobody waits:
            // a host is dropped wherever a start fails, also where waiting is not allowed.
            guests.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noetl_contract::manifest::World;

    #[tokio::test]
    async fn a_call_that_nobody_waits_for_is_ended() {
        let (held, given_back) = oneshot::channel::<()>();
        let running = Running(tokio::spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        }));
        tokio::task::yield_now().await;
        drop(running);
        assert!(given_back.await.is_err(), "what the call held has gone with it");
    }

    #[test]
    fn the_reserve_is_for_the_platforms_own_services_and_not_for_what_tenants_call() {
        let spec = |path: &str, ring| Spec {
            digest: Digest::of(b""),
            path: PluginPath::new(path).expect("valid"),
            version: Version::new(1, 0, 0),
            world: World::Transform,
            ring,
            capabilities: CapabilitySet::EMPTY,
            limits: Limits::default(),
            instance: InstancePolicy::Fresh,
            http: Arc::default(),
            imports: Vec::new(),
        };
        let identity = |tenant: Tenant| Identity {
            tenant,
            path: PluginPath::new("system/kernel").expect("valid"),
            version: Version::new(1, 0, 0),
            call: "c".to_owned(),
            idempotency_key: "k".to_owned(),
            attempt: 1,
        };
        let acme = || Tenant::new("acme").expect("valid");
        assert!(is_the_platforms(&spec("system/publisher", Ring::System), &identity(Tenant::main())));
        for (path, ring, tenant) in [
            ("tools/any", Ring::System, Tenant::main()),
            ("tools/any", Ring::System, acme()),
            ("system/publisher", Ring::System, acme()),
            ("system/publisher", Ring::User, Tenant::main()),
            ("acme/system/auth", Ring::Tenant, acme()),
        ] {
            assert!(!is_the_platforms(&spec(path, ring), &identity(tenant)), "{path}");
        }
    }
}
