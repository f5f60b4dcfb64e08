//! Pools: how many commands run at once, and whose turn it is.
//!
//! A pool has slots. A command takes one for as long as it keeps a tool busy; while it sleeps between attempts it has
//! none. What finds no slot waits, and tenants and executions take turns as in the inbox. A pool nobody configured
//! does not exist: a command for it is an error, never something that waits for ever.

use std::collections::BTreeMap;

use noetl_contract::Tenant;

use super::ids::ExecutionId;
use super::inbox::Inbox;

pub const SHARED: &str = "shared";
/// Only executions of playbooks under `system/` may use it.
pub const SYSTEM: &str = "system";

pub struct Pools<T> {
    pools: BTreeMap<String, Pool<T>>,
}

struct Pool<T> {
    slots: usize,
    used: usize,
    waiting: Inbox<T>,
}

impl<T> Pools<T> {
    /// `share` of how many shards these slots are divided among.
    pub fn new(sizes: &[(String, usize)], shards: usize) -> Self {
        let pool =
            |slots: &usize| Pool { slots: slots.div_ceil(shards.max(1)).max(1), used: 0, waiting: Inbox::default() };
        Self { pools: sizes.iter().map(|(name, slots)| (name.clone(), pool(slots))).collect() }
    }

    pub fn names(&self) -> Vec<&str> {
        self.pools.keys().map(String::as_str).collect()
    }

    /// False when there is no such pool.
    #[must_use]
    pub fn enqueue(&mut self, pool: &str, tenant: &Tenant, execution: ExecutionId, item: T) -> bool {
        let Some(pool) = self.pools.get_mut(pool) else { return false };
        pool.waiting.push(tenant, execution, item);
        true
    }

    pub fn release(&mut self, pool: &str) {
        if let Some(pool) = self.pools.get_mut(pool) {
            pool.used = pool.used.saturating_sub(1);
        }
    }

    /// Everything that can have a slot now and is still wanted; each has one from here on.
    pub fn ready(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut ready = Vec::new();
        for pool in self.pools.values_mut() {
            while pool.used < pool.slots && !pool.waiting.is_empty() {
                let taken = pool.waiting.take(pool.slots - pool.used);
                let before = ready.len();
                ready.extend(taken.into_iter().filter(&wanted));
                pool.used += ready.len() - before;
            }
        }
        ready
    }

    pub fn waiting(&self) -> usize {
        self.pools.values().map(|pool| pool.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_run_than_there_are_slots_and_an_unknown_pool_is_refused() {
        let tenant = Tenant::main();
        let mut pools = Pools::new(&[("shared".to_owned(), 2), ("gpu".to_owned(), 1)], 1);
        for item in 0..3 {
            assert!(pools.enqueue(SHARED, &tenant, ExecutionId(1), item));
        }
        assert!(pools.enqueue("gpu", &tenant, ExecutionId(1), 9));
        assert!(!pools.enqueue("missing", &tenant, ExecutionId(1), 9));
        assert_eq!(pools.ready(|_| true), [9, 0, 1]);
        assert_eq!((pools.ready(|_| true), pools.waiting()), (vec![], 1));
        pools.release(SHARED);
        assert!(pools.ready(|item| *item != 2).is_empty(), "nobody wants it any more");
        assert_eq!(pools.waiting(), 0);
    }
}
