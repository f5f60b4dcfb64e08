//! Small durable values, private to the tenant and the plugin path, for plugins that hold the capability `kv`.
//!
//! Writes are staged by the host: later reads of the same call see them, and all of them are applied together when the
//! call succeeds. A call that fails applies none.

use crate::Failure;
pub use crate::bindings::noetl::kv::kv::Entry;
use crate::bindings::noetl::kv::kv::{self, KvError};

/// Why a value was not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("key is not valid: {0}; use 1 to 512 bytes")]
    InvalidKey(String),
    #[error("value of {0} bytes is too large; keep values up to 1 MiB and put larger ones into `objects`")]
    TooLarge(u64),
    #[error("the key-value store did not answer: {0}; try again")]
    Unavailable(String),
    #[cfg(feature = "json")]
    #[error("value of `{key}` is not the JSON that was expected")]
    Json { key: String, source: serde_json::Error },
}

impl From<KvError> for Error {
    fn from(error: KvError) -> Self {
        match error {
            KvError::InvalidKey(key) => Self::InvalidKey(key),
            KvError::TooLarge(size) => Self::TooLarge(size),
            KvError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::InvalidKey(_) => Self::new("invalid_key", error),
            Error::TooLarge(_) => Self::new("too_large", error),
            Error::Unavailable(_) => Self::unavailable(error),
            #[cfg(feature = "json")]
            Error::Json { source, .. } => Self::new("invalid_value", format_args!("{error}: {source}")),
        }
    }
}

/// The current value with its version, the call's own staged writes included.
pub fn get(key: &str) -> Result<Option<Entry>, Error> {
    Ok(kv::get(key)?)
}

/// Write a value, whatever was there.
pub fn put(key: &str, value: impl AsRef<[u8]>) -> Result<(), Error> {
    Ok(kv::put(key, value.as_ref())?)
}

/// Remove a value; removing what is not there is no error.
pub fn delete(key: &str) -> Result<(), Error> {
    Ok(kv::delete(key)?)
}

/// Write only if the version is still `expected` (`None`: only if the key is absent).
///
/// `false`: somebody else was faster, and nothing was staged. If somebody is faster only after this, the whole call
/// fails with the class `conflict` when it commits, and nothing of it is applied.
pub fn compare_and_swap(key: &str, expected: Option<u64>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
    Ok(kv::compare_and_swap(key, expected, value.as_ref())?)
}

/// Keys that start with `prefix`, in byte order, after `after`, at most `limit` (1000 at most).
pub fn list_keys(prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, Error> {
    Ok(kv::list_keys(prefix, after, limit)?)
}

/// The current value, read as JSON.
#[cfg(feature = "json")]
pub fn get_json<T: serde::de::DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let Some(entry) = get(key)? else { return Ok(None) };
    serde_json::from_slice(&entry.value).map(Some).map_err(|source| Error::Json { key: key.to_owned(), source })
}

/// Write a value as JSON, whatever was there.
#[cfg(feature = "json")]
pub fn put_json<T: serde::Serialize + ?Sized>(key: &str, value: &T) -> Result<(), Error> {
    put(key, serde_json::to_vec(value).map_err(|source| Error::Json { key: key.to_owned(), source })?)
}
