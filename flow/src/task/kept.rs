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
        is_same(&entry.written, written).then_some(entry.memory)
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

/// As `==` says. Compiled for a sandbox, that looks at one byte at a time, which for a large continuation takes as long as
/// parsing some of it.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (chunks, rest) = one.as_chunks::<64>();
    let (others, other_rest) = other.as_chunks::<64>();
    one.len() == other.len()
        && rest == other_rest
        && chunks.iter().zip(others).all(|(chunk, other)| {
            words(chunk).zip(words(other)).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
        })
}

fn words(chunk: &[u8; 64]) -> impl Iterator<Item = u64> {
    chunk.as_chunks::<8>().0.iter().copied().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        for length in [0, 1, 63, 64, 65, 200] {
            let one: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert!(is_same(&one, &one.clone()));
            for at in 0..length {
                let mut other = one.clone();
                other[at] ^= 0x80;
                assert!(!is_same(&one, &other), "{at} of {length}");
            }
            assert!(!is_same(&one, &[one.as_slice(), &[0]].concat()));
        }
    }
}
