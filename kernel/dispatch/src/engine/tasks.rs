//! Commands that are being run, between their turns.

use std::sync::Arc;

use noetl_contract::Tenant;
use noetl_host::services::orchestration::Command;
use tokio::task::AbortHandle;

use super::ids::ExecutionId;

/// One command of one execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey {
    pub execution: ExecutionId,
    pub command: Arc<str>,
}

impl TaskKey {
    /// The same for every attempt at the same work: the command (execution, step, run and iteration) without its attempt,
    /// the tool by its label, and which piece of work under that label it is. A pipeline that comes back to a tool begins
    /// another piece; one that is run again after a crash begins with the first, as it did before.
    pub fn idempotency_key(&self, label: &str, visit: u32) -> String {
        let command = self.command.rsplit_once('~').filter(|(_, attempt)| attempt.parse::<u32>().is_ok());
        let command = command.map_or(&*self.command, |(command, _)| command);
        format!("{}/{command}/{label}/{visit}", self.execution)
    }
}

pub struct Task {
    pub tenant: Tenant,
    pub command: Command,
    /// As the runner left it.
    pub continuation: Vec<u8>,
    /// What is being waited for outside, if it can be broken off.
    pub running: Option<AbortHandle>,
    /// Holds one of its pool's slots.
    pub has_slot: bool,
}

impl Task {
    pub fn new(tenant: Tenant, command: Command) -> Self {
        Self { tenant, command, continuation: Vec::new(), running: None, has_slot: false }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_at_the_same_work_have_one_key() {
        let task = |command: &str| TaskKey { execution: ExecutionId(7), command: command.into() };
        let key = |command: &str| task(command).idempotency_key("get", 1);
        assert_eq!(key("fetch#1[3]"), "7/fetch#1[3]/get/1");
        assert_eq!(key("fetch#1[3]~2"), key("fetch#1[3]"));
        assert_eq!(key("odd~name#1"), "7/odd~name#1/get/1");
    }

    #[test]
    fn other_work_has_another_key() {
        let key = |command: &str, label: &str, visit| {
            TaskKey { execution: ExecutionId(7), command: command.into() }.idempotency_key(label, visit)
        };
        let first = key("s#1[3]", "get", 1);
        let others =
            [key("s#2[3]", "get", 1), key("s#1[4]", "get", 1), key("s#1[3]", "put", 1), key("s#1[3]", "get", 2)];
        assert!(others.iter().all(|other| *other != first), "{others:?}");
        assert_ne!(key("s#1", "get/1", 1), key("s#1", "get", 1));
    }
}
