//! Answers with nanoseconds since 1970 as text.

use noetl_sdk::{Failure, clock};

pub fn probe(_input: &[u8]) -> Result<Vec<u8>, Failure> {
    let earlier = clock::monotonic();
    let now = clock::since_epoch();
    if clock::monotonic() < earlier {
        return Err(Failure::new("clock", "the monotonic clock went back"));
    }
    Ok(now.as_nanos().to_string().into_bytes())
}
