//! When a playbook with a `schedule:` is due.
//!
//! `{cron, timezone, missed, payload}`. Cron is read in the wall-clock time of the zone, whose rules are compiled in, so
//! that every machine and every component agrees on them.
//!
//! Where the clock is changed:
//! 1. A time that is skipped runs once, at the moment after the gap.
//! 2. A time that comes twice runs once, the first time.
//! 3. A schedule of every hour (`*` for the hour) goes by the time that passes: its runs are neither moved nor dropped.
//!
//! Times that passed while nobody looked are *missed*: of several, `run_once` (the default) runs the latest, `run_all`
//! each, up to the latest [`MOST_RUNS`], and `skip` none that is more than [`LATE_MS`] old.
//!
//! A schedule that cannot be read is an error with the key it is about; so is one whose time never comes.

mod cron;

#[cfg(test)]
mod tests;

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use cron::Cron;

/// The most runs that are made up for at once.
pub const MOST_RUNS: usize = 100;
/// A run that begins later than this has been missed.
pub const LATE_MS: u64 = 60_000;

/// What is to be done now, and when to look again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Times that have come and should be run, oldest first, in milliseconds since 1970.
    pub runs: Vec<u64>,
    pub next_ms: Option<u64>,
}

/// Which of the times after `last_ms` and up to `now_ms` should be run, and when the next one is. `last_ms` is the time
/// up to which this was asked before.
pub fn evaluate(schedule: &Json, last_ms: u64, now_ms: u64) -> Result<Due, String> {
    let schedule = Schedule::read(schedule).map_err(|fault| format!("{}: {}", fault.key, fault.message))?;
    let (last, now) = (seconds(last_ms)?, seconds(now_ms)?);
    let runs = schedule.due(last, now)?;
    // Where the clock went back, times that were decided already must not come again.
    let next = schedule.after(last.max(now))?;
    Ok(Due { runs: runs.into_iter().map(milliseconds).collect(), next_ms: next.map(milliseconds) })
}

/// A schedule that has been read.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    missed: Missed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missed {
    RunOnce,
    RunAll,
    Skip,
}

/// What is wrong with a schedule, and under which of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub key: &'static str,
    pub message: String,
}

impl Schedule {
    pub fn read(schedule: &Json) -> Result<Self, Fault> {
        let text = |key| schedule.get(key).and_then(Json::as_str);
        let cron = text("cron").ok_or_else(|| Fault { key: "cron", message: "expected text".to_owned() })?;
        let cron = Cron::parse(cron).map_err(|message| Fault { key: "cron", message })?;
        let zone = match schedule.get("timezone") {
            None | Some(Json::Null) => TimeZone::UTC,
            Some(name) => zone(name.as_str().unwrap_or_default())?,
        };
        let missed = match text("missed") {
            None | Some("run_once") => Missed::RunOnce,
            Some("run_all") => Missed::RunAll,
            Some("skip") => Missed::Skip,
            Some(other) => {
                let message = format!("expected `run_once`, `run_all` or `skip`, found `{other}`");
                return Err(Fault { key: "missed", message });
            }
        };
        Ok(Self { cron, zone, missed })
    }

    fn due(&self, last: i64, now: i64) -> Result<Vec<i64>, String> {
        let Some(latest) = self.latest(last, now)? else { return Ok(Vec::new()) };
        match self.missed {
            Missed::RunOnce => Ok(vec![latest]),
            Missed::Skip if milliseconds(now).saturating_sub(milliseconds(latest)) > LATE_MS => Ok(Vec::new()),
            Missed::Skip => Ok(vec![latest]),
            Missed::RunAll => {
                let mut runs = vec![latest];
                while runs.len() < MOST_RUNS
                    && let Some(earlier) = self.latest(last, runs[runs.len() - 1] - 1)?
                {
                    runs.push(earlier);
                }
                runs.reverse();
                Ok(runs)
            }
        }
    }

    /// The latest time after `last` and up to `now`. Found by halving, since only the way forward is known; an hour or
    /// a century between the two makes little difference.
    fn latest(&self, last: i64, now: i64) -> Result<Option<i64>, String> {
        let in_time = |at: i64| Ok::<_, String>(self.after(at)?.filter(|next| *next <= now));
        let Some(mut found) = in_time(last)? else { return Ok(None) };
        let (mut low, mut high) = (found, now);
        while low < high {
            let middle = low + (high - low) / 2;
            match in_time(middle)? {
                Some(later) => {
                    found = later;
                    low = later;
                }
                None => high = middle,
            }
        }
        Ok(Some(found))
    }

    /// The first time after a moment. Nothing if it is beyond the end of time.
    fn after(&self, moment: i64) -> Result<Option<i64>, String> {
        let mut at = timestamp(moment)?;
        let mut from = self.wall_clock_after(at);
        loop {
            let offset = self.zone.to_offset(at);
            let Some(civil) = from.and_then(|from| self.cron.next(from)) else { return Ok(None) };
            let Ok(candidate) = offset.to_timestamp(civil) else { return Ok(None) };
            let change = match self.zone.following(at).next() {
                Some(change) if change.timestamp() <= candidate => change,
                _ => return Ok(Some(candidate.as_second())),
            };
            // The clock is changed before it shows that time.
            at = change.timestamp();
            let (shown, shows) = (offset.to_datetime(at), change.offset().to_datetime(at));
            if !self.cron.every_hour() && civil < shows {
                return Ok(Some(at.as_second()));
            }
            from = Some(if self.cron.every_hour() { shows } else { shown.max(shows) });
        }
    }

    /// The wall-clock time from which on times count, a second after `at`. Within an hour that comes twice, those
    /// that came already do not.
    fn wall_clock_after(&self, at: Timestamp) -> Option<DateTime> {
        let second = SignedDuration::from_secs(1);
        let from = self.zone.to_offset(at).to_datetime(at).checked_add(second).ok()?;
        if self.cron.every_hour() {
            return Some(from);
        }
        let change = self.zone.preceding(at.checked_add(second).ok()?).next();
        let shown = change.and_then(|change| {
            let before: Offset = self.zone.to_offset(change.timestamp().checked_sub(second).ok()?);
            Some(before.to_datetime(change.timestamp()))
        });
        Some(shown.map_or(from, |shown| from.max(shown)))
    }
}

fn zone(name: &str) -> Result<TimeZone, Fault> {
    let zones = TimeZoneDatabase::bundled();
    zones.get(name).map_err(|_| {
        let names: Vec<String> = zones.available().map(|name| name.as_str().to_owned()).collect();
        let hint = match crate::playbook::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "use a name such as `Europe/Berlin`".to_owned(),
        };
        Fault { key: "timezone", message: format!("there is no time zone `{name}`; {hint}") }
    })
}

fn seconds(milliseconds: u64) -> Result<i64, String> {
    let seconds = i64::try_from(milliseconds / 1000).map_err(|_| out_of_range())?;
    timestamp(seconds).map(|_| seconds)
}

fn timestamp(seconds: i64) -> Result<Timestamp, String> {
    Timestamp::from_second(seconds).map_err(|_| out_of_range())
}

fn out_of_range() -> String {
    "the time is beyond the year 9999".to_owned()
}

/// Times are never before 1970, because they come after one that is not.
fn milliseconds(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or_default() * 1000
}
