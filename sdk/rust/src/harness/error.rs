//! What can go wrong in a harness, from a missing command to a call that the plugin answered with a failure.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use super::protocol::{CallError, GuestFailure, LogLine};

/// Why there is no output. A test that expects one of the first two looks at [`code`](HarnessError::code) or
/// [`class`](HarnessError::class).
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// The plugin ran and answered that it could not do its work.
    #[error("the plugin answered with a failure: {}: {}", failure.code, failure.message)]
    Failure { failure: GuestFailure, logs: Vec<LogLine> },
    /// The host ended the call: a trap, a limit, a capability that was not granted.
    #[error("the call ended with an error of the class `{}`: {}", error.class, error.message)]
    Call { error: CallError, logs: Vec<LogLine> },
    #[error("cannot make a folder for the component")]
    Folder(#[source] io::Error),
    #[error("cannot run `{}`: install the noetl command, or set NOETL_BIN to its path", command.display())]
    Start { command: PathBuf, source: io::Error },
    #[error("building the component ended with {status}:\n{said}")]
    Build { status: ExitStatus, said: String },
    #[error("the component was not taken ({}): {}", .0.class, .0.message)]
    Refused(CallError),
    #[error("`noetl plugin harness` ended before it answered; it said:\n{said}")]
    Ended { said: String },
    #[error("`noetl plugin harness` answered with a line that this SDK does not know: {line}")]
    Protocol { line: String },
}

/// A test that fails shows this, so it is the text for people and not the fields.
impl fmt::Debug for HarnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.source().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

impl HarnessError {
    pub(super) fn start(command: &Path, source: io::Error) -> Self {
        Self::Start { command: command.to_owned(), source }
    }

    /// The failure's code, when the plugin answered with one.
    pub fn code(&self) -> Option<&str> {
        self.failure().map(|failure| failure.code.as_str())
    }

    pub fn failure(&self) -> Option<&GuestFailure> {
        match self {
            Self::Failure { failure, .. } => Some(failure),
            _ => None,
        }
    }

    /// The class of the error, when the host ended the call.
    pub fn class(&self) -> Option<&str> {
        match self {
            Self::Call { error, .. } | Self::Refused(error) => Some(&error.class),
            _ => None,
        }
    }

    /// What the call logged before it ended.
    pub fn logs(&self) -> &[LogLine] {
        match self {
            Self::Failure { logs, .. } | Self::Call { logs, .. } => logs,
            _ => &[],
        }
    }
}
