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
//! 5. Source text runs in sandboxes of its interpreter, under its own grant ([`interpreter`](self)).
//! 6. Guests never run on the threads that serve HTTP or commit the log.
//! 7. A call ends with whoever asked for it: what nobody waits for any more holds no memory and no thread.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use futures::FutureExt;
use lru::LruCache;
use noetl_contract::inspect::Inspection;
use noetl_contract::manifest::InstancePolicy;
use noetl_contract::{CapabilitySet, Digest, Limits, PluginPath, Ring, Tenant, Version, source};
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tokio::sync::{OnceCell, oneshot};
use tracing::Instrument;

mod bindings;
pub mod call;
pub mod caps;
pub mod compile;
mod describe;
pub mod egress;
mod engine;
pub mod error;
pub mod fair;
pub mod grant;
mod interpreter;
mod kept;
mod meter;
mod metrics;
mod module;
mod resident;
pub mod services;
mod shards;
mod state;
pub mod tape;
mod wasi;

pub use call::{Effects, Failure, Finished, Input, Output, Usage};
pub use error::{Denied, Fault, FaultClass, PrepareError, StartError};
pub use interpreter::Interpreter;
pub use metrics::HostMetrics;
pub use module::{Module, SourceSpec, Spec};
pub use resident::Residents;
pub use state::Identity;
pub use tape::{HostCall, Script, Start};

use call::Run;
use caps::Drivers;
use compile::{CompileOptions, Compiler};
use engine::{EngineKind, Engines};
use fair::{Budget, Reservation};
use interpreter::Program;
use kept::{Kept, Owner};
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
    /// Where the host's answers come from; resident components of the platform itself are always live.
    pub script: Script,
}

type Slot<T> = Arc<OnceCell<Arc<T>>>;

/// An input up to this size costs a resident component nothing worth counting.
const SMALL_INPUT: u64 = 256 << 10;

/// Which part of the memory for guests the files of programs may take beside it.
const PROGRAMS_PART: u64 = 8;

/// The host. Cheap to share behind an `Arc`.
pub struct Host {
    options: HostOptions,
    engines: Arc<Engines>,
    compiler: Compiler,
    budget: Budget,
    drivers: Arc<Drivers>,
    modules: Mutex<LruCache<Digest, Slot<Module>>>,
    interpreters: Mutex<HashMap<Digest, Slot<Interpreter>>>,
    descriptions: describe::Descriptions,
    kept: Kept,
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
            interpreters: Mutex::default(),
            descriptions: describe::Descriptions::default(),
            // One for each thread that could use one, and one to change to.
            kept: Kept::new(options.threads.max(1) * 2),
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
        spec: Spec,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<Arc<Module>, PrepareError> {
        let whose = spec.path.owner().unwrap_or_else(Tenant::main);
        self.prepared(spec, async |spec| {
            let kind = spec.engine();
            let compiled = self.compiler.load(self.engines.get(kind), kind, (spec.digest, &whose), bytes).await?;
            let metrics = self.metrics.module(spec.path.as_str(), &spec.version.to_string());
            metrics.compiled(compiled.took);
            Module::new(spec, compiled.component, metrics)
        })
        .await
    }

