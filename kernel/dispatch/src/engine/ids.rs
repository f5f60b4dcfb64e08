//! Ids of executions: 41 bits of milliseconds since 2024, 10 bits of the machine, 12 bits of a sequence.
//!
//! They sort by time of creation, so newest-first lists need no other column. In JSON they are text, because many
//! readers round numbers of this size. A clock that goes back does not make an id twice: the milliseconds never do.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// 2024-01-01T00:00:00Z.
const EPOCH_MS: u64 = 1_704_067_200_000;
const SEQUENCE_BITS: u32 = 12;
const MACHINE_BITS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId(pub u64);

impl ExecutionId {
    /// When it was made, in milliseconds since 1970.
    pub fn created_ms(self) -> u64 {
        (self.0 >> (SEQUENCE_BITS + MACHINE_BITS)) + EPOCH_MS
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of an execution: it has digits only")]
pub struct NotAnExecution(String);

impl FromStr for ExecutionId {
    type Err = NotAnExecution;

    fn from_str(text: &str) -> Result<Self, NotAnExecution> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if digits { text.parse().ok() } else { None };
        number.map(Self).ok_or_else(|| NotAnExecution(text.chars().take(64).collect()))
    }
}

/// Makes ids that differ.
pub struct Mint {
    machine: u64,
    last: Mutex<(u64, u64)>,
}

impl Mint {
    /// `machine` is cut to ten bits.
    pub fn new(machine: u64) -> Self {
        Self { machine: machine & ((1 << MACHINE_BITS) - 1), last: Mutex::default() }
    }

    pub fn next(&self) -> ExecutionId {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_sub(EPOCH_MS);
        let mut last = self.last.lock();
        if now > last.0 {
            *last = (now, 0);
        } else {
            last.1 += 1;
            if last.1 >> SEQUENCE_BITS != 0 {
                // More than the sequence holds within a millisecond: borrow from the next one.
                *last = (last.0 + 1, 0);
            }
        }
        let (ms, sequence) = *last;
        ExecutionId((ms << (SEQUENCE_BITS + MACHINE_BITS)) | (self.machine << SEQUENCE_BITS) | sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_grow_and_read_back() {
        let mint = Mint::new(5);
        let mut last = ExecutionId(0);
        for _ in 0..20_000 {
            let id = mint.next();
            assert!(id > last);
            last = id;
        }
        assert_eq!(last.to_string().parse(), Ok(last));
        for wrong in ["", "-1", "1x", "99999999999999999999999"] {
            assert!(wrong.parse::<ExecutionId>().is_err(), "{wrong}");
        }
    }
}
