//! Writing a batch: what is there is read once a key, brought up to date in memory, and written once, in the
//! order of keys. So a hundred changes of one execution in a batch cost one write.
//!
//! The parts of an execution that is new in this batch are new as well and are not looked for. A projector says an
//! execution's row before those of its parts, so there can be no earlier ones.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params};

use super::details::Stored;
use super::file::{number, signed};
use super::names::Names;
use super::rows::{Change, ExecutionRow, Merge, take};
use super::{Applied, CommandRow, LoopRow, StepRow};

/// What a batch changes in the table of counts, by (tenant, playbook, status).
type Counts = HashMap<(i64, i64, i64), Counted>;

/// How many more executions there are, and the times of start among the new ones.
struct Counted {
    more: i64,
    oldest: i64,
    newest: i64,
}

impl Default for Counted {
    fn default() -> Self {
        Self { more: 0, oldest: i64::MAX, newest: i64::MIN }
    }
}

impl Counted {
    fn add(&mut self, started: i64) {
        self.more += 1;
        self.oldest = self.oldest.min(started);
        self.newest = self.newest.max(started);
    }
}

pub(super) fn apply(connection: &Connection, names: &mut Names, changes: Vec<Change>) -> rusqlite::Result<Applied> {
    let mut executions = Executions::default();
    let mut steps: Held<StepRow> = Held::default();
    let mut commands: Held<CommandRow> = Held::default();
    let mut loops: Held<LoopRow> = Held::default();
    let mut gone = BTreeSet::new();
    let mut applied = Applied::default();
    for change in changes {
        let taken = match change {
            Change::Deleted(execution) => gone.insert(execution),
            Change::Execution(row) => executions.take(connection, names, row)?,
            Change::Step(row) => steps.take(connection, executions.is_new(row.execution), row)?,
            Change::Command(row) => commands.take(connection, executions.is_new(row.execution), row)?,
            Change::Loop(row) => loops.take(connection, executions.is_new(row.execution), row)?,
        };
        *(if taken { &mut applied.rows } else { &mut applied.stale }) += 1;
    }
    executions.write(connection)?;
    steps.write(connection)?;
    commands.write(connection)?;
    loops.write(connection)?;
    gone.into_iter().try_for_each(|execution| delete(connection, execution))?;
    Ok(applied)
}

/// Removes all there is of an execution: its rows and its checkpoint.
fn delete(connection: &Connection, execution: u64) -> rusqlite::Result<()> {
    let id = execution as i64;
    for table in ["steps", "commands", "loops", "checkpoints", "open"] {
        connection.prepare_cached(&format!("DELETE FROM {table} WHERE execution = ?1"))?.execute([id])?;
    }
    let Some(known) = Known::find(connection, execution)? else { return Ok(()) };
    connection.prepare_cached("DELETE FROM executions WHERE id = ?1")?.execute([id])?;
    let gone = Counted { more: -1, ..Counted::default() };
    count(connection, Counts::from([(known.counted(), gone)]))
}

fn count(connection: &Connection, counts: Counts) -> rusqlite::Result<()> {
    let sql = "INSERT INTO counts VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE
               SET number = number + excluded.number, oldest = min(oldest, excluded.oldest),
                   newest = max(newest, excluded.newest)";
    let mut add = connection.prepare_cached(sql)?;
    for ((tenant, playbook, status), Counted { more, oldest, newest }) in counts {
        add.execute([tenant, playbook, status, more, oldest, newest])?;
    }
    Ok(())
}

/// An execution with numbers for names, as it is in the table.
#[derive(Clone, PartialEq)]
struct Known {
    tenant: i64,
    playbook: i64,
    playbook_version: Option<u32>,
    parent: Option<i64>,
    root: Option<i64>,
    /// 0 is none.
    status: i64,
    /// 0 is not known.
    started: i64,
    ended: Option<i64>,
    error: Option<String>,
    step: Option<String>,
    requested_by: Option<String>,
    last_event: u64,
    version: u64,
}

