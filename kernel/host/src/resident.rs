//! Resident instances: kept from call to call, on the thread of whoever calls.
//!
//! Only deterministic components live here, whose state is a function of what they were fed: dropping an
//! instance is always safe. It is dropped after any fault (a component that trapped refuses further
//! calls), when it has grown above its limit's half (wasm memory never shrinks) and when its module goes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use noetl_contract::{CapabilitySet, Digest};
use wasmtime::{Store, UpdateDeadline};

use crate::call::{self, Answer, Finished, Ready, TransformFunc, Usage};
use crate::caps::Drivers;
use crate::engine::Engines;
use crate::error::{Fault, PrepareError};
use crate::grant::{Grant, Terms};
use crate::metrics::{Ending, LiveInstance};
use crate::module::{Module, Template};
use crate::services::{Exports, other_world};
use crate::state::{CallState, Identity};

/// The resident instances of one thread.
pub struct Residents {
    engines: Arc<Engines>,
    drivers: Arc<Drivers>,
    denied: CapabilitySet,
    instances: HashMap<(Digest, Grant), Resident>,
    /// Who calls when it is the kernel itself.
    kernel: Arc<Identity>,
}

struct Resident {
    store: Store<CallState>,
    exports: Exports,
    _live: LiveInstance,
}

impl Residents {
    pub(crate) fn new(
        engines: Arc<Engines>,
        drivers: Arc<Drivers>,
        denied: CapabilitySet,
        kernel: Arc<Identity>,
    ) -> Self {
        Self { engines, drivers, denied, instances: HashMap::new(), kernel }
    }

    /// Drop all instances of a module.
    pub fn forget(&mut self, digest: Digest) {
        self.instances.retain(|(of, _), _| *of != digest);
    }

    /// Drop the instances of all modules but these.
    pub fn keep_only(&mut self, digests: &[Digest]) {
        self.instances.retain(|(of, _), _| digests.contains(of));
    }

    /// Whether an instance of the module is here already.
    pub fn holds(&self, digest: Digest) -> bool {
        self.instances.keys().any(|(of, _)| *of == digest)
    }

    /// Call a pure transform right here.
    pub fn transform(
        &mut self,
        module: &Arc<Module>,
        identity: Arc<Identity>,
        input: Bytes,
    ) -> Result<Finished, Fault> {
        let terms = module.spec.terms(None, self.denied);
        let template = module.template(&self.engines.pure, &terms).map_err(PrepareError::into_fault)?;
        self.call(module, &template, terms, identity, Ready::Bytes(input), Instant::now())
    }

    /// Call an export of a service.
    pub(crate) fn with<T>(
        &mut self,
        module: &Arc<Module>,
        call: impl FnOnce(&Exports, &mut Store<CallState>) -> Option<wasmtime::Result<T>>,
    ) -> Result<T, Fault> {
        let terms = module.spec.terms(None, self.denied);
        let template = module.template(&self.engines.pure, &terms).map_err(PrepareError::into_fault)?;
        let _ticking = self.engines.ticker.enter();
        let started = Instant::now();
        let key = self.enter(module, &template, terms, self.kernel.clone())?;
        let resident = self.instances.get_mut(&key).expect("it was there or has just been made");
        let result = match call(&resident.exports, &mut resident.store) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) => Err(call::classify(&mut resident.store, &error)),
            None => Err(other_world(module)),
        };
        let meter = &resident.store.data().meter;
        let keep = result.is_ok() && meter.memory() <= meter.limits().memory_bytes / 2;
        let ending = match &result {
            Ok(_) => Ending::Answered,
            Err(fault) => Ending::Faulted(fault.class),
        };
        module.metrics.ended(&ending, Duration::ZERO, started.elapsed(), meter.high_water());
        if !keep {
            self.instances.remove(&key);
        }
        result
    }

    /// Makes sure that there is an instance and that it is ready for a call.
    fn enter(
        &mut self,
        module: &Arc<Module>,
        template: &Template,
        terms: Terms,
        identity: Arc<Identity>,
    ) -> Result<(Digest, Grant), Fault> {
        let key = (module.spec.digest, template.grant);
        if let Some(resident) = self.instances.get_mut(&key) {
            resident.store.data_mut().next_call(identity);
        } else {
            let made = self.instantiate(module, template, terms, identity)?;
            self.instances.insert(key, made);
        }
        if let Some(resident) = self.instances.get_mut(&key) {
            resident.store.set_epoch_deadline(1);
        }
        Ok(key)
    }

    pub(crate) fn call(
        &mut self,
        module: &Arc<Module>,
        template: &Template,
        terms: Terms,
        identity: Arc<Identity>,
        input: Ready,
        queued: Instant,
    ) -> Result<Finished, Fault> {
        let queue = queued.elapsed();
        let started = Instant::now();
        let _ticking = self.engines.ticker.enter();
        let key = self.enter(module, template, terms, identity)?;
        let resident = self.instances.get_mut(&key).expect("it was there or has just been made");
        let Exports::Transform(run) = &resident.exports else { return Err(other_world(module)) };
        let bytes = call::transform_input(input);
        let result = match call_export(*run, &mut resident.store, &bytes) {
            Ok(answer) => call::settle(&mut resident.store, answer),
            Err(error) => Err(call::classify(&mut resident.store, &error)),
        };
        let meter = &resident.store.data().meter;
        let usage = Usage { queue, duration: started.elapsed(), memory_bytes: meter.high_water() };
        let keep = result.is_ok() && meter.memory() <= meter.limits().memory_bytes / 2;
        let finished = call::finish(module, &mut resident.store, result, usage);
        if !keep {
            self.instances.remove(&key);
        }
        finished
    }

    fn instantiate(
        &self,
        module: &Arc<Module>,
        template: &Template,
        terms: Terms,
        identity: Arc<Identity>,
    ) -> Result<Resident, Fault> {
        let mut store = call::new_store(&self.engines.pure, module, template, terms, identity, self.drivers.clone());
        store.epoch_deadline_callback(|mut store| {
            Ok(if store.data_mut().meter.tick() { UpdateDeadline::Continue(1) } else { UpdateDeadline::Interrupt })
        });
        store.set_epoch_deadline(1);
        let made = template.pre.instantiate(&mut store);
        let made = made.and_then(|instance| Exports::find(&mut store, &instance, &template.pre, module));
        match made {
            Ok(exports) => Ok(Resident { store, exports, _live: LiveInstance::new(module) }),
            Err(error) => Err(call::classify(&mut store, &error)),
        }
    }
}

fn call_export(run: TransformFunc<'_>, store: &mut Store<CallState>, bytes: &[u8]) -> wasmtime::Result<Answer> {
    // The function's type names a lifetime for its argument; it holds nothing of it after the call.
    Ok(Answer::Transform(run.call(store, (bytes,))?.0))
}
