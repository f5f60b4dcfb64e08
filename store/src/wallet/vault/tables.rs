//! The tables of the wallet, and the only SQL about its records.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use noetl_contract::Tenant;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::de::DeserializeOwned;

use super::{Record, VaultError};
use crate::wallet::Binding;
use crate::wallet::seal::Sealed;

/// Raised when the tables change. A file of an older version is brought to this one; there is none yet.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE revisions (last INTEGER NOT NULL);
    INSERT INTO revisions VALUES (0);
    CREATE TABLE records (
        tenant TEXT NOT NULL, alias TEXT NOT NULL, kind TEXT NOT NULL, hosts TEXT NOT NULL, tags TEXT NOT NULL,
        description TEXT NOT NULL, revision INTEGER NOT NULL, shown TEXT NOT NULL, created INTEGER NOT NULL,
        changed INTEGER NOT NULL, changed_by TEXT NOT NULL, kid TEXT NOT NULL, sealed TEXT NOT NULL,
        PRIMARY KEY (tenant, alias)
    ) WITHOUT ROWID;
    CREATE TABLE uses (
        id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER NOT NULL, tenant TEXT NOT NULL, alias TEXT NOT NULL,
        by_whom TEXT NOT NULL, call TEXT NOT NULL, target TEXT NOT NULL, event TEXT NOT NULL, revision INTEGER
    );
    CREATE INDEX uses_by_alias ON uses (tenant, alias, id);
    CREATE INDEX uses_by_tenant ON uses (tenant, id);
    CREATE INDEX uses_by_time ON uses (time);";

const COLUMNS: &str =
    "tenant, alias, kind, hosts, tags, description, revision, shown, created, changed, changed_by, sealed";

/// How long one connection waits for the other to write.
const PATIENCE: Duration = Duration::from_secs(10);

/// The connection that changes records: every change is synced before it is answered.
pub fn connect(file: &Path) -> Result<Connection, VaultError> {
    let mut connection = prepared(file, "FULL")?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version > SCHEMA_VERSION {
        return Err(VaultError::Newer(version));
    }
    if version == 0 {
        let transaction = connection.transaction()?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
    }
    super::former::make_table(&connection)?;
    Ok(connection)
}

/// The key placeholders are tagged with; `made` if there is none yet.
pub fn placeholder_key(connection: &Connection, made: &[u8]) -> rusqlite::Result<Vec<u8>> {
    connection.execute_batch("CREATE TABLE IF NOT EXISTS placeholders (key BLOB NOT NULL)")?;
    connection.execute("INSERT INTO placeholders SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM placeholders)", [made])?;
    connection.query_row("SELECT key FROM placeholders", [], |row| row.get(0))
}

/// A connection whose changes survive the process at once, and a power cut a little later.
pub fn connect_unsynced(file: &Path) -> rusqlite::Result<Connection> {
    prepared(file, "NORMAL")
}

fn prepared(file: &Path, synchronous: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    Ok(connection)
}

/// Everything into the file itself, and nothing left in the write-ahead log.
pub fn checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

pub fn next_revision(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("UPDATE revisions SET last = last + 1 RETURNING last", [], |row| number(row, 0))
}

pub fn put(connection: &Connection, record: &Record, sealed: &Sealed, kid: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO records (tenant, alias, kind, hosts, tags, description, revision, shown, created, changed,
                                               changed_by, kid, sealed)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    connection.prepare_cached(sql)?.execute(params![
        record.tenant.as_str(),
        record.alias,
        record.kind,
        json(&record.hosts),
        json(&record.tags),
        record.description,
        record.revision as i64,
        json(&record.shown),
        record.created_at_ms as i64,
        record.changed_at_ms as i64,
        record.changed_by,
        kid,
        json(sealed),
    ])?;
    Ok(())
}

/// A record, and what is sealed of it.
pub fn get(connection: &Connection, tenant: &Tenant, alias: &str) -> rusqlite::Result<Option<(Record, String)>> {
    let sql = format!("SELECT {COLUMNS} FROM records WHERE tenant = ?1 AND alias = ?2");
    connection
        .prepare_cached(&sql)?
        .query_row([tenant.as_str(), alias], |row| Ok((record(row)?, row.get(11)?)))
        .optional()
}

pub fn list(connection: &Connection, tenant: Option<&Tenant>) -> rusqlite::Result<Vec<Record>> {
    let sql = format!("SELECT {COLUMNS} FROM records WHERE ?1 IS NULL OR tenant = ?1 ORDER BY tenant, alias");
    let mut query = connection.prepare_cached(&sql)?;
    query.query_map([tenant.map(Tenant::as_str)], record)?.collect()
}

pub fn delete(connection: &Connection, tenant: &Tenant, alias: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM records WHERE tenant = ?1 AND alias = ?2", [tenant.as_str(), alias]).map(drop)
}

/// Which keys records are under, and how many.
pub fn keys_in_use(connection: &Connection) -> rusqlite::Result<Vec<(String, u64)>> {
    let mut query = connection.prepare_cached("SELECT kid, count(*) FROM records GROUP BY kid ORDER BY kid")?;
    query.query_map([], |row| Ok((row.get(0)?, number(row, 1)?)))?.collect()
}

/// Some record that is under another key.
pub fn under_another(connection: &Connection, kid: &str) -> rusqlite::Result<Option<(Record, String)>> {
    let sql = format!("SELECT {COLUMNS} FROM records WHERE kid <> ?1 LIMIT 1");
    connection.prepare_cached(&sql)?.query_row([kid], |row| Ok((record(row)?, row.get(11)?))).optional()
}

pub fn set_sealed(connection: &Connection, record: &Record, sealed: &Sealed, kid: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE records SET sealed = ?3, kid = ?4 WHERE tenant = ?1 AND alias = ?2";
    connection.prepare_cached(sql)?.execute(params![record.tenant.as_str(), record.alias, json(sealed), kid]).map(drop)
}

fn record(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        tenant: Tenant::new(row.get::<_, String>(0)?).map_err(|error| odd(0, error))?,
        alias: row.get(1)?,
        kind: row.get(2)?,
        hosts: read::<Vec<Binding>>(row, 3)?,
        tags: read::<Vec<String>>(row, 4)?,
        description: row.get(5)?,
        revision: number(row, 6)?,
        shown: read::<BTreeMap<String, Option<String>>>(row, 7)?,
        created_at_ms: number(row, 8)?,
        changed_at_ms: number(row, 9)?,
        changed_by: row.get(10)?,
    })
}

pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("texts are plain data")
}

fn read<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| odd(column, error))
}

/// A column that nobody here has written.
pub fn odd(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}

/// Times, counts and revisions are far below 2^63, so SQLite's signed numbers hold them.
pub fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}
