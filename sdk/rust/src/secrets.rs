//! Credentials by alias, for plugins that hold the capability `secrets`.
//!
//! ```no_run
//! # fn main() -> Result<(), noetl_sdk::Failure> {
//! use noetl_sdk::{http, secrets};
//!
//! let answer = http::get("https://api.example.com/orders").headers(secrets::headers("orders_api")?).send()?;
//! # Ok(()) }
//! ```
//!
//! A plugin never has a secret. It has placeholders, which it may write into an address, the value of a header or a body
//! of text up to 1 MiB; the host replaces them when the request leaves, if the credential is bound to the host it goes to,
//! and masks the secrets in what comes back. A placeholder that is computed with (hashed, encoded, cut) stands for nothing.

use crate::Failure;
use crate::bindings::noetl::secrets::secrets::{self, SecretError};

pub use crate::bindings::noetl::secrets::secrets::Description;

/// Why a credential cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Unknown(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("{0}")]
    Unavailable(String),
}

impl From<SecretError> for Error {
    fn from(error: SecretError) -> Self {
        match error {
            SecretError::Unknown(reason) => Self::Unknown(reason),
            SecretError::Unsupported(reason) => Self::Unsupported(reason),
            SecretError::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unknown(_) => Self::new("unknown_credential", error),
            Error::Unsupported(_) => Self::new("unsupported_credential", error),
            Error::Unavailable(_) => Self::unavailable(error),
        }
    }
}

/// The kind of a credential, and its fields that are no secrets.
pub fn describe(alias: &str) -> Result<Description, Error> {
    Ok(secrets::describe(alias)?)
}

/// What stands for one field of a credential; whether there is one shows when it is used. The field `basic` is
/// `user:password` as HTTP writes it.
pub fn placeholder(alias: &str, field: &str) -> String {
    secrets::placeholder(alias, field)
}

/// The headers that log a request in: for credentials of the type bearer, basic, api_key and oauth2. Of one that signs (hmac,
/// s3) the header stands for a signature, which the host makes of the request when it leaves; it goes into no other text.
pub fn headers(alias: &str) -> Result<Vec<(String, String)>, Error> {
    Ok(secrets::headers(alias)?)
}
