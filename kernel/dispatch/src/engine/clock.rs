//! The engine's time: the wall clock when the process began, and from there on what really passed.
//!
//! A wall clock that jumps must neither fire every timer at once nor hold one back, and no event may be older than
//! the one before it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
    began_ms: u64,
}

impl Clock {
    /// `not_before` is the newest time in the log: the clock may have been set back since.
    pub fn start(not_before: u64) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        Self { began: Instant::now(), began_ms: now.max(not_before) }
    }

    pub fn now_ms(&self) -> u64 {
        self.began_ms + u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long until a time; nothing when it has come.
    pub fn until(&self, time_ms: u64) -> Duration {
        Duration::from_millis(time_ms.saturating_sub(self.now_ms()))
    }
}
