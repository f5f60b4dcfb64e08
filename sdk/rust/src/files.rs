//! Files of the folder the operator names (`files.folder`), for plugins that hold `files`.

use crate::Failure;
use crate::bindings::noetl::files::files::{self, FileError};

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    InvalidPath(String),
    #[error("there is no file `{0}` in the folder that `files.folder` names")]
    NotFound(String),
    #[error("{0}")]
    NoFolder(String),
    #[error("the file has {0} bytes, more than one may have that is read whole")]
    TooLarge(u64),
    #[error("the file cannot be read: {0}")]
    Unavailable(String),
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::InvalidPath(path) => Self::InvalidPath(path),
            FileError::NotFound(path) => Self::NotFound(path),
            FileError::NoFolder(why) => Self::NoFolder(why),
            FileError::TooLarge(size) => Self::TooLarge(size),
            FileError::Unavailable(why) => Self::Unavailable(why),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidPath(_) => Self::new("invalid_path", error),
            Error::NotFound(_) => Self::not_found(error),
            Error::NoFolder(_) => Self::new("no_folder", error),
            Error::TooLarge(_) => Self::new("too_large", error),
            Error::Unavailable(_) => Self::unavailable(error),
        }
    }
}

/// The content of a file, by its path below the folder: `scripts/clean.py`.
pub fn read(path: &str) -> Result<Vec<u8>, Error> {
    Ok(files::read(path)?)
}
