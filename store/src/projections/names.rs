//! The numbers that stand for tenants, statuses and playbooks in the table of executions.
//!
//! They are given at first sight, in the transaction of the row that needs them, and remembered by the writer.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::rows::is_terminal;

#[derive(Default)]
pub(super) struct Names {
    tenants: HashMap<String, i64>,
    statuses: HashMap<String, i64>,
    playbooks: HashMap<i64, HashMap<String, i64>>,
}

impl Names {
    pub fn tenant(&mut self, connection: &Connection, name: &str) -> rusqlite::Result<i64> {
        remembered(&mut self.tenants, name, || {
            let found = "SELECT id FROM tenants WHERE name = ?1";
            if let Some(id) = connection.query_row(found, [name], |row| row.get(0)).optional()? {
                return Ok(id);
            }
            connection.execute("INSERT INTO tenants (name) VALUES (?1)", [name])?;
            Ok(connection.last_insert_rowid())
        })
    }

    pub fn status(&mut self, connection: &Connection, name: &str) -> rusqlite::Result<i64> {
        remembered(&mut self.statuses, name, || {
            if let Some(id) = find_status(connection, name)? {
                return Ok(id);
            }
            let free = if is_terminal(name) {
                "SELECT min(0, coalesce(min(id), 0)) - 1 FROM statuses"
            } else {
                "SELECT max(0, coalesce(max(id), 0)) + 1 FROM statuses"
            };
            let id = connection.query_row(free, [], |row| row.get(0))?;
            connection.execute("INSERT INTO statuses VALUES (?1, ?2)", params![id, name])?;
            Ok(id)
        })
    }

    /// `path` is empty while it is not known.
    pub fn playbook(&mut self, connection: &Connection, tenant: i64, path: &str) -> rusqlite::Result<i64> {
        remembered(self.playbooks.entry(tenant).or_default(), path, || {
            let found = "SELECT id FROM playbooks WHERE tenant = ?1 AND path = ?2";
            if let Some(id) = connection.query_row(found, params![tenant, path], |row| row.get(0)).optional()? {
                return Ok(id);
            }
            connection.execute("INSERT INTO playbooks (tenant, path) VALUES (?1, ?2)", params![tenant, path])?;
            Ok(connection.last_insert_rowid())
        })
    }
}

fn remembered(
    known: &mut HashMap<String, i64>,
    name: &str,
    find: impl FnOnce() -> rusqlite::Result<i64>,
) -> rusqlite::Result<i64> {
    if let Some(id) = known.get(name) {
        return Ok(*id);
    }
    let id = find()?;
    known.insert(name.to_owned(), id);
    Ok(id)
}

pub(super) fn find_status(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut query = connection.prepare_cached("SELECT id FROM statuses WHERE name = ?1")?;
    query.query_row([name], |row| row.get(0)).optional()
}

pub(super) fn find_tenant(connection: &Connection, name: &str) -> rusqlite::Result<Option<i64>> {
    let mut query = connection.prepare_cached("SELECT id FROM tenants WHERE name = ?1")?;
    query.query_row([name], |row| row.get(0)).optional()
}
