//! `noetl:clock`: the time of day and the time since the call began.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::bindings::noetl::clock::clock as wit;
use crate::state::CallState;

impl wit::Host for CallState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        self.charge(0)?;
        let now = |_: &mut Self| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        };
        Ok(self.taped("clock.now", || Value::Null, now)?)
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        self.charge(0)?;
        let elapsed = |state: &mut Self| u64::try_from(state.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(self.taped("clock.monotonic", || Value::Null, elapsed)?)
    }
}
