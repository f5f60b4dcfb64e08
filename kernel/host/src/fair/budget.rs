//! A bounded amount of memory and slots, shared fairly.
//!
//! Whoever wants some takes all of it before it starts and gives it back when it ends. Taking everything at
//! once is what makes waiting safe: nobody waits while holding a part of what another needs. Requests wait;
//! they do not fail. System services have a reserve of their own, so that a flood of tenants' calls cannot
//! starve the services that would stop it.
//!
//! Two rules keep one tenant from taking it all:
//! 1. *The queue goes round by tenant.* Whoever is next and does not fit holds up everybody behind, so a
//!    large request is never overtaken for ever.
//! 2. *A tenant's share depends on what is left.* Beyond its first request a tenant may hold at most three
//!    times what stays free: one alone gets three quarters, a second one three quarters of the rest, and
//!    there is always something left for one more. A fixed share would either waste what nobody else wants or
//!    be used up by as many tenants as it divides into.
//!
//! A request that is given up while it waits leaves nothing behind.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_contract::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Ring;

/// Memory is counted in pages of this size, so that small requests cost something too.
const PAGE: u64 = 64 << 10;
/// A tenant may hold this many times what stays free.
const SHARE: u64 = 3;

/// An amount of both things that are given out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    pages: u64,
    slots: u64,
}

impl Amount {
    fn fits(self, room: Amount) -> bool {
        self.pages <= room.pages && self.slots <= room.slots
    }

    fn plus(self, other: Amount) -> Amount {
        Amount { pages: self.pages + other.pages, slots: self.slots + other.slots }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount { pages: self.pages.saturating_sub(other.pages), slots: self.slots.saturating_sub(other.slots) }
    }
}

struct Waiting {
    need: Amount,
    granted: oneshot::Sender<Reservation>,
}

#[derive(Default)]
struct State {
    free: Amount,
    reserve: u64,
    held: HashMap<Tenant, Amount>,
    waiting: Ring<Waiting>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Budget {
    state: Arc<Mutex<State>>,
    total: Amount,
}

/// Held while it is used.
pub struct Reservation {
    budget: Budget,
    tenant: Tenant,
    common: Amount,
    reserve: u64,
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE)
}

impl Budget {
    /// `bytes` and `slots` to give out, `reserve` of the bytes only to the system.
    pub fn new(bytes: u64, reserve: u64, slots: usize) -> Self {
        let reserve = pages(reserve.min(bytes));
        let total = Amount { pages: pages(bytes) - reserve, slots: slots as u64 };
        let state = State { free: total, reserve, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), total }
    }

    /// The most one request gets: never all, so that one alone cannot shut out the rest.
    pub fn largest(&self) -> u64 {
        (self.total.pages * SHARE / (SHARE + 1)).max(1) * PAGE
    }

    /// Waits for room. The system takes the common part when it is free and its reserve otherwise.
    pub async fn reserve(&self, tenant: &Tenant, bytes: u64, slots: usize, system: bool) -> Reservation {
        let need = Amount { pages: pages(bytes).min(self.total.pages), slots: (slots as u64).min(self.total.slots) };
        let granted = {
            let mut state = self.state.lock();
            if state.waiting.is_empty() && state.may_take(tenant, need) {
                return self.take(&mut state, tenant, need, 0);
            }
            let from_reserve = Amount { pages: 0, ..need };
            if system && need.pages <= state.reserve && from_reserve.fits(state.free) {
                return self.take(&mut state, tenant, from_reserve, need.pages);
            }
            let (grant, granted) = oneshot::channel();
            state.waiting.push(tenant, Waiting { need, granted: grant });
            self.serve(&mut state);
            granted
        };
        granted.await.expect("a budget forgets nobody who still waits")
    }

    fn take(&self, state: &mut State, tenant: &Tenant, common: Amount, reserve: u64) -> Reservation {
        state.free = state.free.minus(common);
        state.reserve -= reserve;
        let held = state.held.entry(tenant.clone()).or_default();
        *held = held.plus(common);
        Reservation { budget: self.clone(), tenant: tenant.clone(), common, reserve }
    }

    /// Gives out what can be given out, in turn. Those who hold their share already are passed over; whoever
    /// else does not fit is waited for.
    fn serve(&self, state: &mut State) {
        let mut place = 0;
        while let Some((tenant, next)) = state.waiting.at(place) {
            if next.granted.is_closed() {
                state.waiting.take(place);
            } else if !state.is_in_share(tenant, next.need) {
                place += 1;
            } else if !next.need.fits(state.free) {
                return;
            } else if let Some((tenant, Waiting { need, granted })) = state.waiting.take(place) {
                let reservation = self.take(state, &tenant, need, 0);
                // Given up at this very moment: what comes back must not be given back under the lock.
                if let Err(mut unwanted) = granted.send(reservation) {
                    state.put_back(&mut unwanted);
                }
                place = 0;
            }
        }
    }
}