impl Known {
    fn find(connection: &Connection, execution: u64) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT tenant, playbook, playbook_version, parent, root, status, started, ended, error, step,
                   requested_by, last_event, version FROM executions WHERE id = ?1";
        let mut query = connection.prepare_cached(sql)?;
        query
            .query_row([execution as i64], |row| {
                Ok(Self {
                    tenant: row.get(0)?,
                    playbook: row.get(1)?,
                    playbook_version: row.get(2)?,
                    parent: row.get(3)?,
                    root: row.get(4)?,
                    status: row.get(5)?,
                    started: row.get(6)?,
                    ended: row.get(7)?,
                    error: row.get(8)?,
                    step: row.get(9)?,
                    requested_by: row.get(10)?,
                    last_event: number(row, 11)?,
                    version: number(row, 12)?,
                })
            })
            .optional()
    }

    fn new(connection: &Connection, names: &mut Names, row: &ExecutionRow) -> rusqlite::Result<Self> {
        let tenant = names.tenant(connection, &row.tenant)?;
        Ok(Self {
            tenant,
            playbook: names.playbook(connection, tenant, "")?,
            playbook_version: None,
            parent: None,
            root: None,
            status: 0,
            started: 0,
            ended: None,
            error: None,
            step: None,
            requested_by: None,
            last_event: 0,
            version: 0,
        })
    }

    /// As [`Merge::take_over`] does it for the other rows.
    fn take_over(&mut self, connection: &Connection, names: &mut Names, row: ExecutionRow) -> rusqlite::Result<()> {
        if let Some(path) = &row.path {
            self.playbook = names.playbook(connection, self.tenant, path)?;
        }
        take(&mut self.playbook_version, row.playbook_version);
        take(&mut self.parent, signed(row.parent));
        take(&mut self.root, signed(row.root));
        take(&mut self.step, row.step);
        take(&mut self.requested_by, row.requested_by);
        self.started = signed(row.started_ms).unwrap_or(self.started);
        let status = row.status.map(|status| names.status(connection, &status)).transpose()?;
        let contradicted = self.status < 0 && status.is_some_and(|status| status != self.status);
        if !contradicted {
            self.status = status.unwrap_or(self.status);
            take(&mut self.ended, signed(row.ended_ms));
            take(&mut self.error, row.error);
        }
        self.last_event = self.last_event.max(row.last_event);
        self.version = row.version;
        Ok(())
    }

    fn counted(&self) -> (i64, i64, i64) {
        (self.tenant, self.playbook, self.status)
    }

    /// Whether the row stays where it is in every index.
    fn indexed_like(&self, other: &Self) -> bool {
        self.counted() == other.counted() && self.started == other.started && self.parent == other.parent
    }
}

/// Whether a row is stale: `before` is the version in the table, `held` the one the batch has made of it.
fn is_stale(before: Option<u64>, held: u64, row: u64) -> bool {
    before.is_some_and(|before| row <= before) || row < held
}

#[derive(Default)]
struct Executions {
    /// As it was in the table, and as it is to be.
    rows: BTreeMap<u64, (Option<Known>, Known)>,
}

impl Executions {
    fn is_new(&self, execution: u64) -> bool {
        self.rows.get(&execution).is_some_and(|(before, _)| before.is_none())
    }

    /// Answers whether the row was taken; a stale one was not.
    fn take(&mut self, connection: &Connection, names: &mut Names, row: ExecutionRow) -> rusqlite::Result<bool> {
        let (before, held) = match self.rows.entry(row.execution) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => {
                let before = Known::find(connection, row.execution)?;
                let held = before.clone().map_or_else(|| Known::new(connection, names, &row), Ok)?;
                free.insert((before, held))
            }
        };
        if is_stale(before.as_ref().map(|before| before.version), held.version, row.version) {
            return Ok(false);
        }
        held.take_over(connection, names, row).map(|()| true)
    }

    fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut counts = Counts::new();
        let put = "INSERT OR REPLACE INTO executions
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        // Columns of indexes are left out: SQLite would write every index again, changed or not.
        let touch = "UPDATE executions SET playbook_version = ?2, root = ?3, ended = ?4, error = ?5, step = ?6,
                     requested_by = ?7, last_event = ?8, version = ?9 WHERE id = ?1";
        let (mut put, mut touch) = (connection.prepare_cached(put)?, connection.prepare_cached(touch)?);
        for (execution, (before, now)) in self.rows {
            let (id, last_event, version) = (execution as i64, now.last_event as i64, now.version as i64);
            match before {
                Some(before) if before == now => {}
                Some(before) if before.indexed_like(&now) => {
                    touch.execute(params![
                        id,
                        now.playbook_version,
                        now.root,
                        now.ended,
                        now.error,
                        now.step,
                        now.requested_by,
                        last_event,
                        version
                    ])?;
                }
                before => {
                    if let Some(before) = before {
                        counts.entry(before.counted()).or_default().more -= 1;
                    }
                    counts.entry(now.counted()).or_default().add(now.started);
                    put.execute(params![
                        id,
                        now.tenant,
                        now.playbook,
                        now.playbook_version,
                        now.parent,
                        now.root,
                        now.status,
                        now.started,
                        now.ended,
                        now.error,
                        now.step,
                        now.requested_by,
                        last_event,
                        version
                    ])?;
                }
            }
        }
        count(connection, counts)
    }
}

/// Rows of one table that a batch touches, each with the version the table had of it.
struct Held<T: Stored> {
    rows: BTreeMap<T::Key, (Option<u64>, T)>,
}

impl<T: Stored> Default for Held<T> {
    fn default() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

impl<T: Stored + Merge> Held<T> {
    /// Answers whether the row was taken; a stale one was not. One that is new is not looked for.
    fn take(&mut self, connection: &Connection, is_new: bool, row: T) -> rusqlite::Result<bool> {
        let (before, held) = match self.rows.entry(row.key()) {
            Entry::Occupied(held) => held.into_mut(),
            Entry::Vacant(free) => {
                let Some(found) = (if is_new { None } else { row.find(connection)? }) else {
                    free.insert((None, row));
                    return Ok(true);
                };
                free.insert((Some(found.version()), found))
            }
        };
        let stale = is_stale(*before, held.version(), row.version());
        if !stale {
            held.take_over(row);
        }
        Ok(!stale)
    }

    fn write(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut put = connection.prepare_cached(T::PUT)?;
        let changed = self.rows.into_values().filter(|(before, row)| *before != Some(row.version()));
        changed.map(|(_, row)| row).try_for_each(|row| row.put(&mut put))
    }
}
