//! What is to be published next.
//!
//! The outbox is the log itself: everything after the cursor is *pending*. A range is handed out as a lease and is *in
//! flight* until its result comes or its time runs out; a range that could not be sent is *failed* and rests, twice as
//! long each time, at most [`LONGEST_REST_MS`]. A range that was sent is *published*: the cursor moves over it.
//!
//! One range is out at a time. Two at once could overtake each other, and a receiver that wants order would have to
//! restore it; with hundreds of segments a range, waiting for one before the next costs nothing that matters.
//!
//! Invariants:
//! 1. The cursor moves only over what was said to be sent, so everything is sent at least once, and for the first time
//!    in the order of the log.
//! 2. Every lease has an id of its own. What comes back for an older one is too late and changes nothing but
//!    that the range is sent again.
//! 3. While anything is to be published there is a lease out or a time to wake at: nothing depends on traffic.
//!
//! A state that cannot be read (garbage, or of another form) is as none: all is published again, which receivers must
//! be able to take. When the clock goes back, no lease and no rest lasts longer than it could have from now on.

use serde::{Deserialize, Serialize};

/// The most segments of a range.
pub const LIMIT: u32 = 256;
/// How long whoever has a lease may take.
pub const LEASE_MS: u64 = 30_000;
pub const FIRST_REST_MS: u64 = 1_000;
pub const LONGEST_REST_MS: u64 = 300_000;

/// Raised when the state is written differently.
const FORM: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox {
    form: u32,
    /// Everything up to here is published.
    cursor: u64,
    /// Ids of leases count up from 1.
    last_lease: u64,
    range: Option<Range>,
}

/// What comes after the cursor, if it was handed out before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Range {
    /// Nothing until whoever had the lease said how far it goes.
    upto: Option<u64>,
    /// From 1.
    attempt: u32,
    standing: Standing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Standing {
    InFlight { lease: u64, until_ms: u64 },
    Failed { due_ms: u64, error: String },
}

/// Positions after `after`, at most `limit` segments, to be sent until `until_ms`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub id: u64,
    pub after: u64,
    pub upto: Option<u64>,
    pub limit: u32,
    pub attempt: u32,
    pub until_ms: u64,
}

impl Outbox {
    pub fn read(state: &[u8], now_ms: u64) -> Self {
        let fresh = Self { form: FORM, cursor: 0, last_lease: 0, range: None };
        let mut outbox = serde_json::from_slice(state).ok().filter(|read: &Self| read.form == FORM).unwrap_or(fresh);
        match outbox.range.as_mut().map(|range| &mut range.standing) {
            Some(Standing::InFlight { until_ms, .. }) => *until_ms = (*until_ms).min(now_ms + LEASE_MS),
            Some(Standing::Failed { due_ms, .. }) => *due_ms = (*due_ms).min(now_ms + LONGEST_REST_MS),
            None => {}
        }
        outbox
    }

    pub fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a state of numbers and text is JSON")
    }

    pub fn published(&self) -> u64 {
        self.cursor
    }

    pub fn wake_at(&self) -> Option<u64> {
        self.range.as_ref().map(|range| match range.standing {
            Standing::InFlight { until_ms, .. } => until_ms,
            Standing::Failed { due_ms, .. } => due_ms,
        })
    }

    /// The end a lease turned out to have. The first answer counts, so that a range keeps its end.
    pub fn extent(&mut self, lease: u64, upto: u64) {
        let cursor = self.cursor;
        if let Some(range) = self.in_flight(lease).filter(|range| range.upto.is_none() && upto > cursor) {
            range.upto = Some(upto);
        }
    }

    /// What became of a lease.
    pub fn result(&mut self, lease: u64, error: Option<String>, now_ms: u64) {
        let Some(range) = self.in_flight(lease) else { return };
        // Without its end nobody can say what was sent.
        let error = error.or_else(|| range.upto.is_none().then(|| "the end of the range was not said".to_owned()));
        match (error, range.upto) {
            (None, Some(upto)) => {
                self.cursor = upto;
                self.range = None;
            }
            (error, _) => {
                let due_ms = now_ms + rest_ms(range.attempt);
                range.standing = Standing::Failed { due_ms, error: error.unwrap_or_default() };
            }
        }
    }

    /// What to send now. A lease whose time has run out is taken back and handed out again.
    pub fn hand_out(&mut self, now_ms: u64, tip: u64) -> Option<Lease> {
        let (upto, attempt) = match &self.range {
            None if tip > self.cursor => (None, 1),
            None => return None,
            Some(Range { standing: Standing::InFlight { until_ms, .. }, .. }) if *until_ms > now_ms => return None,
            Some(Range { standing: Standing::Failed { due_ms, .. }, .. }) if *due_ms > now_ms => return None,
            Some(range) => (range.upto, range.attempt.saturating_add(1)),
        };
        self.last_lease += 1;
        let (id, until_ms) = (self.last_lease, now_ms + LEASE_MS);
        self.range = Some(Range { upto, attempt, standing: Standing::InFlight { lease: id, until_ms } });
        Some(Lease { id, after: self.cursor, upto, limit: LIMIT, attempt, until_ms })
    }

    fn in_flight(&mut self, id: u64) -> Option<&mut Range> {
        let out = |range: &&mut Range| matches!(range.standing, Standing::InFlight { lease, .. } if lease == id);
        self.range.as_mut().filter(out)
    }
}

/// How long a range rests after this many attempts.
fn rest_ms(attempts: u32) -> u64 {
    let doublings = attempts.saturating_sub(1).min(16);
    (FIRST_REST_MS << doublings).min(LONGEST_REST_MS)
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
