//! `noetl:random`: randomness from the operating system.

use serde_json::{Value, json};

use crate::bindings::noetl::random::random as wit;
use crate::error::FaultClass;
use crate::state::CallState;

const MOST_BYTES: u32 = 64 << 10;

impl wit::Host for CallState {
    fn bytes(&mut self, len: u32) -> wasmtime::Result<Vec<u8>> {
        self.charge(0)?;
        if len > MOST_BYTES {
            return Err(self
                .meter
                .fail(FaultClass::Quota, format!("{len} random bytes were asked for at once; the most is {MOST_BYTES}"))
                .into());
        }
        let mut bytes = vec![0; len as usize];
        fill(&mut bytes)?;
        Ok(self.taped("random.bytes", || json!({ "len": len }), |_| bytes)?)
    }

    fn number(&mut self) -> wasmtime::Result<u64> {
        self.charge(0)?;
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        Ok(self.taped("random.number", || Value::Null, |_| u64::from_le_bytes(bytes))?)
    }
}

fn fill(bytes: &mut [u8]) -> wasmtime::Result<()> {
    getrandom::fill(bytes).map_err(|error| wasmtime::format_err!("the system gave no randomness: {error}"))
}
