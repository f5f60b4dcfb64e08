//! Adds one to the number under the key that the input is, with compare-and-swap, and answers with the new number.
//!
//! `fail-after:<key>` writes the key and then answers with the failure `asked`, so that a test can see that the write
//! was not kept. A conflict that shows during the call is the retryable failure `conflict`; one that shows only when
//! the call commits is an error of the host.

use noetl_sdk::{Failure, kv};

noetl_sdk::transform!(run);

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let input = String::from_utf8(input)?;
    if let Some(key) = input.strip_prefix("fail-after:") {
        kv::put(key, "this must not be kept")?;
        return Err(Failure::new("asked", "the input asked for a failure after a write"));
    }
    let entry = kv::get(&input)?;
    let count: u64 = match &entry {
        Some(entry) => std::str::from_utf8(&entry.value)?.parse()?,
        None => 0,
    };
    let next = (count + 1).to_string();
    if !kv::compare_and_swap(&input, entry.map(|entry| entry.version), &next)? {
        return Err(Failure::retryable("conflict", format_args!("`{input}` was changed by another call")));
    }
    Ok(next.into_bytes())
}
