//! What one call has used, and the one place that decides that it is too much.
//!
//! Memory is summed over all memories and tables of an instance: a limit on each alone is no limit, since
//! a component may have many. What the host keeps for a guest (staged writes, payloads that are still in
//! memory) is counted with it: a guest cannot have by way of the host what it cannot have itself.

use noetl_contract::Limits;
use wasmtime::ResourceLimiter;

use crate::error::{Fault, FaultClass};

/// Bytes a table element takes in the host.
const ELEMENT: u64 = 8;
const MAX_INSTANCES: usize = 1_000;
const MAX_TABLES: usize = 1_000;
const MAX_MEMORIES: usize = 100;

#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    cpu_ticks: u64,
    memory: u64,
    high_water: u64,
    host_calls: u64,
    host_bytes: u64,
    /// The first bound that was hit; what follows is only its consequence.
    fault: Option<Fault>,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, cpu_ticks: 0, memory: 0, high_water: 0, host_calls: 0, host_bytes: 0, fault: None }
    }

    /// A resident instance keeps its memory from call to call; everything else starts anew.
    pub(crate) fn next_call(&mut self) {
        self.cpu_ticks = 0;
        self.host_calls = 0;
        self.host_bytes = 0;
        self.fault = None;
        self.high_water = self.memory;
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn high_water(&self) -> u64 {
        self.high_water
    }

    pub(crate) fn take_fault(&mut self) -> Option<Fault> {
        self.fault.take()
    }

    pub(crate) fn fail(&mut self, class: FaultClass, message: impl Into<String>) -> Fault {
        self.fault.get_or_insert_with(|| Fault::new(class, message)).clone()
    }

    /// One more millisecond of computing. `false` when the budget is spent.
    pub(crate) fn tick(&mut self) -> bool {
        self.cpu_ticks += 1;
        if self.cpu_ticks <= self.limits.cpu_ms {
            return true;
        }
        let cpu_ms = self.limits.cpu_ms;
        self.fail(FaultClass::Timeout, format!("the guest computed for longer than {cpu_ms} ms (`limits.cpu_ms`)"));
        false
    }

    /// One more call into the host, with this many bytes of arguments.
    pub(crate) fn host_call(&mut self, bytes: usize) -> Result<(), Fault> {
        self.host_calls += 1;
        self.host_bytes = self.host_bytes.saturating_add(bytes as u64);
        if self.host_calls > self.limits.host_calls {
            let most = self.limits.host_calls;
            return Err(self.fail(
                FaultClass::Quota,
                format!("the guest called the host more than {most} times (`limits.host_calls`)"),
            ));
        }
        if self.host_bytes > self.limits.host_bytes {
            let most = self.limits.host_bytes >> 20;
            return Err(self.fail(
                FaultClass::Quota,
                format!("the guest handed the host more than {most} MiB (`limits.host_mb`)"),
            ));
        }
        Ok(())
    }

    /// The host keeps this many more bytes for the guest.
    pub(crate) fn hold(&mut self, bytes: u64) -> Result<(), Fault> {
        if self.grow(bytes) {
            return Ok(());
        }
        Err(self.fail(FaultClass::Memory, "more is kept for the guest than `limits.memory_mb`"))
    }

    /// The host keeps this many bytes no longer.
    pub(crate) fn release(&mut self, bytes: u64) {
        self.memory = self.memory.saturating_sub(bytes);
    }

    fn grow(&mut self, by: u64) -> bool {
        let Some(wanted) = self.memory.checked_add(by).filter(|wanted| *wanted <= self.limits.memory_bytes) else {
            let most = self.limits.memory_bytes >> 20;
            self.fail(
                FaultClass::Memory,
                format!("the guest needs more than {most} MiB of memory (`limits.memory_mb`)"),
            );
            return false;
        };
        self.memory = wanted;
        self.high_water = self.high_water.max(wanted);
        true
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(desired.saturating_sub(current) as u64))
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow((desired.saturating_sub(current) as u64).saturating_mul(ELEMENT)))
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_all_memories_and_tables() {
        let mut meter = Meter::new(Limits { memory_bytes: 100, ..Limits::default() });
        assert!(meter.memory_growing(0, 60, None).expect("never errs"));
        assert!(meter.table_growing(0, 4, None).expect("never errs"));
        assert!(!meter.memory_growing(0, 60, None).expect("never errs"), "a second memory has only 8 bytes left");
        assert_eq!(meter.take_fault().map(|fault| fault.class), Some(FaultClass::Memory));
        assert_eq!(meter.high_water(), 92);
    }

    #[test]
    fn what_the_host_keeps_counts_as_the_guests_own() {
        let mut meter = Meter::new(Limits { memory_bytes: 100, ..Limits::default() });
        meter.hold(60).expect("within bounds");
        assert!(!meter.memory_growing(0, 60, None).expect("never errs"));
        meter.take_fault();
        meter.release(60);
        assert!(meter.memory_growing(0, 60, None).expect("never errs"));
        assert_eq!(meter.hold(60).map_err(|fault| fault.class), Err(FaultClass::Memory));
    }

    #[test]
    fn the_first_bound_that_was_hit_is_the_one_that_is_told() {
        let mut meter = Meter::new(Limits { host_calls: 1, cpu_ms: 0, ..Limits::default() });
        meter.host_call(1).expect("within bounds");
        assert_eq!(meter.host_call(1).map_err(|fault| fault.class), Err(FaultClass::Quota));
        assert!(!meter.tick());
        assert_eq!(meter.take_fault().map(|fault| fault.class), Some(FaultClass::Quota));
    }
}
