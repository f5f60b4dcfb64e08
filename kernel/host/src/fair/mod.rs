//! Fair shares between tenants.
//!
//! Everything that calls of different tenants queue for is given out here: memory and slots ([`budget`]),
//! compiler processes (a budget too) and the time of the threads that run guests ([`turns`]). All of it rests
//! on one queue, which is asked in turn by tenant: however much one tenant has waiting, the next to be served
//! after it is somebody else.

use std::collections::{HashMap, VecDeque};

use noetl_contract::Tenant;

mod budget;
mod turns;

pub use budget::{Budget, Reservation};
pub(crate) use turns::{Long, Turns};

/// A queue for each tenant that waits, and whose turn is next.
#[derive(Debug)]
struct Ring<T> {
    /// Everybody with something in its queue, once; the first is next.
    order: VecDeque<Tenant>,
    queues: HashMap<Tenant, VecDeque<T>>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queues: HashMap::new() }
    }
}

impl<T> Ring<T> {
    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn push(&mut self, tenant: &Tenant, item: T) {
        if let Some(queue) = self.queues.get_mut(tenant) {
            return queue.push_back(item);
        }
        self.order.push_back(tenant.clone());
        self.queues.insert(tenant.clone(), VecDeque::from([item]));
    }

    /// The oldest of whoever is at this place of the order.
    fn at(&self, place: usize) -> Option<(&Tenant, &T)> {
        let tenant = self.order.get(place)?;
        Some((tenant, self.queues.get(tenant)?.front()?))
    }

    /// Takes the oldest of whoever is at this place; what it has besides goes to the end of the order.
    fn take(&mut self, place: usize) -> Option<(Tenant, T)> {
        let tenant = self.order.remove(place)?;
        let queue = self.queues.get_mut(&tenant)?;
        let item = queue.pop_front()?;
        if queue.is_empty() {
            self.queues.remove(&tenant);
        } else {
            self.order.push_back(tenant.clone());
        }
        Some((tenant, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_late_waits_for_one_of_each_and_not_for_all() {
        let [many, few] = ["many", "few"].map(|name| Tenant::new(name).expect("valid"));
        let mut ring = Ring::default();
        for number in 0..100 {
            ring.push(&many, number);
        }
        ring.push(&few, 1_000);
        ring.push(&few, 1_001);
        let order: Vec<_> = std::iter::from_fn(|| ring.take(0)).map(|(_, item)| item).collect();
        assert_eq!(order[..5], [0, 1_000, 1, 1_001, 2]);
        assert_eq!(order.len(), 102);
        assert!(ring.is_empty() && ring.queues.is_empty());
    }
}
