//! Times at which something has to happen: wake an execution, end a sleep, end a command that takes too long.
//!
//! Setting the wake-up of an execution again replaces it. An outdated entry stays in the heap and is dropped when it
//! comes up, so setting costs no search.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::ids::ExecutionId;
use super::tasks::TaskKey;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Due {
    Wake(ExecutionId),
    Slept(TaskKey),
    TimedOut(TaskKey),
    /// Try again what the log refused.
    Again,
}

#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(u64, Due)>>,
    /// The time that counts for each.
    set: HashMap<Due, u64>,
}

impl Timers {
    pub fn set(&mut self, what: Due, at_ms: u64) {
        if self.set.insert(what.clone(), at_ms) != Some(at_ms) {
            self.heap.push(Reverse((at_ms, what)));
        }
    }

    pub fn clear(&mut self, what: &Due) {
        self.set.remove(what);
    }

    /// When the next one is due.
    pub fn next(&mut self) -> Option<u64> {
        while let Some(Reverse((at, what))) = self.heap.peek() {
            if self.set.get(what) == Some(at) {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the next one if it is due.
    pub fn pop(&mut self, now_ms: u64) -> Option<Due> {
        let at = self.next().filter(|at| *at <= now_ms)?;
        let Reverse((_, what)) = self.heap.pop()?;
        debug_assert_eq!(self.set.get(&what), Some(&at));
        self.set.remove(&what);
        Some(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_time_set_counts_and_a_cleared_one_never_comes() {
        let wake = |id| Due::Wake(ExecutionId(id));
        let mut timers = Timers::default();
        timers.set(wake(1), 10);
        timers.set(wake(2), 20);
        timers.set(wake(1), 30);
        timers.set(wake(3), 5);
        timers.clear(&wake(3));
        assert_eq!(timers.next(), Some(20));
        assert_eq!(timers.pop(19), None);
        assert_eq!((timers.pop(40), timers.pop(40), timers.pop(40)), (Some(wake(2)), Some(wake(1)), None));
    }
}
