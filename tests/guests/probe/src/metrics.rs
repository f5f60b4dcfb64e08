//! Adds to a counter and sets a gauge to the length of the input.

use noetl_sdk::{Failure, metrics};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    metrics::count("probe_calls", &[("probe", "metrics")], 1)?;
    metrics::gauge("probe_input_bytes", &[], input.len() as f64)?;
    Ok(b"counted".to_vec())
}
