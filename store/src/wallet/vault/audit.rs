//! Who opened which credential, when and what for; and who changed one.
//!
//! Lines are written by a connection of their own, whose changes are not synced one by one: a step that opens a credential
//! would otherwise wait for the disk. They are kept for a number of days, and of the uses of each tenant the newest so many: one
//! that asks for credentials in a loop pushes out its own lines and nobody else's. Lines that say what a person did (a value was
//! shown, a credential added, changed or deleted) are not among those: whoever did it cannot push them out.

use std::collections::HashMap;
use std::path::Path;

use noetl_contract::Tenant;
use parking_lot::Mutex;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use super::tables::{self, number};
use super::{VaultError, now_ms};
use crate::wallet::Use;

/// Lines of one tenant after which its oldest ones are looked for again.
const SWEEP: u64 = 256;
/// A guest chooses the alias it asks for, and a remote side names itself.
const LONGEST: usize = 300;

const DAY_MS: u64 = 86_400_000;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Lines of the audit.
    pub days: u64,
    /// Lines of each tenant.
    pub lines: u64,
    /// Values that were replaced, sealed, for those who mask them; 0 keeps none.
    pub former_days: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { days: 90, lines: 100_000, former_days: 30 }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// It was opened for a connection of the server's.
    Opened,
    /// Its value was answered to a person.
    Revealed,
    /// There is none of that name.
    Unknown,
    /// It is there and could not be opened.
    Closed,
    /// It was to go to a host it is not for, so nobody was given it.
    Refused,
    Added,
    Changed,
    Deleted,
}

impl Event {
    pub fn name(self) -> &'static str {
        match self {
            Event::Opened => "opened",
            Event::Revealed => "revealed",
            Event::Unknown => "unknown",
            Event::Closed => "closed",
            Event::Refused => "refused",
            Event::Added => "added",
            Event::Changed => "changed",
            Event::Deleted => "deleted",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audited {
    pub id: u64,
    pub time_ms: u64,
    pub alias: String,
    pub by: String,
    pub call: String,
    pub target: String,
    /// Name of an [`Event`].
    pub event: String,
    pub revision: Option<u64>,
}

pub(super) struct Audit {
    retention: Retention,
    lines: Mutex<Lines>,
}

struct Lines {
    connection: Connection,
    /// Lines of each tenant since the last sweep.
    since: HashMap<Tenant, u64>,
}

impl Audit {
    pub fn open(file: &Path, retention: Retention) -> Result<Self, VaultError> {
        let connection = tables::connect_unsynced(file)?;
        sweep_old(&connection, retention)?;
        Ok(Self { retention, lines: Mutex::new(Lines { connection, since: HashMap::new() }) })
    }

    pub fn write(&self, using: &Use, event: Event, revision: Option<u64>) -> Result<(), VaultError> {
        let mut lines = self.lines.lock();
        let lines = &mut *lines;
        write(&lines.connection, using, event, revision)?;
        let since = lines.since.entry(using.tenant.clone()).or_default();
        *since += 1;
        // The first line of a tenant too: how many an earlier process left is not known.
        if *since % SWEEP == 1 {
            sweep_old(&lines.connection, self.retention)?;
            sweep_tenant(&lines.connection, &using.tenant, self.retention)?;
        }
        Ok(())
    }

    pub fn read(
        &self,
        tenant: &Tenant,
        alias: &str,
        before: Option<u64>,
        limit: usize,
    ) -> rusqlite::Result<Vec<Audited>> {
        let sql = "SELECT id, time, alias, by_whom, call, target, event, revision FROM uses
                   WHERE tenant = ?1 AND alias = ?2 AND id < ?3 ORDER BY id DESC LIMIT ?4";
        let before = before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let lines = self.lines.lock();
        let mut query = lines.connection.prepare_cached(sql)?;
        query.query_map(params![tenant.as_str(), alias, before, limit], line)?.collect()
    }
}

pub(super) fn write(connection: &Connection, using: &Use, event: Event, revision: Option<u64>) -> rusqlite::Result<()> {
    let sql = "INSERT INTO uses (time, tenant, alias, by_whom, call, target, event, revision)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.prepare_cached(sql)?.execute(params![
        now_ms() as i64,
        using.tenant.as_str(),
        cut(&using.alias),
        cut(&using.by),
        cut(&using.call),
        cut(&using.target),
        event.name(),
        revision.map(|revision| revision as i64),
    ])?;
    Ok(())
}

fn line(row: &Row<'_>) -> rusqlite::Result<Audited> {
    Ok(Audited {
        id: number(row, 0)?,
        time_ms: number(row, 1)?,
        alias: row.get(2)?,
        by: row.get(3)?,
        call: row.get(4)?,
        target: row.get(5)?,
        event: row.get(6)?,
        revision: row.get::<_, Option<i64>>(7)?.map(|revision| revision as u64),
    })
}

fn sweep_old(connection: &Connection, retention: Retention) -> rusqlite::Result<()> {
    let oldest = now_ms().saturating_sub(retention.days.saturating_mul(DAY_MS));
    connection.prepare_cached("DELETE FROM uses WHERE time < ?1")?.execute([oldest as i64]).map(drop)
}

fn sweep_tenant(connection: &Connection, tenant: &Tenant, retention: Retention) -> rusqlite::Result<()> {
    let sql = "DELETE FROM uses WHERE tenant = ?1 AND event NOT IN ('revealed', 'added', 'changed', 'deleted')
               AND id <= (SELECT id FROM uses WHERE tenant = ?1
                          AND event NOT IN ('revealed', 'added', 'changed', 'deleted')
                          ORDER BY id DESC LIMIT 1 OFFSET ?2)";
    connection.prepare_cached(sql)?.execute(params![tenant.as_str(), retention.lines as i64]).map(drop)
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
