//! The two engines and the clock that interrupts guests.
//!
//! *guest* runs calls on fibers with pooled memory, so that a guest waiting for the host costs a slot and
//! not a thread. *pure* runs resident, deterministic components synchronously on their own threads: no
//! fibers, and NaNs are made canonical so that a fold gives the same bits on every machine.
//!
//! Both compile with epoch checks. The ticker advances the epoch once a millisecond, but only while a
//! call is in flight: an idle server does not wake a thousand times a second.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::error::StartError;
use crate::fair::Turns;

/// One step of `cpu_ms`.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Stack of a guest. Deep recursion ends in a trap, well before a host thread's own stack does.
const GUEST_STACK: usize = 1 << 20;
const MAX_TABLES_PER_SLOT: u32 = 12;

/// Which engine a component is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    Guest,
    Pure,
}

impl EngineKind {
    pub(crate) const ALL: [EngineKind; 2] = [EngineKind::Guest, EngineKind::Pure];

    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Guest => "guest",
            EngineKind::Pure => "pure",
        }
    }
}

/// What decides the machine code. Shared by the server and its compiler process, whose output must fit.
fn code_config(kind: EngineKind) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.wasm_component_model(true);
    config.max_wasm_stack(GUEST_STACK);
    config.async_stack_size(GUEST_STACK + (512 << 10));
    config.cranelift_nan_canonicalization(kind == EngineKind::Pure);
    config.memory_init_cow(true);
    config
}

/// The compiler process's engine: same code, no memory pool.
pub(crate) fn compiler(kind: EngineKind) -> wasmtime::Result<Engine> {
    Engine::new(&code_config(kind))
}

pub(crate) struct Engines {
    pub(crate) guest: Engine,
    pub(crate) pure: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) turns: Turns,
}

impl Engines {
    /// `slots` is how many guest memories can exist at once, `threads` how many guests compute at once.
    pub(crate) fn new(slots: u32, threads: usize) -> Result<Self, StartError> {
        let failed = |doing| move |error: wasmtime::Error| StartError { doing, reason: format!("{error:#}") };
        let mut config = code_config(EngineKind::Guest);
        let mut pool = PoolingAllocationConfig::default();
        // CPython and JavaScript components have some hundred core instances and large tables.
        pool.total_component_instances(slots * 4);
        pool.total_core_instances(slots * 200);
        pool.max_core_instances_per_component(200);
        pool.max_component_instance_size(16 << 20);
        pool.max_core_instance_size(16 << 20);
        pool.total_memories(slots);
        pool.max_memories_per_component(20.min(slots));
        pool.max_memory_size(4 << 30);
        pool.total_tables(slots * MAX_TABLES_PER_SLOT);
        pool.max_tables_per_component(100.min(slots * MAX_TABLES_PER_SLOT));
        pool.table_elements(100_000);
        pool.total_stacks(slots);
        // Overwriting the few pages a call touched is cheaper than giving them back and faulting them in again:
        // with the kernel's list of touched pages a fresh call costs half (15 against 31 µs, measured).
        pool.linear_memory_keep_resident(128 << 10);
        pool.table_keep_resident(16 << 10);
        pool.pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let guest = Engine::new(&config).map_err(failed("make the guest engine"))?;
        let pure = Engine::new(&code_config(EngineKind::Pure)).map_err(failed("make the pure engine"))?;
        let turns = Turns::new(threads);
        let ticker = Ticker::start(vec![guest.clone(), pure.clone()], turns.clone())?;
        Ok(Self { guest, pure, ticker, turns })
    }

    pub(crate) fn get(&self, kind: EngineKind) -> &Engine {
        match kind {
            EngineKind::Guest => &self.guest,
            EngineKind::Pure => &self.pure,
        }
    }

    /// Slots an instance of the component takes in the pool.
    pub(crate) fn slots_of(component: &Component) -> u32 {
        let needed = component.resources_required();
        needed.map_or(1, |needed| needed.num_memories.max(needed.num_tables.div_ceil(MAX_TABLES_PER_SLOT)).max(1))
    }
}

/// Names everything machine code depends on: compiler version, settings, target.
pub(crate) fn fingerprint(engine: &Engine) -> String {
    let mut hasher = StableHasher::default();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// FNV-1a: the standard hasher is free to change between compilers, and the value names a folder on disk.
struct StableHasher(u64);

impl Default for StableHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for StableHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Advances the epoch of all engines while somebody is running.
#[derive(Clone)]
pub(crate) struct Ticker(Arc<TickerShared>);

struct TickerShared {
    state: Mutex<TickerState>,
    wake: Condvar,
}

#[derive(Default)]
struct TickerState {
    running: usize,
    stop: bool,
}

/// Keeps the ticker going; one a call.
pub(crate) struct Ticking(Arc<TickerShared>);

impl Ticker {
    fn start(engines: Vec<Engine>, turns: Turns) -> Result<Self, StartError> {
        let shared = Arc::new(TickerShared { state: Mutex::default(), wake: Condvar::new() });
        let theirs = shared.clone();
        std::thread::Builder::new()
            .name("epoch".to_owned())
            .spawn(move || tick(&theirs, &engines, &turns))
            .map_err(|error| StartError { doing: "start the epoch thread", reason: error.to_string() })?;
        Ok(Self(shared))
    }

    pub(crate) fn enter(&self) -> Ticking {
        let mut state = self.0.state.lock();
        state.running += 1;
        if state.running == 1 {
            self.0.wake.notify_one();
        }
        drop(state);
        Ticking(self.0.clone())
    }

    pub(crate) fn stop(&self) {
        self.0.state.lock().stop = true;
        self.0.wake.notify_one();
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.state.lock().running -= 1;
    }
}

fn tick(shared: &TickerShared, engines: &[Engine], turns: &Turns) {
    loop {
        {
            let mut state = shared.state.lock();
            while state.running == 0 && !state.stop {
                shared.wake.wait(&mut state);
            }
            if state.stop {
                return;
            }
        }
        std::thread::sleep(TICK);
        engines.iter().for_each(Engine::increment_epoch);
        turns.tick();
    }
}
