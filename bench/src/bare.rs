//! The same component with nothing but wasmtime around it: what no host can be faster than.
//!
//! The settings are those of the host's engines; what is missing is everything the host adds: limits,
//! accounting, the memory budget, threads of its own, typed faults.

use std::time::{Duration, Instant};

use anyhow::Result;
use wasmtime::component::{Component, InstancePre, Linker, TypedFunc};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

type Answer = (Result<Vec<u8>, Failure>,);

/// The guest's failure record, as the contract has it.
#[derive(wasmtime::component::ComponentType, wasmtime::component::Lift)]
#[component(record)]
struct Failure {
    code: String,
    message: String,
    retryable: bool,
}

fn linked(config: &Config, component: &[u8]) -> Result<(Engine, InstancePre<()>)> {
    let engine = Engine::new(config)?;
    let component = Component::new(&engine, component)?;
    let mut linker = Linker::<()>::new(&engine);
    linker.define_unknown_imports_as_traps(&component)?;
    let template = linker.instantiate_pre(&component)?;
    Ok((engine, template))
}

/// A new instance every call, from a pool.
pub struct Fresh {
    engine: Engine,
    template: InstancePre<()>,
}

impl Fresh {
    pub fn new(component: &[u8]) -> Result<Self> {
        let mut config = Config::new();
        config.epoch_interruption(true);
        let mut pool = PoolingAllocationConfig::default();
        pool.total_memories(16)
            .total_component_instances(16)
            .total_core_instances(64)
            .linear_memory_keep_resident(128 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let (engine, template) = linked(&config, component)?;
        Ok(Self { engine, template })
    }

    pub fn calls(&mut self, count: usize, input: &[u8]) -> Result<Duration> {
        let started = Instant::now();
        for _ in 0..count {
            let mut store = Store::new(&self.engine, ());
            store.set_epoch_deadline(1 << 40);
            let instance = self.template.instantiate(&mut store)?;
            let run: TypedFunc<(&[u8],), Answer> = instance.get_typed_func(&mut store, "run")?;
            expect(run.call(&mut store, (input,))?)?;
        }
        Ok(started.elapsed())
    }
}

/// One instance for all calls.
pub struct Resident {
    store: Store<()>,
    instance: wasmtime::component::Instance,
}

impl Resident {
    pub fn new(component: &[u8]) -> Result<Self> {
        let mut config = Config::new();
        config.epoch_interruption(true);
        config.cranelift_nan_canonicalization(true);
        let (engine, template) = linked(&config, component)?;
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(1 << 40);
        let instance = template.instantiate(&mut store)?;
        Ok(Self { store, instance })
    }

    pub fn calls(&mut self, count: usize, input: &[u8]) -> Result<Duration> {
        let run: TypedFunc<(&[u8],), Answer> = self.instance.get_typed_func(&mut self.store, "run")?;
        let started = Instant::now();
        for _ in 0..count {
            expect(run.call(&mut self.store, (input,))?)?;
        }
        Ok(started.elapsed())
    }
}

fn expect(answer: Answer) -> Result<()> {
    answer.0.map(drop).map_err(|Failure { code, message, retryable }| {
        anyhow::anyhow!("the guest failed with {code} (retryable: {retryable}): {message}")
    })
}
