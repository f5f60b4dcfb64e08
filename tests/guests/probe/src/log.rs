//! Writes one line with a field.

use noetl_sdk::{Failure, log};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    log::info!("probe was called with {} bytes", input.len(); probe = "log");
    Ok(b"logged".to_vec())
}
