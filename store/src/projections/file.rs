//! The database file: its schema, and how it is opened, found damaged and replaced.
//!
//! Tenants, playbooks and statuses are numbers in the table of executions, so that its indexes stay small. The
//! numbers of terminal statuses are negative, all others are not; 0 is a status nobody has said yet.
//!
//! `counts` has the executions of every (tenant, playbook, status): how many there are, and that none was started before
//! `oldest` or after `newest`.
//!
//! Every index of executions ends in (started, id), which is the order of lists, newest first.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::ProjectionError;

/// Raised when tables or their meaning change: a file of another version is made again.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE meta (cursor INTEGER NOT NULL);
    INSERT INTO meta VALUES (0);
    CREATE TABLE tenants (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE statuses (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE playbooks (
        id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, path TEXT NOT NULL, UNIQUE (tenant, path)
    );
    CREATE TABLE executions (
        id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, playbook INTEGER NOT NULL, playbook_version INTEGER,
        parent INTEGER, root INTEGER, status INTEGER NOT NULL, started INTEGER NOT NULL, ended INTEGER, error TEXT,
        step TEXT, requested_by TEXT, last_event INTEGER NOT NULL, version INTEGER NOT NULL
    );
    CREATE INDEX executions_by_tenant ON executions (tenant, status, started, id);
    CREATE INDEX executions_by_playbook ON executions (playbook, status, started, id);
    CREATE INDEX executions_by_parent ON executions (parent, playbook, status, started, id)
        WHERE parent IS NOT NULL;
    CREATE TABLE counts (
        tenant INTEGER NOT NULL, playbook INTEGER NOT NULL, status INTEGER NOT NULL, number INTEGER NOT NULL,
        oldest INTEGER NOT NULL, newest INTEGER NOT NULL,
        PRIMARY KEY (tenant, playbook, status)
    ) WITHOUT ROWID;
    CREATE TABLE steps (
        execution INTEGER NOT NULL, step TEXT NOT NULL, run INTEGER NOT NULL,
        status TEXT, entered INTEGER, ended INTEGER, error TEXT, version INTEGER NOT NULL,
        PRIMARY KEY (execution, step, run)
    ) WITHOUT ROWID;
    CREATE TABLE commands (
        execution INTEGER NOT NULL, step TEXT NOT NULL, run INTEGER NOT NULL, iteration INTEGER NOT NULL,
        attempt INTEGER NOT NULL, command TEXT NOT NULL, status TEXT, tool TEXT, plugin TEXT,
        issued INTEGER, ended INTEGER, error TEXT, version INTEGER NOT NULL,
        PRIMARY KEY (execution, step, run, iteration, attempt)
    ) WITHOUT ROWID;
    CREATE TABLE loops (
        execution INTEGER NOT NULL, step TEXT NOT NULL, run INTEGER NOT NULL, total INTEGER,
        succeeded INTEGER NOT NULL, failed INTEGER NOT NULL, status TEXT, version INTEGER NOT NULL,
        PRIMARY KEY (execution, step, run)
    ) WITHOUT ROWID;
    CREATE TABLE open (execution INTEGER PRIMARY KEY, tenant TEXT NOT NULL, root INTEGER NOT NULL);
    CREATE TABLE checkpoints (
        execution INTEGER PRIMARY KEY, version INTEGER NOT NULL, fold_position INTEGER NOT NULL, bytes BLOB NOT NULL
    );
    CREATE TABLE outbox (id INTEGER PRIMARY KEY, state BLOB NOT NULL);
    CREATE TABLE schedules (
        tenant TEXT NOT NULL, path TEXT NOT NULL, last_ms INTEGER NOT NULL, PRIMARY KEY (tenant, path)
    ) WITHOUT ROWID;";

/// The one writer, and the cursor it found.
pub(super) fn open(file: &Path, tip: u64) -> Result<(Connection, u64), ProjectionError> {
    if mark_of(file).exists() {
        tracing::warn!("the projections were found damaged and are made again from the log");
        delete(file)?;
    }
    let opened = match connect(file) {
        Err(ProjectionError::Database(error)) if is_damage(&error) => {
            tracing::warn!(%error, "the projections are damaged and are made again from the log");
            delete(file)?;
            connect(file)?
        }
        other => other?,
    };
    if opened.1 <= tip {
        return Ok(opened);
    }
    tracing::warn!("the projections are not of this log and are made again");
    drop(opened);
    delete(file)?;
    connect(file)
}

fn connect(file: &Path) -> Result<(Connection, u64), ProjectionError> {
    let mut connection = Connection::open(file)?;
    // Write-ahead log without a sync at each transaction: a power cut takes the newest transactions, never the
    // order, and the log has them all.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    // Rows of running executions are written over and over: the longer a page can wait, the fewer writes of it.
    connection.pragma_update(None, "wal_autocheckpoint", 8192)?;
    connection.pragma_update(None, "cache_size", -65536)?;
    connection.set_prepared_statement_cache_capacity(64);
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != SCHEMA_VERSION {
        if version != 0 {
            drop(connection);
            delete(file)?;
            return connect(file);
        }
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
    }
    let cursor = connection.query_row("SELECT cursor FROM meta", [], |row| number(row, 0))?;
    Ok((connection, cursor))
}

pub(super) fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

pub(super) fn set_cursor(connection: &Connection, cursor: u64) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE meta SET cursor = ?1")?.execute([cursor as i64]).map(drop)
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn mark_of(file: &Path) -> PathBuf {
    beside(file, "-damaged")
}

pub(super) fn mark_damaged(file: &Path) {
    if let Err(error) = std::fs::write(mark_of(file), b"") {
        tracing::error!(%error, "the damaged projections could not be marked: delete {} yourself", file.display());
    }
}

fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes the database and its companions, the mark last: until then this is done again at the next start.
fn delete(file: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-damaged"] {
        match std::fs::remove_file(beside(file, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Ids, positions and times are below 2^63, so SQLite's signed numbers hold them in their order.
pub(super) fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}

pub(super) fn optional(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(column).map(|number| number.map(|number| number as u64))
}

pub(super) fn signed(number: Option<u64>) -> Option<i64> {
    number.map(|number| number as i64)
}
