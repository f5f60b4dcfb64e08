//! What reaches a shard, and how whoever sent it is answered.

use bytes::Bytes;
use noetl_contract::Tenant;
use noetl_host::services::orchestration::{Happening, Input};
use noetl_host::services::running::News;
use tokio::sync::oneshot;

use super::api::{Ended, EngineError};
use super::ids::ExecutionId;
use super::tasks::TaskKey;

pub enum Message {
    Input(Box<Queued>),
    /// The outcome of what a turn asked for.
    News(TaskKey, News),
    /// Tell when an execution ends.
    Wait(ExecutionId, oneshot::Sender<Result<Ended, EngineError>>),
    /// What serves may have changed.
    Refresh,
    /// An execution of before the start, to be taken up again.
    Recover {
        execution: ExecutionId,
        tenant: Tenant,
        root: ExecutionId,
    },
    /// All that was to be recovered has been sent.
    Recovered,
    Stop(oneshot::Sender<()>),
}

/// An input on its way to the drive.
pub struct Queued {
    pub input: Input,
    pub about: About,
}

/// What the kernel knows of an input besides what the orchestrator is told.
pub struct About {
    pub tenant: Tenant,
    pub reply: Reply,
    /// A result that is kept as a payload before the commit.
    pub keep: Option<Bytes>,
    /// Follows from another input of the same cycle, and goes with it when the commit fails.
    pub derived: bool,
}

/// Who is told what became of an input, and when.
pub enum Reply {
    Nobody,
    /// When it is in the log.
    Recorded(oneshot::Sender<Result<bool, EngineError>>),
    /// When the execution it starts has ended.
    Ended(oneshot::Sender<Result<Ended, EngineError>>),
}

impl Reply {
    pub fn refuse(self, error: EngineError) {
        // Whoever went away does not need the answer.
        match self {
            Reply::Nobody => {}
            Reply::Recorded(answer) => drop(answer.send(Err(error))),
            Reply::Ended(answer) => drop(answer.send(Err(error))),
        }
    }
}

impl Queued {
    pub fn new(execution: ExecutionId, tenant: Tenant, what: Happening, reply: Reply) -> Self {
        // The time is settled when it is driven.
        let input = Input { execution: execution.0, time_ms: 0, what };
        Self { input, about: About { tenant, reply, keep: None, derived: false } }
    }

    pub fn derived(execution: ExecutionId, tenant: Tenant, what: Happening) -> Self {
        let mut queued = Self::new(execution, tenant, what, Reply::Nobody);
        queued.about.derived = true;
        queued
    }

    pub fn execution(&self) -> ExecutionId {
        ExecutionId(self.input.execution)
    }
}
