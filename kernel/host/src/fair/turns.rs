//! Turns on the threads that run guests.
//!
//! A call that computes is interrupted at every tick and goes to the end of its thread's queue. With a hundred
//! calls of one tenant in that queue, a call of another that needs a tenth of a tick waits for a hundred ticks.
//! So calls that have computed for a tick already, the *long* ones, stand aside while there are more of them than
//! threads, and each tick lets as many go on as there are threads, in turn by tenant. A short call finds the
//! threads' queues nearly empty whatever others do.
//!
//! A turn that nobody waits for at its tick is kept for the next who comes: calls notice a tick a little after it.
//!
//! Nobody holds a turn: a call that goes on and then waits for the host would hold it for nothing. And while there
//! are no more long calls than threads, nothing waits at all.

use std::sync::Arc;

use noetl_contract::Tenant;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Ring;

#[derive(Clone)]
pub(crate) struct Turns(Arc<Shared>);

struct Shared {
    threads: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    long: usize,
    /// Turns of this tick that nobody has taken yet.
    left: usize,
    waiting: Ring<oneshot::Sender<()>>,
}

/// A call that has computed for a tick; ends with the call.
pub(crate) struct Long(Turns);

impl Turns {
    pub(crate) fn new(threads: usize) -> Self {
        Self(Arc::new(Shared { threads: threads.max(1), state: Mutex::default() }))
    }

    pub(crate) fn enter(&self) -> Long {
        self.0.state.lock().long += 1;
        Long(self.clone())
    }

    /// The next turn of a long call, if it has to wait for one.
    pub(crate) fn next(&self, tenant: &Tenant) -> Option<oneshot::Receiver<()>> {
        let mut state = self.0.state.lock();
        if state.long <= self.0.threads {
            return None;
        }
        if state.left > 0 {
            state.left -= 1;
            return None;
        }
        let (turn, waiting) = oneshot::channel();
        state.waiting.push(tenant, turn);
        Some(waiting)
    }

    /// One tick: as many go on as there are threads. Whoever has ended meanwhile takes no turn.
    pub(crate) fn tick(&self) {
        let mut state = self.0.state.lock();
        let mut left = self.0.threads;
        while left > 0 {
            let Some((_, turn)) = state.waiting.take(0) else { break };
            left -= usize::from(turn.send(()).is_ok());
        }
        state.left = left;
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        self.0.0.state.lock().long -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_waits_while_there_are_threads_enough() {
        let (turns, tenant) = (Turns::new(2), Tenant::main());
        let _long = [turns.enter(), turns.enter()];
        assert!(turns.next(&tenant).is_none());
    }

    #[test]
    fn a_tick_lets_as_many_go_on_as_there_are_threads_in_turn_by_tenant() {
        let [many, few] = ["many", "few"].map(|name| Tenant::new(name).expect("valid"));
        let turns = Turns::new(2);
        let long: Vec<_> = (0..11).map(|_| turns.enter()).collect();
        let mut waiting: Vec<_> = (0..10).filter_map(|_| turns.next(&many)).collect();
        let mut late = turns.next(&few).expect("it waits like everybody");
        turns.tick();
        assert!(late.try_recv().is_ok(), "the second turn is the other tenant's");
        assert_eq!(waiting.iter_mut().filter_map(|turn| turn.try_recv().ok()).count(), 1);
        drop(long);
        assert!(turns.next(&many).is_none());
    }

    #[test]
    fn a_turn_nobody_waited_for_is_for_the_next_who_comes() {
        let (turns, tenant) = (Turns::new(2), Tenant::main());
        let _long = [turns.enter(), turns.enter(), turns.enter()];
        let mut first = turns.next(&tenant).expect("it waits");
        turns.tick();
        assert!(first.try_recv().is_ok());
        assert!(turns.next(&tenant).is_none(), "the second of two turns");
        assert!(turns.next(&tenant).is_some(), "there is no third");
    }

    #[test]
    fn a_call_that_ended_takes_nobodys_turn() {
        let (turns, tenant) = (Turns::new(1), Tenant::main());
        let _long = [turns.enter(), turns.enter(), turns.enter()];
        drop(turns.next(&tenant));
        let mut second = turns.next(&tenant).expect("it waits");
        turns.tick();
        assert!(second.try_recv().is_ok());
    }
}
