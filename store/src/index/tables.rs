//! The database behind the index: its tables, queries, and the fold of a segment into rows.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::events::{Event, Kind, kind_of};
use super::{IndexError, KvEntry, Namespace, ObjectInfo};
use crate::log::StreamId;

/// Raised when tables or fold change: an index of another version is folded again.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE state (cursor INTEGER NOT NULL, closed INTEGER NOT NULL);
    INSERT INTO state VALUES (0, 1);
    CREATE TABLE kv (
        tenant TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL,
        value BLOB NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (tenant, path, key)
    );
    CREATE TABLE objects (
        tenant TEXT NOT NULL, path TEXT NOT NULL, key TEXT NOT NULL,
        size INTEGER NOT NULL, digest TEXT NOT NULL, media_type TEXT NOT NULL,
        PRIMARY KEY (tenant, path, key)
    );";

pub struct Tables {
    connection: Connection,
}

/// Removes the database and its companions.
pub fn delete(file: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = file.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

impl Tables {
    /// The one writer. A database that was not closed properly is checked before it is trusted.
    pub fn open(file: &Path) -> Result<Self, IndexError> {
        let mut connection = Connection::open(file)?;
        // Write-ahead log without a sync at each transaction: a power cut takes the newest transactions, never
        // the order, and the log has them all.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != SCHEMA_VERSION {
            if version != 0 {
                drop(connection);
                delete(file)?;
                return Self::open(file);
            }
            let transaction = connection.transaction()?;
            transaction.execute_batch(SCHEMA)?;
            transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            transaction.commit()?;
        }
        let closed: bool = connection.query_row("SELECT closed FROM state", [], |row| row.get(0))?;
        if !closed {
            let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if verdict != "ok" {
                let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
                return Err(rusqlite::Error::SqliteFailure(code, Some(verdict)).into());
            }
        }
        connection.execute("UPDATE state SET closed = 0", [])?;
        Ok(Self { connection })
    }

    pub fn reader(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Ok(Self { connection: Connection::open_with_flags(file, flags)? })
    }

    pub fn cursor(&self) -> rusqlite::Result<u64> {
        self.connection.query_row("SELECT cursor FROM state", [], |row| number(row, 0))
    }

    /// Says that everything up to `cursor` is here and that the file is whole.
    pub fn close(&mut self, cursor: u64) -> rusqlite::Result<()> {
        self.connection.execute("UPDATE state SET cursor = ?1, closed = 1", [cursor as i64]).map(drop)
    }

    /// Folds segments, in order, and moves the cursor, in one transaction.
    pub fn apply<'a>(
        &mut self,
        segments: impl Iterator<Item = (u64, &'a StreamId, &'a Bytes)>,
        cursor: u64,
    ) -> Result<(), IndexError> {
        let transaction = self.connection.transaction()?;
        for (position, stream, body) in segments {
            let (tenant, event) = match kind_of(stream) {
                Some(Kind::Kv(tenant)) => (tenant, Event::decode_kv(body)),
                Some(Kind::Objects(tenant)) => (tenant, Event::decode_object(body)),
                None => continue,
            };
            let event =
                event.map_err(|problem| IndexError::Segment { position, stream: stream.to_string(), problem })?;
            fold(&transaction, position, tenant, event)?;
        }
        transaction.execute("UPDATE state SET cursor = ?1", [cursor as i64])?;
        transaction.commit()?;
        Ok(())
    }

    pub fn kv_get(&self, of: &Namespace, key: &str) -> rusqlite::Result<Option<KvEntry>> {
        let sql = "SELECT value, version FROM kv WHERE tenant = ?1 AND path = ?2 AND key = ?3";
        let entry = |row: &Row<'_>| Ok(KvEntry { value: row.get::<_, Vec<u8>>(0)?.into(), version: number(row, 1)? });
        let mut query = self.connection.prepare_cached(sql)?;
        query.query_row(params![of.tenant.as_str(), of.path.as_str(), key], entry).optional()
    }

    pub fn kv_version(&self, of: &Namespace, key: &str) -> rusqlite::Result<Option<u64>> {
        let sql = "SELECT version FROM kv WHERE tenant = ?1 AND path = ?2 AND key = ?3";
        let mut query = self.connection.prepare_cached(sql)?;
        query.query_row(params![of.tenant.as_str(), of.path.as_str(), key], |row| number(row, 0)).optional()
    }

    pub fn kv_list(
        &self,
        of: &Namespace,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT key FROM kv WHERE tenant = ?1 AND path = ?2 AND key >= ?3 AND key > ?4 ORDER BY key";
        self.list(sql, of, prefix, after, limit, |row| row.get(0))
    }

    pub fn object_get(&self, of: &Namespace, key: &str) -> rusqlite::Result<Option<ObjectInfo>> {
        let sql = "SELECT key, size, digest, media_type FROM objects WHERE tenant = ?1 AND path = ?2 AND key = ?3";
        let mut query = self.connection.prepare_cached(sql)?;
        query.query_row(params![of.tenant.as_str(), of.path.as_str(), key], object).optional()
    }

    pub fn object_list(
        &self,
        of: &Namespace,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> rusqlite::Result<Vec<ObjectInfo>> {
        let sql = "SELECT key, size, digest, media_type FROM objects
                   WHERE tenant = ?1 AND path = ?2 AND key >= ?3 AND key > ?4 ORDER BY key";
        self.list(sql, of, prefix, after, limit, object)
    }

    /// Rows of a query whose first column is the key. Keys are never empty, so the empty string is before all.
    fn list<T>(
        &self,
        sql: &str,
        of: &Namespace,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut query = self.connection.prepare_cached(sql)?;
        let from = params![of.tenant.as_str(), of.path.as_str(), prefix, after.unwrap_or_default()];
        let mut rows = query.query(from)?;
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            if !row.get_ref(0)?.as_str()?.starts_with(prefix) {
                break;
            }
            found.push(read(row)?);
        }
        Ok(found)
    }
}

