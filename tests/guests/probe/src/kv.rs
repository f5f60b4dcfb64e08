//! Writes the input under the key `probe` and answers with what is there afterwards.

use noetl_sdk::{Failure, kv};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    kv::put("probe", input)?;
    let entry = kv::get("probe")?.ok_or_else(|| Failure::not_found("the staged write cannot be read"))?;
    Ok(entry.value)
}