    /// Make a plugin that is source text ready to be run by an interpreter.
    pub async fn prepare_program(
        &self,
        spec: Spec,
        interpreter: Arc<Interpreter>,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<Arc<Module>, PrepareError> {
        self.prepared(spec, async |spec| {
            let rejected = |text: &str| PrepareError::Rejected(text.to_owned());
            let entry = spec.source.as_ref().ok_or_else(|| rejected("it is not source text"))?.entry.clone();
            let bundle = source::extract(&bytes().await?).map_err(|error| PrepareError::Rejected(error.to_string()))?;
            let bundle = bundle.ok_or_else(|| rejected("it has no files in it"))?;
            let metrics = self.metrics.module(spec.path.as_str(), &spec.version.to_string());
            Ok(Module::of_program(spec, Program::new(interpreter, entry, &bundle), metrics))
        })
        .await
        .inspect(|module| self.bound_programs(module.spec.digest))
    }

    /// Forgets the files of programs that were not called for the longest time when all of them together are too much;
    /// they are read again when they are called.
    fn bound_programs(&self, newest: Digest) {
        let most = self.options.memory_budget / PROGRAMS_PART;
        let weight = |slot: &Slot<Module>| slot.get().and_then(|module| module.program()).map_or(0, Program::weight);
        let mut modules = self.modules.lock();
        let mut total: u64 = modules.iter().map(|(_, slot)| weight(slot)).sum();
        // The most recently used come first.
        let oldest: Vec<(Digest, u64)> = modules.iter().rev().map(|(digest, slot)| (*digest, weight(slot))).collect();
        for (digest, weight) in oldest.into_iter().filter(|(digest, weight)| *weight > 0 && *digest != newest) {
            if total <= most {
                break;
            }
            modules.pop(&digest);
            total -= weight;
        }
    }

    async fn prepared(
        &self,
        mut spec: Spec,
        make: impl AsyncFnOnce(Spec) -> Result<Module, PrepareError>,
    ) -> Result<Arc<Module>, PrepareError> {
        let digest = spec.digest;
        let slot = self.modules.lock().get_or_insert(digest, Slot::default).clone();
        let prepared = slot.get_or_try_init(|| async {
            spec.check(self.options.denied)?;
            spec.limits = spec.limits.capped(&self.options.ceiling);
            spec.limits.memory_bytes = spec.limits.memory_bytes.min(self.budget.largest());
            let engine = self.engines.get(spec.engine());
            let module = make(spec).await?;
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

    /// An interpreter that is ready: from memory, from the cache, or by compiling, which takes a while.
    pub async fn interpreter(
        &self,
        digest: Digest,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<Arc<Interpreter>, PrepareError> {
        let slot = self.interpreters.lock().entry(digest).or_default().clone();
        let ready = slot.get_or_try_init(|| async {
            let kind = EngineKind::Guest;
            let compiled = self.compiler.load_large(self.engines.get(kind), kind, digest, bytes).await?;
            Interpreter::new(compiled.component).map(Arc::new)
        });
        ready.await.cloned()
    }

    /// Make an interpreter's machine code, unless it is in the cache, without loading it. `true` when it was made.
    pub async fn precompile(
        &self,
        digest: Digest,
        bytes: impl AsyncFnOnce() -> Result<Bytes, PrepareError>,
    ) -> Result<bool, PrepareError> {
        let kind = EngineKind::Guest;
        self.compiler.precompile(self.engines.get(kind), kind, digest, bytes).await
    }

    /// Forget all interpreters but these; each is freed when the last module it runs is.
    pub fn keep_interpreters(&self, digests: &HashSet<Digest>) {
        self.interpreters.lock().retain(|digest, slot| digests.contains(digest) || slot.get().is_none());
    }

    /// Forget a module; it is freed when its last call ends.
    pub fn retire(&self, digest: Digest) {
        self.modules.lock().pop(&digest);
        self.shards.forget(digest);
        self.kept.forget(digest);
    }

    /// Removes the machine code of a component that is not kept; calls that run it go on.
    pub fn forget_code(&self, digest: Digest) {
        self.compiler.forget(&self.engines, digest);
    }

    /// Removes all machine code from the cache but that of these components.
    pub async fn keep_code(&self, digests: HashSet<Digest>) {
        self.compiler.keep_only(&self.engines, digests).await;
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
        let resident = module.spec.instance == InstancePolicy::Resident;
        if module.spec.engine() == EngineKind::Pure {
            let (answer, receiver) = oneshot::channel();
            let key = shard_key(&call.identity.idempotency_key);
            let (identity, input) = (call.identity, call.input);
            // The instance's own memory is the platform's; what a caller brings is the caller's.
            let room = match input.weight() {
                0..=SMALL_INPUT => None,
                weight => Some(self.budget.reserve(&identity.tenant, weight, 0, false).await),
            };
            let input = input.load(&self.drivers.payloads).await?;
            let job = Job { module: module.clone(), template, terms, identity, input, queued, answer, room };
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
        let (engines, drivers, budget, module, kept) =
            (self.engines.clone(), self.drivers.clone(), self.budget.clone(), module.clone(), self.kept.clone());
        let running = async move {
            let weight = call.input.weight();
            let tenant = call.identity.tenant.clone();
            // The room of a sandbox that is kept is for its memory, not for a large input beside it. A call that is
            // recorded or played has a sandbox to itself: what earlier calls left would be in the case and in no play
            // of it, and its clock and randomness are not for calls after it.
            let keeps = resident && weight <= SMALL_INPUT && matches!(call.script, Script::Live);
            let owner = keeps.then(|| Owner { module: module.spec.digest, grant: template.grant, tenant });
            let (sandbox, room) = match owner.as_ref().and_then(|owner| kept.take(owner)) {
                Some((sandbox, room)) => (Some(sandbox), room),
                None => {
                    let bytes = module.spec.limits.memory_bytes.saturating_add(weight);
                    let slots = module.slots as usize;
                    (None, room(&kept, budget.reserve(&call.identity.tenant, bytes, slots, system)).await)
                }
            };
            let input = call.input.load(&drivers.payloads).await?;
            let (identity, queue) = (call.identity, queued.elapsed());
            let run = Run {
                engines: &engines,
                module: &module,
                template: &template,
                terms,
                identity,
                drivers,
                queue,
                script: call.script,
            };
            let (finished, sandbox) = run.run(input, sandbox).await;
            if let (Some(owner), Some(sandbox)) = (owner, sandbox) {
                kept.put(owner, sandbox, room);
                if budget.is_waited_for() {
                    kept.clear();
                }
            }
            finished
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
pub(crate) struct Running<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits for memory. What is only kept for later gives way to a call that needs it now.
async fn room(kept: &Kept, reserving: impl Future<Output = Reservation>) -> Reservation {
    let mut reserving = std::pin::pin!(reserving);
    if let Some(room) = reserving.as_mut().now_or_never() {
        return room;
    }
    kept.clear();
    reserving.await
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
            source: None,
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
