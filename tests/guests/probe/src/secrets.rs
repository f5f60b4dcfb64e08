//! Gets a placeholder, and is told that there is no credential.

use noetl_sdk::{Failure, secrets};

pub fn probe(_: &[u8]) -> Result<Vec<u8>, Failure> {
    match secrets::headers("nobody's credential") {
        Err(secrets::Error::Unknown(_)) => Ok(secrets::placeholder("nobody", "token").into_bytes()),
        other => Err(Failure::new("unexpected", format_args!("{other:?}"))),
    }
}
