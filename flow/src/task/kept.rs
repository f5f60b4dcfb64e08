//! Continuations that this runner made itself, as they were before they were written down.
//!
//! Reading a large one takes longer than all the rest of a turn: a pipeline that fetches rows and hands them on has them in
//! it. Whoever made it last need not read it again. This is a cache and no more: what is taken was written as exactly
//! the bytes that came back, and a runner that has nothing kept reads them.

use std::collections::VecDeque;

use super::memory::Memory;

/// Shorter ones are read faster than they are found.
const SMALLEST: usize = 2 << 10;
/// Bytes of continuations kept; what they are in memory is up to ten times that.
const MOST_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The oldest first.
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    execution: u64,
    command: String,
    written: Vec<u8>,
    memory: Memory,
}

impl Kept {
    /// What was written as this continuation, if it is still here.
    pub(super) fn take(&mut self, (execution, command): (u64, &str), written: &[u8]) -> Option<Memory> {
        if written.len() < SMALLEST {
            return None;
        }
        let place = self.entries.iter().position(|entry| entry.execution == execution && entry.command == command)?;
        let entry = self.entries.remove(place)?;
        self.bytes -= entry.written.len();
        (entry.written == written).then_some(entry.memory)
    }

    pub(super) fn keep(&mut self, (execution, command): (u64, &str), written: &[u8], memory: Memory) {
        if !(SMALLEST..=MOST_BYTES).contains(&written.len()) {
            return;
        }
        self.bytes += written.len();
        self.entries.push_back(Entry { execution, command: command.to_owned(), written: written.to_vec(), memory });
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.entries.pop_front()
        {
            self.bytes -= oldest.written.len();
        }
    }
}
