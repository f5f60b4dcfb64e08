//! Gets the address that the input is, and answers with status and body: `200 hello`.

use noetl_sdk::{Failure, http};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    let answer = http::get(std::str::from_utf8(input)?).send()?;
    let mut shown = format!("{} ", answer.status).into_bytes();
    shown.extend(answer.bytes()?);
    Ok(shown)
}
