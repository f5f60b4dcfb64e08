//! The server-wide memory budget.
//!
//! A call takes its whole memory limit out of the budget before it starts and gives it back when it ends.
//! Taking everything at once is what makes waiting safe: no call ever waits while it holds a part of what
//! another needs. Calls wait in order; they do not fail. System services have a reserve of their own, so
//! that a flood of tenant calls cannot starve the services that would stop it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits are pages of this size, since a semaphore counts in 32 bits.
const PAGE: u64 = 64 << 10;

#[derive(Clone)]
pub(crate) struct Budget {
    shared: Arc<Semaphore>,
    system: Arc<Semaphore>,
    shared_pages: u32,
    system_pages: u32,
    slots: Arc<Semaphore>,
    slot_count: u32,
}

/// Held while a call runs.
pub(crate) struct Reservation {
    _memory: OwnedSemaphorePermit,
    _slots: OwnedSemaphorePermit,
}

fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX)
}

impl Budget {
    pub(crate) fn new(total: u64, reserve: u64, slots: u32) -> Self {
        let system_pages = pages(reserve.min(total));
        let shared_pages = pages(total) - system_pages;
        Self {
            shared: Arc::new(Semaphore::new(shared_pages as usize)),
            system: Arc::new(Semaphore::new(system_pages as usize)),
            shared_pages,
            system_pages,
            slots: Arc::new(Semaphore::new(slots as usize)),
            slot_count: slots,
        }
    }

    /// The most one call can ever get; a limit above it is cut to it when the module is prepared.
    pub(crate) fn largest(&self) -> u64 {
        u64::from(self.shared_pages) * PAGE
    }

    /// Wait for room. System services take the common part when it is free and their reserve otherwise.
    pub(crate) async fn reserve(&self, bytes: u64, slots: u32, system: bool) -> Reservation {
        let wanted = pages(bytes).max(1);
        let memory = match self.try_common(wanted) {
            Some(permit) => permit,
            None if system && wanted <= self.system_pages => acquire(&self.system, wanted).await,
            None => acquire(&self.shared, wanted.min(self.shared_pages.max(1))).await,
        };
        let slots = acquire(&self.slots, slots.min(self.slot_count)).await;
        Reservation { _memory: memory, _slots: slots }
    }

    fn try_common(&self, wanted: u32) -> Option<OwnedSemaphorePermit> {
        self.shared.clone().try_acquire_many_owned(wanted).ok()
    }
}

async fn acquire(semaphore: &Arc<Semaphore>, permits: u32) -> OwnedSemaphorePermit {
    semaphore.clone().acquire_many_owned(permits).await.expect("the budget's semaphores are never closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_call_waits_until_another_gives_back_what_it_needs() {
        let budget = Budget::new(4 * PAGE, 0, 10);
        let first = budget.reserve(3 * PAGE, 1, false).await;
        let mut second = Box::pin(budget.reserve(2 * PAGE, 1, false));
        assert!((&mut second).now_or_never().is_none(), "it must wait, not fail");
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn the_reserve_serves_system_calls_when_tenants_took_everything_else() {
        let budget = Budget::new(4 * PAGE, PAGE, 10);
        let _tenant = budget.reserve(3 * PAGE, 1, false).await;
        assert!(budget.reserve(PAGE, 1, false).now_or_never().is_none());
        assert!(budget.reserve(PAGE, 1, true).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_full_instance_pool_makes_calls_wait() {
        let budget = Budget::new(100 * PAGE, 0, 2);
        let held = budget.reserve(PAGE, 2, false).await;
        assert!(budget.reserve(PAGE, 1, false).now_or_never().is_none());
        drop(held);
        assert!(budget.reserve(PAGE, 1, false).now_or_never().is_some());
    }
}
