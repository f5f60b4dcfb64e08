//! Writes the input into a payload and answers with what is read back, through `Write` and `Read`.

use std::io::{Read, Write};

use noetl_sdk::Failure;
use noetl_sdk::payload::Writer;

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut writer = Writer::new("application/octet-stream");
    writer.write_all(input)?;
    let payload = writer.finish()?;
    if payload.size() != input.len() as u64 {
        return Err(Failure::new("payload", "the payload has another size than what was written"));
    }
    let mut read = Vec::new();
    payload.reader().read_to_end(&mut read)?;
    Ok(read)
}
