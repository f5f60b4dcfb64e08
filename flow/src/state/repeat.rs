//! A loop that is going on.
//!
//! Iterations are issued in order of their index, so the ones that ended are those below `next` that are not open: no set
//! of indexes is needed. Results are collected until they are [`SPILL_BYTES`] of JSON; then whoever decides moves them
//! into a payload, and only the reference of the chunk stays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{Open, laid_over};
use crate::event::{Data, Failure, Items, LoopMode, Reference};
use crate::extract::size;

/// Results of iterations are moved out of the state when they are more than this.
pub const SPILL_BYTES: u64 = 32 * 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    pub mode: LoopMode,
    /// Nothing while a cursor has not come to its end.
    pub total: Option<u32>,
    /// The most iterations in flight.
    pub limit: u32,
    pub items: Items,
    /// The event that opened it: what distinguishes this pass from others of the step.
    pub epoch: u64,
    /// Iterations below this index were issued.
    pub next: u32,
    pub open: BTreeMap<u32, Open>,
    pub succeeded: u32,
    pub failed: u32,
    /// The failure that was reported first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The work of an iteration could not be done at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hard: bool,
    /// Results that are not in a chunk.
    pub results: BTreeMap<u32, Collected>,
    /// Their size as JSON.
    pub collected: u64,
    pub chunks: Vec<Reference>,
    /// What a cursor handed out last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    pub frames: u32,
    /// Claims that were issued.
    pub claims: u32,
}

/// Items of a cursor, the iterations from `first` on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    pub first: u32,
    pub count: u32,
    pub items: Items,
}

/// The result of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Collected {
    pub value: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
}

impl Repeat {
    /// The first index that cannot be issued yet, as far as items are known.
    pub fn known(&self) -> u32 {
        match &self.frame {
            Some(frame) => frame.first + frame.count,
            None => self.total.unwrap_or(0),
        }
    }

    pub fn collect(&mut self, index: u32, data: Data, error: Option<&Failure>) {
        let value = match error {
            Some(error) => laid_over(&data.value, Some(error)),
            None => data.value,
        };
        self.collected += json_size(&value) + 8;
        self.results.insert(index, Collected { value, reference: data.reference });
    }

    /// The chunk the collected results make: a JSON list of `[index, result]`, with the reference of the whole as a
    /// third element where the result is an extract.
    pub fn chunk(&self) -> Json {
        self.results.iter().map(|(index, result)| entry(*index, result)).collect()
    }

    pub fn spilled(&mut self, chunk: Reference) {
        self.results.clear();
        self.collected = 0;
        self.chunks.push(chunk);
    }

    /// What the loop came to. The list of results is in it only when none of them was moved into a chunk.
    pub fn result(self, total: u32, succeeded: u32, failed: u32) -> Data {
        let mut value = Map::new();
        if self.chunks.is_empty() {
            let results: Vec<Json> = self.results.into_values().map(|result| result.value).collect();
            value.insert("results".to_owned(), Json::from(results.clone()));
            value.insert("data".to_owned(), Json::from(results));
        }
        value.insert("stats".to_owned(), json!({ "total": total, "success": succeeded, "failed": failed }));
        value.insert("count".to_owned(), json!(total));
        if self.mode == LoopMode::Cursor {
            value.insert("cursor".to_owned(), json!("drained"));
            value.insert("frames".to_owned(), json!(self.frames));
        }
        Data { value: Json::from(value), reference: None, chunks: self.chunks }
    }
}

fn entry(index: u32, result: &Collected) -> Json {
    match &result.reference {
        Some(reference) => json!([index, result.value, reference]),
        None => json!([index, result.value]),
    }
}

/// The length of a value's JSON.
pub fn json_size(value: &Json) -> u64 {
    size(value, usize::MAX).map_or(u64::MAX, |bytes| bytes as u64)
}