fn fold(connection: &Connection, position: u64, tenant: &str, event: Event) -> rusqlite::Result<()> {
    match event {
        Event::KvWritten { path, writes } => {
            let mut put = connection.prepare_cached("INSERT OR REPLACE INTO kv VALUES (?1, ?2, ?3, ?4, ?5)")?;
            let mut remove =
                connection.prepare_cached("DELETE FROM kv WHERE tenant = ?1 AND path = ?2 AND key = ?3")?;
            for (key, value) in writes {
                match value {
                    Some(value) => put.execute(params![tenant, path.as_str(), key, &value[..], position as i64])?,
                    None => remove.execute(params![tenant, path.as_str(), key])?,
                };
            }
        }
        Event::ObjectPut { path, object } => {
            let sql = "INSERT OR REPLACE INTO objects VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            let (size, digest) = (object.size as i64, object.digest.to_string());
            connection.prepare_cached(sql)?.execute(params![
                tenant,
                path.as_str(),
                object.key,
                size,
                digest,
                object.media_type
            ])?;
        }
        Event::ObjectDeleted { path, key } => {
            let sql = "DELETE FROM objects WHERE tenant = ?1 AND path = ?2 AND key = ?3";
            connection.prepare_cached(sql)?.execute(params![tenant, path.as_str(), key])?;
        }
    }
    Ok(())
}

/// Positions and sizes are far below 2^63, so SQLite's signed numbers hold them.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(|number| number as u64)
}

fn object(row: &Row<'_>) -> rusqlite::Result<ObjectInfo> {
    let digest: String = row.get(2)?;
    let bad = |error| rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Text, Box::new(error));
    Ok(ObjectInfo {
        key: row.get(0)?,
        size: number(row, 1)?,
        digest: digest.parse().map_err(bad)?,
        media_type: row.get(3)?,
    })
}
