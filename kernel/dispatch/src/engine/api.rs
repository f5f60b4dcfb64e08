//! What callers ask of the engine, and what they are told.

use std::time::Duration;

use noetl_contract::Tenant;

use super::ids::ExecutionId;

/// A playbook to be run.
#[derive(Debug, Clone)]
pub struct Execute {
    pub tenant: Tenant,
    pub path: String,
    /// The newest when absent.
    pub version: Option<u32>,
    /// One JSON object, laid over the playbook's workload.
    pub payload: String,
    /// Where its commands run unless the playbook says otherwise.
    pub pool: Option<String>,
    /// A trace context to carry on, as `traceparent`.
    pub trace: Option<String>,
    pub requested_by: String,
    /// A second request with the same key within the window starts nothing.
    pub dedup: Option<Dedup>,
}

#[derive(Debug, Clone)]
pub struct Dedup {
    pub key: String,
    pub window: Duration,
}

/// An execution that is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub execution: ExecutionId,
    /// It was started by an earlier request with the same key.
    pub duplicate: bool,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    /// One JSON object: `output`, `error`, `steps`.
    pub body: String,
}

/// Up to where a chain is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cutoff {
    Head,
    /// As in the list of events.
    Event(u64),
    Position(u64),
    TimeMs(u64),
}

/// Events of an execution as people read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// One JSON object each, oldest first.
    pub events: Vec<String>,
    /// The execution has ended and the last event is on this page.
    pub complete: bool,
    /// Give it as `after` for the next page.
    pub last_event: u64,
}

/// Why the engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("there is no playbook `{path}`{}; `noetl register FILE` adds one", version_text(.version))]
    PlaybookNotFound { path: String, version: Option<u32> },
    #[error("the playbook has problems: see `problems`")]
    Invalid {
        /// A JSON list.
        problems: String,
    },
    #[error("there is no execution {0}")]
    ExecutionNotFound(ExecutionId),
    /// The request does not fit the execution's state.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    InvalidRequest(String),
    #[error("the engine has {waiting} inputs waiting: try again later")]
    Overloaded { waiting: usize },
    #[error("the store did not take the change, nothing was done: {0}")]
    Store(String),
    #[error("the service `{service}` does not work: {reason}")]
    Service { service: String, reason: String },
    #[error("the server is stopping")]
    Stopping,
}

fn version_text(version: &Option<u32>) -> String {
    version.map(|version| format!(" in version {version}")).unwrap_or_default()
}

impl EngineError {
    pub fn code(&self) -> &'static str {
        match self {
            EngineError::PlaybookNotFound { .. } => "playbook_not_found",
            EngineError::Invalid { .. } => "invalid_playbook",
            EngineError::ExecutionNotFound(_) => "execution_not_found",
            EngineError::Refused(_) => "execution_state",
            EngineError::InvalidRequest(_) => "invalid_body",
            EngineError::Overloaded { .. } => "engine_overloaded",
            EngineError::Store(_) => "store_unavailable",
            EngineError::Service { .. } => "service_unavailable",
            EngineError::Stopping => "not_ready",
        }
    }

    pub fn status(&self) -> u16 {
        match self {
            EngineError::PlaybookNotFound { .. } | EngineError::ExecutionNotFound(_) => 404,
            EngineError::Invalid { .. } => 422,
            EngineError::InvalidRequest(_) => 400,
            EngineError::Refused(_) => 409,
            EngineError::Overloaded { .. }
            | EngineError::Store(_)
            | EngineError::Service { .. }
            | EngineError::Stopping => 503,
        }
    }
}
