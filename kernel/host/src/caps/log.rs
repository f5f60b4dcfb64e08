//! `noetl:log`: lines a guest writes.
//!
//! The host cuts long lines, text and fields alike, and hands them to the sink, which decides about rates, masking and keeping.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::truncate;
use crate::bindings::noetl::log::log as wit;
use crate::state::{CallState, Identity};
use crate::tape::named;

const LONGEST_LINE: usize = 8 << 10;
const MOST_FIELDS: usize = 32;

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// Where lines go. Called on the guest's thread: it must not block.
pub trait LogSink: Send + Sync {
    fn write(&self, who: &Identity, level: Level, message: &str, fields: &[(String, String)]);
}

impl wit::Host for CallState {
    fn write(
        &mut self,
        level: wit::Level,
        mut message: String,
        mut fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.charge(message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>())?;
        truncate(&mut message, LONGEST_LINE);
        fields.truncate(MOST_FIELDS);
        let mut left = LONGEST_LINE;
        for (key, value) in &mut fields {
            truncate(key, 64);
            truncate(value, left);
            left = left.saturating_sub(value.len());
        }
        let level = match level {
            wit::Level::Trace => Level::Trace,
            wit::Level::Debug => Level::Debug,
            wit::Level::Info => Level::Info,
            wit::Level::Warn => Level::Warn,
            wit::Level::Error => Level::Error,
        };
        let with = || json!({ "level": level, "message": message, "fields": named(&fields) });
        Ok(self.taped("log.write", with, |state| state.drivers.log.write(&state.identity, level, &message, &fields))?)
    }
}
