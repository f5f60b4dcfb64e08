//! The projections: executions, steps, commands and loops as people query them, in SQLite.
//!
//! The log is the truth. A projector makes rows of what the log has, and `apply` writes them together with the
//! place in the log they stand for, in one transaction. The file can be deleted at any time: the cursor is then 0
//! and the rows are made again. It is not synced with every transaction; after a power cut it is merely behind.
//!
//! Beside the rows the file keeps what the kernel itself wants to find again after a restart: checkpoints of
//! executions, the publisher's state, and up to when schedules were evaluated. They can be lost as well, at the
//! price of reading more of the log, publishing again, or asking a schedule's missed-run policy.
//!
//! Invariants:
//! 1. Rows and cursor change together: what the cursor says is exactly what is in the rows.
//! 2. A batch whose cursor is not beyond the present one has been applied before and changes nothing.
//! 3. Per key, versions never go back and a terminal status is the last one (see `rows`).
//!
//! Everything but `wait_for` blocks on the disk: call it off the async threads. One writer at a time; readers wait for
//! nobody. Crash: the transaction is there or it is not. Damage that SQLite notices: the call fails, a mark is left
//! beside the file, and the next start begins with an empty one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::watch;

mod batch;
mod details;
mod file;
mod kept;
mod list;
mod names;
mod open;
mod query;
mod rows;

#[cfg(test)]
mod tests;

pub use kept::Checkpoint;
pub use open::OpenChange;
pub use query::{ListQuery, MOST, PAGE, Page, PathFilter};
pub use rows::{Change, CommandRow, ExecutionRow, LoopRow, StepRow, is_terminal};

use names::Names;

#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    #[error("the projections could not be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the projections' file could not be replaced: {0}")]
    Io(#[from] io::Error),
    #[error("`{0}` is not a page: take the `next` of an earlier answer, or none for the first page")]
    Cursor(String),
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Applied {
    /// Changes that were taken.
    pub rows: u64,
    /// Changes that were older than what is there.
    pub stale: u64,
}

struct Writer {
    connection: Connection,
    names: Names,
}

pub struct Projections {
    file: PathBuf,
    writer: Mutex<Writer>,
    readers: Mutex<Vec<Connection>>,
    cursor: watch::Sender<u64>,
}

impl Projections {
    /// Opens the projections of the log whose last position is `tip`. A file that is damaged, of another schema, or
    /// ahead of the log is replaced by an empty one.
    pub fn open(file: impl AsRef<Path>, tip: u64) -> Result<Arc<Self>, ProjectionError> {
        let file = file.as_ref().to_owned();
        let (connection, at) = file::open(&file, tip)?;
        let writer = Mutex::new(Writer { connection, names: Names::default() });
        let readers = Mutex::new(vec![file::reader(&file)?]);
        Ok(Arc::new(Self { file, writer, readers, cursor: watch::Sender::new(at) }))
    }

    /// Position in the log up to which the rows stand for it.
    pub fn cursor(&self) -> u64 {
        *self.cursor.borrow()
    }

    /// Resolves when the rows stand for the log up to `position` at least. It can take for ever; give it a time-out.
    pub async fn wait_for(&self, position: u64) {
        let mut cursor = self.cursor.subscribe();
        // The sender is ours, so the receiver cannot be left alone while we are borrowed.
        let _reached = cursor.wait_for(|cursor| *cursor >= position).await;
    }

    /// Writes rows, in order, and moves the cursor, in one transaction. The changes of one segment of the log belong
    /// in one batch.
    pub fn apply(&self, changes: Vec<Change>, open: &[OpenChange], cursor: u64) -> Result<Applied, ProjectionError> {
        let mut writer = self.writer.lock();
        if cursor <= self.cursor() {
            return Ok(Applied { rows: 0, stale: changes.len() as u64 });
        }
        let applied = writer.transact(|connection, names| {
            let applied = batch::apply(connection, names, changes)?;
            open::apply(connection, open)?;
            file::set_cursor(connection, cursor)?;
            Ok(applied)
        });
        let applied = self.noticing_damage(applied)?;
        self.cursor.send_replace(cursor);
        Ok(applied)
    }

    fn write<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ProjectionError> {
        let done = self.writer.lock().transact(|connection, _| work(connection));
        self.noticing_damage(done)
    }

    /// One consistent view of the tables.
    fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, ProjectionError> {
        let free = self.readers.lock().pop();
        let connection = free.map_or_else(|| file::reader(&self.file), Ok)?;
        let transaction = connection.unchecked_transaction()?;
        let found = query(&transaction).and_then(|found| transaction.commit().map(|()| found));
        let found = self.noticing_damage(found)?;
        self.readers.lock().push(connection);
        Ok(found)
    }

    fn noticing_damage<T>(&self, outcome: rusqlite::Result<T>) -> Result<T, ProjectionError> {
        if let Err(error) = &outcome
            && file::is_damage(error)
        {
            tracing::error!(%error, "the projections are damaged and are made again at the next start");
            file::mark_damaged(&self.file);
        }
        Ok(outcome?)
    }
}

impl Writer {
    fn transact<T>(
        &mut self,
        work: impl FnOnce(&Connection, &mut Names) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let transaction = self.connection.transaction()?;
        let done = work(&transaction, &mut self.names).and_then(|done| transaction.commit().map(|()| done));
        if done.is_err() {
            // Names given in a transaction that came to nothing are nobody's.
            self.names = Names::default();
        }
        done
    }
}

impl Drop for Projections {
    fn drop(&mut self) {
        // The writer closes last: only it can fold SQLite's write-ahead file into the database and remove it.
        self.readers.lock().clear();
    }
}
