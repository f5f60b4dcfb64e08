//! What waits to be driven, in a fair order.
//!
//! Tenants take turns, and within a tenant its executions do: somebody with ten thousand inputs delays somebody with
//! one by one input. Inputs of one execution keep their order, whatever happens.

use std::collections::{HashMap, VecDeque};

use noetl_contract::Tenant;

use super::ids::ExecutionId;

pub struct Inbox<T> {
    tenants: HashMap<Tenant, Waiting<T>>,
    turn: VecDeque<Tenant>,
    length: usize,
}

struct Waiting<T> {
    executions: HashMap<ExecutionId, VecDeque<T>>,
    turn: VecDeque<ExecutionId>,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self { tenants: HashMap::new(), turn: VecDeque::new(), length: 0 }
    }
}

impl<T> Inbox<T> {
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn push(&mut self, tenant: &Tenant, execution: ExecutionId, item: T) {
        if !self.tenants.contains_key(tenant) {
            let waiting = Waiting { executions: HashMap::new(), turn: VecDeque::new() };
            self.tenants.insert(tenant.clone(), waiting);
            self.turn.push_back(tenant.clone());
        }
        let waiting = self.tenants.get_mut(tenant).expect("it has just been made sure of");
        let items = waiting.executions.entry(execution).or_insert_with(|| {
            waiting.turn.push_back(execution);
            VecDeque::new()
        });
        items.push_back(item);
        self.length += 1;
    }

    /// Up to `most` items: one of each execution of each tenant, then one more of each, and so on.
    pub fn take(&mut self, most: usize) -> Vec<T> {
        let mut taken = Vec::with_capacity(most.min(self.length));
        while taken.len() < most {
            let Some(tenant) = self.turn.pop_front() else { break };
            let waiting = self.tenants.get_mut(&tenant).expect("whoever has a turn is here");
            let execution = waiting.turn.pop_front().expect("a tenant that is here waits for something");
            let items = waiting.executions.get_mut(&execution).expect("whoever has a turn is here");
            taken.extend(items.pop_front());
            self.length -= 1;
            if items.is_empty() {
                waiting.executions.remove(&execution);
            } else {
                waiting.turn.push_back(execution);
            }
            if waiting.turn.is_empty() {
                self.tenants.remove(&tenant);
            } else {
                self.turn.push_back(tenant);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_and_their_executions_take_turns_and_each_keeps_its_order() {
        let tenant = |name: &str| Tenant::new(name).expect("a name");
        let mut inbox = Inbox::default();
        for number in 0..4 {
            inbox.push(&tenant("loud"), ExecutionId(1), ("loud 1", number));
        }
        inbox.push(&tenant("loud"), ExecutionId(2), ("loud 2", 0));
        inbox.push(&tenant("quiet"), ExecutionId(3), ("quiet", 0));
        assert_eq!(inbox.len(), 6);
        assert_eq!(inbox.take(3), [("loud 1", 0), ("quiet", 0), ("loud 2", 0)]);
        assert_eq!(inbox.take(10), [("loud 1", 1), ("loud 1", 2), ("loud 1", 3)]);
        assert!(inbox.is_empty() && inbox.take(1).is_empty());
    }
}
