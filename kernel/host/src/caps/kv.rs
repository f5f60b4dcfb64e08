//! `noetl:kv`: small durable values of one (tenant, plugin).
//!
//! Writes go to an overlay that the rest of the call reads through. The overlay leaves the host only when
//! the call succeeds, as [`Effects`](crate::call::Effects) for the caller to commit in one record. Until then it is
//! part of the guest's memory.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::json;

use crate::bindings::noetl::kv::kv as wit;
use crate::error::Fault;
use crate::state::CallState;
use crate::tape::bytes_value;

const LONGEST_KEY: usize = 512;
const LARGEST_VALUE: usize = 1 << 20;
const MOST_KEYS: u32 = 1_000;

/// Staged writes of one call.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// `None` is a deletion.
    pub(crate) writes: BTreeMap<String, Option<Bytes>>,
    /// Versions that must still hold at commit; the first expectation on a key is the one that counts.
    pub(crate) conditions: BTreeMap<String, Option<u64>>,
}

/// A value the call itself staged has no version yet.
const STAGED: u64 = 0;

fn check_key(key: &str) -> Result<(), wit::KvError> {
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(wit::KvError::InvalidKey(format!("a key has 1 to {LONGEST_KEY} bytes, this one {}", key.len())));
    }
    Ok(())
}

fn check_value(value: &[u8]) -> Result<(), wit::KvError> {
    if value.len() > LARGEST_VALUE {
        return Err(wit::KvError::TooLarge(value.len() as u64));
    }
    Ok(())
}

impl CallState {
    /// Puts a write into the overlay, in the place of an earlier one of the same key.
    fn stage(&mut self, key: String, value: Option<Bytes>) -> Result<(), Fault> {
        let weight = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len) as u64;
        let name = key.len() as u64;
        self.meter.hold(name + weight(&value))?;
        if let Some(replaced) = self.kv.writes.insert(key, value) {
            self.meter.release(name + weight(&replaced));
        }
        Ok(())
    }

    fn kv_current(&self, key: &str) -> Result<Option<wit::Entry>, wit::KvError> {
        if let Some(staged) = self.kv.writes.get(key) {
            return Ok(staged.as_ref().map(|value| wit::Entry { value: value.to_vec(), version: STAGED }));
        }
        let stored = self.drivers.index.kv_get(&self.namespace(), key).map_err(unavailable)?;
        Ok(stored.map(|entry| wit::Entry { value: entry.value.to_vec(), version: entry.version }))
    }

    fn kv_keys(&self, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<String>, wit::KvError> {
        let limit = limit.min(MOST_KEYS) as usize;
        // Staged deletions can hide as many stored keys as there are, so that many more are read.
        let hidden = self.kv.writes.values().filter(|value| value.is_none()).count();
        let stored = self.drivers.index.kv_list(&self.namespace(), prefix, after, limit + hidden);
        let mut keys: std::collections::BTreeSet<String> = stored.map_err(unavailable)?.into_iter().collect();
        for (key, value) in &self.kv.writes {
            let in_range = key.starts_with(prefix) && after.is_none_or(|after| key.as_str() > after);
            match value {
                Some(_) if in_range => drop(keys.insert(key.clone())),
                None => drop(keys.remove(key)),
                Some(_) => {}
            }
        }
        Ok(keys.into_iter().take(limit).collect())
    }

    fn kv_swap(
        &mut self,
        key: &str,
        expected: Option<u64>,
        value: &Bytes,
    ) -> Result<Result<bool, wit::KvError>, Fault> {
        let checked = check_key(key).and_then(|()| check_value(value)).and_then(|()| self.kv_current(key));
        let current = match checked {
            Ok(current) => current,
            Err(error) => return Ok(Err(error)),
        };
        if current.map(|entry| entry.version) != expected {
            return Ok(Ok(false));
        }
        if !self.kv.writes.contains_key(key) {
            self.kv.conditions.insert(key.to_owned(), expected);
        }
        self.stage(key.to_owned(), Some(value.clone()))?;
        Ok(Ok(true))
    }
}

fn unavailable(error: impl std::fmt::Display) -> wit::KvError {
    wit::KvError::Unavailable(error.to_string())
}

impl wit::Host for CallState {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<wit::Entry>, wit::KvError>> {
        self.charge(key.len())?;
        let get = |state: &mut Self| check_key(&key).and_then(|()| state.kv_current(&key));
        Ok(self.taped("kv.get", || json!({ "key": key }), get)?)
    }

    fn list_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<String>, wit::KvError>> {
        self.charge(prefix.len() + after.as_ref().map_or(0, String::len))?;
        let with = || json!({ "prefix": prefix, "after": after, "limit": limit });
        Ok(self.taped("kv.list-keys", with, |state| state.kv_keys(&prefix, after.as_deref(), limit))?)
    }

    fn put(&mut self, key: String, value: Vec<u8>) -> wasmtime::Result<Result<(), wit::KvError>> {
        self.charge(key.len() + value.len())?;
        let value = Bytes::from(value);
        let with = || json!({ "key": key, "value": bytes_value(&value) });
        let put = |state: &mut Self| match check_key(&key).and_then(|()| check_value(&value)) {
            Ok(()) => state.stage(key.clone(), Some(value.clone())).map(Ok),
            Err(error) => Ok(Err(error)),
        };
        Ok(self.try_taped("kv.put", with, put)?)
    }

    fn delete(&mut self, key: String) -> wasmtime::Result<Result<(), wit::KvError>> {
        self.charge(key.len())?;
        let delete = |state: &mut Self| match check_key(&key) {
            Ok(()) => state.stage(key.clone(), None).map(Ok),
            Err(error) => Ok(Err(error)),
        };
        Ok(self.try_taped("kv.delete", || json!({ "key": key }), delete)?)
    }

    fn compare_and_swap(
        &mut self,
        key: String,
        expected: Option<u64>,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<bool, wit::KvError>> {
        self.charge(key.len() + value.len())?;
        let value = Bytes::from(value);
        let with = || json!({ "key": key, "expected": expected, "value": bytes_value(&value) });
        Ok(self.try_taped("kv.compare-and-swap", with, |state| state.kv_swap(&key, expected, &value))?)
    }
}
