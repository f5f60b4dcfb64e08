//! Programs of the server's machine, for plugins of the platform that hold `process`, where the operator wants them.

use crate::Failure;
use crate::bindings::noetl::process::process::{self, ProcessError};
pub use crate::bindings::noetl::process::process::{Command, Exited};

/// Why a program was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Off(String),
    #[error("not permitted: {0}")]
    Denied(String),
    #[error("it cannot be started: {0}")]
    Failed(String),
}

impl From<ProcessError> for Error {
    fn from(error: ProcessError) -> Self {
        match error {
            ProcessError::Off(text) => Self::Off(text),
            ProcessError::Denied(text) => Self::Denied(text),
            ProcessError::Failed(text) => Self::Failed(text),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Off(_) => Self::new("shell_off", error),
            Error::Denied(_) => Self::new("denied", error),
            Error::Failed(_) => Self::new("start_failed", error),
        }
    }
}

/// Runs a program to its end, whatever its exit code is.
pub fn run(command: &Command) -> Result<Exited, Error> {
    Ok(process::run(command)?)
}
