//! What the kernel keeps beside the rows: checkpoints, the publisher's state, and when schedules were evaluated.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};

use super::file::number;
use super::{ProjectionError, Projections};

/// The folded state of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub execution: u64,
    /// Version of the execution's chain the state stands for.
    pub version: u64,
    /// Position in the log of that version.
    pub fold_position: u64,
    pub bytes: Bytes,
}

impl Projections {
    pub fn checkpoint(&self, execution: u64) -> Result<Option<Checkpoint>, ProjectionError> {
        self.read(|connection| {
            let sql = "SELECT version, fold_position, bytes FROM checkpoints WHERE execution = ?1";
            let mut query = connection.prepare_cached(sql)?;
            query
                .query_row([execution as i64], |row| {
                    Ok(Checkpoint {
                        execution,
                        version: number(row, 0)?,
                        fold_position: number(row, 1)?,
                        bytes: row.get::<_, Vec<u8>>(2)?.into(),
                    })
                })
                .optional()
        })
    }

    /// Keeps checkpoints, in one transaction. One of a lower version than what is there is left aside.
    pub fn put_checkpoints(&self, checkpoints: &[Checkpoint]) -> Result<(), ProjectionError> {
        self.write(|connection| {
            let sql = "INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4) ON CONFLICT (execution) DO UPDATE
                       SET version = excluded.version, fold_position = excluded.fold_position, bytes = excluded.bytes
                       WHERE excluded.version >= version";
            let mut put = connection.prepare_cached(sql)?;
            for Checkpoint { execution, version, fold_position, bytes } in checkpoints {
                put.execute(params![*execution as i64, *version as i64, *fold_position as i64, &bytes[..]])?;
            }
            Ok(())
        })
    }

    /// What the publisher wanted kept; none before it ever ran.
    pub fn outbox_state(&self) -> Result<Option<Bytes>, ProjectionError> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT state FROM outbox")?;
            query.query_row([], |row| row.get::<_, Vec<u8>>(0).map(Bytes::from)).optional()
        })
    }

    pub fn put_outbox_state(&self, state: &[u8]) -> Result<(), ProjectionError> {
        self.write(|connection| {
            connection.prepare_cached("INSERT OR REPLACE INTO outbox VALUES (1, ?1)")?.execute([state]).map(drop)
        })
    }

    /// Up to when the schedule of a tenant's playbook was evaluated.
    pub fn schedule_last_ms(&self, tenant: &str, path: &str) -> Result<Option<u64>, ProjectionError> {
        self.read(|connection| {
            let sql = "SELECT last_ms FROM schedules WHERE tenant = ?1 AND path = ?2";
            connection.prepare_cached(sql)?.query_row([tenant, path], |row| number(row, 0)).optional()
        })
    }

    pub fn put_schedule_last_ms(&self, tenant: &str, path: &str, last_ms: u64) -> Result<(), ProjectionError> {
        self.write(|connection| {
            let sql = "INSERT OR REPLACE INTO schedules VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![tenant, path, last_ms as i64]).map(drop)
        })
    }
}
