//! A bounded amount of memory and slots, shared fairly.
//!
//! Whoever wants some takes all of it before it starts and gives it back when it ends. Taking everything at
//! once is what makes waiting safe: nobody waits while holding a part of what another needs. Requests wait;
//! they do not fail. The platform's own services have a reserve and a queue of their own, so that a flood of
//! tenants' calls cannot starve the services that would stop it. What no reserve could hold waits like everybody's.
//!
//! Two rules keep one tenant from taking it all:
//! 1. *The queue goes round by tenant.* Whoever is next and does not fit holds up everybody behind, so a
//!    large request is never overtaken for ever.
//! 2. *A tenant's share depends on what is left.* Beyond its first request a tenant may hold at most three
//!    times what stays free: one alone gets three quarters, a second one three quarters of the rest, and
//!    there is always something left for one more. A fixed share would either waste what nobody else wants or
//!    be used up by as many tenants as it divides into.
//!
//! A request that is given up while it waits leaves nothing behind, and whoever it held up is served at once.

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
    /// The platform's own, who may take of the reserve.
    services: Ring<Waiting>,
}

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Budget {
    state: Arc<Mutex<State>>,
    total: Amount,
    reserve: u64,
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
        Self { state: Arc::new(Mutex::new(state)), total, reserve }
    }

    /// The most one request gets: never all, so that one alone cannot shut out the rest.
    pub fn largest(&self) -> u64 {
        (self.total.pages * SHARE / (SHARE + 1)).max(1) * PAGE
    }

    /// Waits for room. The system takes the common part when it is free and its reserve otherwise.
    pub async fn reserve(&self, tenant: &Tenant, bytes: u64, slots: usize, system: bool) -> Reservation {
        let need = Amount { pages: pages(bytes).min(self.total.pages), slots: (slots as u64).min(self.total.slots) };
        let system = system && need.pages <= self.reserve;
        let mut queued = {
            let mut state = self.state.lock();
            if state.waiting.is_empty() && state.may_take(tenant, need) {
                return self.take(&mut state, tenant, need, 0);
            }
            let (grant, granted) = oneshot::channel();
            let queue = if system { &mut state.services } else { &mut state.waiting };
            queue.push(tenant, Waiting { need, granted: grant });
            self.serve(&mut state);
            Queued { budget: self, granted, served: false }
        };
        let reservation = (&mut queued.granted).await.expect("a budget forgets nobody who still waits");
        queued.served = true;
        reservation
    }

    /// Whether somebody waits: whoever only keeps memory for later then gives it back.
    pub(crate) fn is_waited_for(&self) -> bool {
        let state = self.state.lock();
        !(state.waiting.is_empty() && state.services.is_empty())
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
        self.serve_the_system(state);
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
                hand_over(state, granted, reservation);
                place = 0;
            }
        }
    }

    /// Of the common part the system takes what nobody waits for: it has a reserve to wait for instead.
    fn serve_the_system(&self, state: &mut State) {
        while let Some((tenant, next)) = state.services.at(0) {
            let (need, without_pages) = (next.need, Amount { pages: 0, ..next.need });
            let (common, reserve) = if next.granted.is_closed() {
                state.services.take(0);
                continue;
            } else if state.waiting.is_empty() && state.may_take(tenant, need) {
                (need, 0)
            } else if need.pages <= state.reserve && without_pages.fits(state.free) {
                (without_pages, need.pages)
            } else {
                return;
            };
            if let Some((tenant, Waiting { granted, .. })) = state.services.take(0) {
                let reservation = self.take(state, &tenant, common, reserve);
                hand_over(state, granted, reservation);
            }
        }
    }
}

/// To somebody who may give up at this very moment: what comes back must not be given back under the lock.
fn hand_over(state: &mut State, granted: oneshot::Sender<Reservation>, reservation: Reservation) {
    if let Err(mut unwanted) = granted.send(reservation) {
        state.put_back(&mut unwanted);
    }
}

/// Somebody who waits. Others may wait only because this one was next and did not fit, so they are served when it
/// gives up.
struct Queued<'a> {
    budget: &'a Budget,
    granted: oneshot::Receiver<Reservation>,
    served: bool,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if self.served {
            return;
        }
        // From here on nothing is granted; what was granted before is given back when the channel goes.
        self.granted.close();
        let mut state = self.budget.state.lock();
        self.budget.serve(&mut state);
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
    async fn a_service_that_finds_the_reserve_taken_waits_for_the_reserve_too() {
        let budget = Budget::new(4 * PAGE, PAGE, 10);
        let _tenant = budget.reserve(&tenant("a"), 3 * PAGE, 1, false).await;
        let b = tenant("b");
        let mut ahead = Box::pin(budget.reserve(&b, PAGE, 1, false));
        assert!((&mut ahead).now_or_never().is_none());
        let first = budget.reserve(&b, PAGE, 1, true).now_or_never().expect("the reserve is free");
        let mut second = Box::pin(budget.reserve(&b, PAGE, 1, true));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        assert!((&mut second).now_or_never().is_some(), "the reserve is free again");
        assert!((&mut ahead).now_or_never().is_none(), "and no tenant's");
    }

    #[tokio::test]
    async fn a_service_larger_than_the_reserve_waits_like_everybody() {
        let budget = Budget::new(4 * PAGE, PAGE, 10);
        let held = budget.reserve(&tenant("a"), 3 * PAGE, 1, false).await;
        let b = tenant("b");
        let mut large = Box::pin(budget.reserve(&b, 2 * PAGE, 1, true));
        assert!((&mut large).now_or_never().is_none());
        drop(held);
        assert!((&mut large).now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_gives_up_lets_those_behind_go_on() {
        let budget = Budget::new(4 * PAGE, 0, 10);
        let _held = budget.reserve(&tenant("a"), 2 * PAGE, 1, false).await;
        let [b, c] = ["b", "c"].map(tenant);
        let mut large = Box::pin(budget.reserve(&b, 3 * PAGE, 1, false));
        assert!((&mut large).now_or_never().is_none());
        let mut small = Box::pin(budget.reserve(&c, PAGE, 1, false));
        assert!((&mut small).now_or_never().is_none(), "the large one is next");
        drop(large);
        assert!((&mut small).now_or_never().is_some(), "nobody is in its way any more");
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
