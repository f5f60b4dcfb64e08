//! Stores the input as the object `probe` and answers with what is there afterwards.

use noetl_sdk::{Failure, objects};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    objects::put_bytes("probe", "text/plain", input)?;
    let object = objects::open("probe")?.ok_or_else(|| Failure::not_found("the object that was put is not there"))?;
    Ok(object.bytes()?)
}
