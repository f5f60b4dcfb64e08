//! `noetl:clock`: the time of day and the time since the call began.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::bindings::noetl::clock::clock as wit;
use crate::state::CallState;

impl wit::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.charge(0)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        self.charge(0)?;
        Ok(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