impl State {
    fn may_take(&self, tenant: &Tenant, need: Amount) -> bool {
        need.fits(self.free) && self.is_in_share(tenant, need)
    }

    fn is_in_share(&self, tenant: &Tenant, need: Amount) -> bool {
        let Some(held) = self.held.get(tenant).filter(|held| **held != Amount::default()) else { return true };
        let left = self.free.minus(need);
        held.plus(need).fits(Amount { pages: left.pages * SHARE, slots: left.slots * SHARE })
    }

    fn put_back(&mut self, reservation: &mut Reservation) {
        let (common, reserve) = (std::mem::take(&mut reservation.common), std::mem::take(&mut reservation.reserve));
        self.free = self.free.plus(common);
        self.reserve += reserve;
        if let Some(held) = self.held.get_mut(&reservation.tenant) {
            *held = held.minus(common);
            if *held == Amount::default() {
                self.held.remove(&reservation.tenant);
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.common == Amount::default() && self.reserve == 0 {
            return;
        }
        let budget = self.budget.clone();
        let mut state = budget.state.lock();
        state.put_back(self);
        budget.serve(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).expect("valid")
    }

    #[tokio::test]
    async fn a_call_waits_until_another_gives_back_what_it_needs() {
        let budget = Budget::new(4 * PAGE, 0, 10);
        let first = budget.reserve(&tenant("a"), 3 * PAGE, 1, false).await;
        let b = tenant("b");
        let mut second = Box::pin(budget.reserve(&b, 2 * PAGE, 1, false));
        assert!((&mut second).now_or_never().is_none(), "it must wait, not fail");
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn the_reserve_serves_system_calls_when_tenants_took_everything_else() {
        let budget = Budget::new(4 * PAGE, PAGE, 10);
        let _tenant = budget.reserve(&tenant("a"), 3 * PAGE, 1, false).await;
        assert!(budget.reserve(&tenant("b"), PAGE, 1, false).now_or_never().is_none());
        assert!(budget.reserve(&tenant("b"), PAGE, 1, true).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_full_instance_pool_makes_calls_wait() {
        let budget = Budget::new(100 * PAGE, 0, 2);
        let held = budget.reserve(&tenant("a"), PAGE, 2, false).await;
        assert!(budget.reserve(&tenant("b"), PAGE, 1, false).now_or_never().is_none());
        drop(held);
        assert!(budget.reserve(&tenant("b"), PAGE, 1, false).now_or_never().is_some());
    }

    #[tokio::test]
    async fn one_tenant_never_holds_everything_and_there_is_room_for_one_more() {
        let budget = Budget::new(64 * PAGE, 0, 64);
        let mut held = Vec::new();
        let mut counts = Vec::new();
        for name in ["a", "b", "c"] {
            let before = held.len();
            while let Some(more) = budget.reserve(&tenant(name), PAGE, 1, false).now_or_never() {
                held.push(more);
            }
            counts.push(held.len() - before);
        }
        assert_eq!(counts, [48, 12, 3], "three quarters of what is left, each");
        assert!(budget.reserve(&tenant("d"), PAGE, 1, false).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_queue_goes_round_by_tenant() {
        let budget = Budget::new(PAGE, 0, 1);
        let running = budget.reserve(&tenant("many"), PAGE, 1, false).await;
        let (done, mut order) = tokio::sync::mpsc::unbounded_channel();
        let queue = |name: &'static str| {
            let (budget, done) = (budget.clone(), done.clone());
            tokio::spawn(async move {
                let _room = budget.reserve(&tenant(name), PAGE, 1, false).await;
                let _ = done.send(name);
            })
        };
        let mut tasks = Vec::new();
        for name in ["many"; 20].into_iter().chain(["few"]) {
            tasks.push(queue(name));
            // Until it stands in the queue.
            tokio::task::yield_now().await;
        }
        drop(running);
        for task in tasks {
            task.await.expect("served");
        }
        drop(done);
        let mut served = Vec::new();
        while let Some(name) = order.recv().await {
            served.push(name);
        }
        let place = served.iter().position(|name| *name == "few").expect("served");
        assert!(place <= 1, "behind one call of the other, not twenty: {served:?}");
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_nothing_behind() {
        let budget = Budget::new(2 * PAGE, 0, 2);
        let held = budget.reserve(&tenant("a"), 2 * PAGE, 1, false).await;
        let b = tenant("b");
        let mut waiting = Box::pin(budget.reserve(&b, PAGE, 1, false));
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert!(budget.reserve(&tenant("c"), 2 * PAGE, 2, false).now_or_never().is_some());
        assert!(budget.state.lock().held.is_empty());
    }
}
