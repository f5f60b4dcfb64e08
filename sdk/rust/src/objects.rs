//! Named payloads, private to the tenant and the plugin path, for plugins that hold `objects` (and `payload`, whose
//! types it speaks in).
//!
//! Opening an object and putting a payload under a name move no bytes into the guest.

use crate::Failure;
pub use crate::bindings::noetl::objects::objects::ObjectInfo;
use crate::bindings::noetl::objects::objects::{self, ObjectError};
use crate::payload::{self, Payload};

/// Why an object was not opened or named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("object key is not valid: {0}; use 1 to 1024 bytes without an empty, `.` or `..` segment")]
    InvalidKey(String),
    #[error("the object store did not answer: {0}; try again")]
    Unavailable(String),
    #[error(transparent)]
    Payload(#[from] payload::Error),
}

impl From<ObjectError> for Error {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::InvalidKey(key) => Self::InvalidKey(key),
            ObjectError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::InvalidKey(_) => Self::new("invalid_key", error),
            Error::Unavailable(_) => Self::unavailable(error),
            Error::Payload(error) => error.into(),
        }
    }
}

/// Open an object; `None` when there is no such key.
pub fn open(key: &str) -> Result<Option<Payload>, Error> {
    Ok(objects::open(key)?)
}

/// Name a payload. The same payload under the same key again changes nothing.
pub fn put(key: &str, content: &Payload) -> Result<ObjectInfo, Error> {
    Ok(objects::put(key, content)?)
}

/// Write bytes and name them.
pub fn put_bytes(key: &str, media_type: &str, bytes: &[u8]) -> Result<ObjectInfo, Error> {
    put(key, &payload::from_bytes(media_type, bytes)?)
}

/// Remove a name; removing what is not there is no error.
pub fn delete(key: &str) -> Result<(), Error> {
    Ok(objects::delete(key)?)
}

/// Objects whose keys start with `prefix`, in byte order, after `after`, at most `limit` (1000 at most).
pub fn list(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<ObjectInfo>, Error> {
    Ok(objects::list_objects(prefix, after, limit)?)
}
