//! Answers with 16 random bytes as hexadecimal digits.

use noetl_sdk::{Failure, random};

pub fn probe(_input: &[u8]) -> Result<Vec<u8>, Failure> {
    if random::number() == random::number() {
        return Err(Failure::new("random", "the same number came twice"));
    }
    let digits: String = random::bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits.into_bytes())
}
