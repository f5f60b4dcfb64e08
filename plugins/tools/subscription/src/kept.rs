//! Batches that were polled, by the call that polled them, so that a call that is made again finds its own.
//!
//! An object is `polls/<day>/<call>/<attempt>`. A command that is run again counts its attempts from the first on, and the one
//! that polled may have been a later one, so the first batch of this attempt or a later one is taken. What is older than
//! yesterday belongs to no call that is still tried, and goes.

use std::time::Duration;

use noetl_sdk::{Failure, objects};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::day;

/// Old batches that one call removes.
const SWEPT: u32 = 100;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub messages: Vec<Value>,
    pub ack_ids: Vec<String>,
}

/// Where one call keeps its batches.
#[derive(Debug)]
pub struct Drawer {
    today: u64,
    call: String,
}

impl Drawer {
    pub fn new(since_epoch: Duration, key: &str) -> Self {
        // Parts of a name of an object cannot be empty or dots.
        Self { today: day(since_epoch), call: format!("call-{}", key.replace('/', "~")) }
    }

    fn folder(&self, day: u64) -> String {
        format!("polls/{day:08}/{}/", self.call)
    }

    fn name(&self, day: u64, attempt: u32) -> String {
        format!("{}{attempt:010}", self.folder(day))
    }

    pub fn find(&self, attempt: u32) -> Result<Option<Batch>, Failure> {
        for day in [self.today.saturating_sub(1), self.today] {
            let before = attempt.checked_sub(1).map(|before| self.name(day, before));
            let Some(found) = objects::list(&self.folder(day), before.as_deref(), 1)?.into_iter().next() else {
                continue;
            };
            if let Some(kept) = objects::open(&found.key)? {
                let batch = serde_json::from_slice(&kept.bytes()?);
                return batch.map(Some).map_err(|error| {
                    Failure::new("invalid_value", format_args!("the batch that was kept cannot be read: {error}"))
                });
            }
        }
        Ok(None)
    }

    pub fn keep(&self, attempt: u32, batch: &Batch) -> Result<(), Failure> {
        let text = serde_json::to_vec(batch)?;
        objects::put_bytes(&self.name(self.today, attempt), "application/json", &text)?;
        Ok(())
    }

    pub fn sweep(&self) -> Result<(), Failure> {
        for old in objects::list("polls/", None, SWEPT)?.into_iter().filter(|old| self.is_old(&old.key)) {
            objects::delete(&old.key)?;
        }
        Ok(())
    }

    fn is_old(&self, key: &str) -> bool {
        let day = key.split('/').nth(1).and_then(|day| day.parse::<u64>().ok());
        day.is_some_and(|day| day + 1 < self.today)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_day_and_attempt_and_old_ones_are_known() {
        let drawer = Drawer::new(Duration::from_secs(86_400 * 20_000 + 5), "7/poll#1[2]/poll");
        assert_eq!(drawer.name(20_000, 3), "polls/00020000/call-7~poll#1[2]~poll/0000000003");
        assert!(drawer.name(20_000, 9) < drawer.name(20_000, 10) && drawer.name(9_999, 1) < drawer.name(10_000, 1));
        assert!(drawer.is_old("polls/00019998/x/1") && !drawer.is_old("polls/00019999/x/1"));
    }
}
