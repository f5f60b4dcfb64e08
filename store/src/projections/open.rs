//! Which executions are open. Noted by the kernel from the headers of segments, in the transaction of the rows, so
//! that taking up what was running depends on no component's word.

use rusqlite::{Connection, params};

use super::file::number;
use super::{ProjectionError, Projections};

/// A segment that opened or ended an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenChange {
    Opened { execution: u64, tenant: String, root: u64 },
    Ended { execution: u64 },
}

pub(super) fn apply(connection: &Connection, changes: &[OpenChange]) -> rusqlite::Result<()> {
    for change in changes {
        match change {
            OpenChange::Opened { execution, tenant, root } => {
                let sql = "INSERT OR REPLACE INTO open (execution, tenant, root) VALUES (?1, ?2, ?3)";
                connection.prepare_cached(sql)?.execute(params![*execution as i64, tenant, *root as i64])?;
            }
            OpenChange::Ended { execution } => {
                connection.prepare_cached("DELETE FROM open WHERE execution = ?1")?.execute([*execution as i64])?;
                // Nothing is built from it any more.
                connection
                    .prepare_cached("DELETE FROM checkpoints WHERE execution = ?1")?
                    .execute([*execution as i64])?;
            }
        }
    }
    Ok(())
}

impl Projections {
    /// Every execution that was open at the cursor: its id, tenant and root.
    pub fn open_executions(&self) -> Result<Vec<(u64, String, u64)>, ProjectionError> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT execution, tenant, root FROM open ORDER BY execution")?;
            let rows = query.query_map([], |row| Ok((number(row, 0)?, row.get(1)?, number(row, 2)?)))?;
            rows.collect()
        })
    }
}
