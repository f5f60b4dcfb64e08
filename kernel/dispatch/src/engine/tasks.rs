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
    /// The same for every attempt at the same work: the command without its attempt.
    pub fn idempotency_key(&self, label: &str) -> String {
        let command = self.command.rsplit_once('~').filter(|(_, attempt)| attempt.parse::<u32>().is_ok());
        let command = command.map_or(&*self.command, |(command, _)| command);
        format!("{}/{command}/{label}", self.execution)
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
        let key = |command: &str| TaskKey { execution: ExecutionId(7), command: command.into() }.idempotency_key("get");
        assert_eq!(key("fetch#1[3]"), "7/fetch#1[3]/get");
        assert_eq!(key("fetch#1[3]~2"), key("fetch#1[3]"));
        assert_eq!(key("odd~name#1"), "7/odd~name#1/get");
    }
}
