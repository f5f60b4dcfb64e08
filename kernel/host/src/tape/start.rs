//! The moment and the chance a recorded call begins with.
//!
//! A program takes the time and random numbers from WASI without asking anybody: `time.time()`, `uuid.uuid4()`,
//! `Date.now()`. Where a call is recorded, its clock begins at a moment that is written down and goes on by a fixed step
//! each time it is read, and its randomness follows from a number that is written down. Both are then the same in every
//! play. The clock that measures durations stays the real one: waiting has to end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use wasmtime_wasi::HostWallClock;

/// How far the clock goes each time it is read, so that what waits for a moment by looking at it comes to an end.
const STEP: Duration = Duration::from_millis(1);

/// Where clock and randomness of a call begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub now: u64,
    pub seed: u64,
}

impl Start {
    /// This moment, and a number nobody could guess.
    pub fn here() -> std::io::Result<Self> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|error| std::io::Error::other(error.to_string()))?;
        Ok(Self { now: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX), seed: u64::from_le_bytes(seed) })
    }

    pub(crate) fn clock(self) -> impl HostWallClock + 'static {
        Clock { now: self.now, read: AtomicU64::new(0) }
    }

    /// The same numbers for the same seed, whatever version of the server makes them.
    pub(crate) fn random(self, stream: u64) -> ChaCha12Rng {
        let mut random = ChaCha12Rng::seed_from_u64(self.seed);
        random.set_stream(stream);
        random
    }
}

struct Clock {
    now: u64,
    read: AtomicU64,
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        let steps = u32::try_from(self.read.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX);
        Duration::from_nanos(self.now).saturating_add(STEP.saturating_mul(steps))
    }
}

#[cfg(test)]
mod tests {
    use chacha20::rand_core::Rng;

    use super::*;

    #[test]
    fn the_same_start_gives_the_same_times_and_numbers() {
        let start = Start { now: 1_700_000_000_000_000_000, seed: 7 };
        let times = || {
            let clock = start.clock();
            [clock.now(), clock.now()]
        };
        assert_eq!(times(), times());
        assert_eq!(times()[0], Duration::from_nanos(start.now));
        assert!(times()[1] > times()[0]);
        let number = |start: Start, stream| start.random(stream).next_u64();
        assert_eq!(number(start, 0), number(start, 0));
        assert_ne!(number(start, 0), number(start, 1));
        assert_ne!(number(start, 0), number(Start { seed: 8, ..start }, 0));
    }
}
