//! The parts of an execution: how steps, commands and loops are stored and read.

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params};

use super::file::{number, optional, signed};
use super::query::bad_cursor;
use super::{CommandRow, LoopRow, MOST, Page, ProjectionError, Projections, StepRow};

/// A row of a table that has nothing but its primary key as index.
pub(super) trait Stored: Sized {
    type Key: Ord;
    const PUT: &'static str;

    fn key(&self) -> Self::Key;
    /// The row of the same key that is in the table.
    fn find(&self, connection: &Connection) -> rusqlite::Result<Option<Self>>;
    fn put(self, statement: &mut CachedStatement<'_>) -> rusqlite::Result<()>;
}

// The readers below take the columns in the order of the schema.

fn step(row: &Row<'_>) -> rusqlite::Result<StepRow> {
    Ok(StepRow {
        execution: number(row, 0)?,
        step: row.get(1)?,
        run: row.get(2)?,
        status: row.get(3)?,
        entered_ms: optional(row, 4)?,
        ended_ms: optional(row, 5)?,
        error: row.get(6)?,
        version: number(row, 7)?,
    })
}

fn command(row: &Row<'_>) -> rusqlite::Result<CommandRow> {
    Ok(CommandRow {
        execution: number(row, 0)?,
        step: row.get(1)?,
        run: row.get(2)?,
        iteration: u32::try_from(row.get::<_, i64>(3)?).ok(),
        attempt: row.get(4)?,
        command: row.get(5)?,
        status: row.get(6)?,
        tool: row.get(7)?,
        plugin: row.get(8)?,
        issued_ms: optional(row, 9)?,
        ended_ms: optional(row, 10)?,
        error: row.get(11)?,
        version: number(row, 12)?,
    })
}

fn a_loop(row: &Row<'_>) -> rusqlite::Result<LoopRow> {
    Ok(LoopRow {
        execution: number(row, 0)?,
        step: row.get(1)?,
        run: row.get(2)?,
        total: row.get(3)?,
        succeeded: row.get(4)?,
        failed: row.get(5)?,
        status: row.get(6)?,
        version: number(row, 7)?,
    })
}

/// A command outside of a loop comes before iteration 0.
fn iteration(of: Option<u32>) -> i64 {
    of.map_or(-1, i64::from)
}

impl Stored for StepRow {
    type Key = (u64, String, u32);
    const PUT: &'static str = "INSERT OR REPLACE INTO steps VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

    fn key(&self) -> Self::Key {
        (self.execution, self.step.clone(), self.run)
    }

    fn find(&self, connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut query =
            connection.prepare_cached("SELECT * FROM steps WHERE execution = ?1 AND step = ?2 AND run = ?3")?;
        query.query_row(params![self.execution as i64, self.step, self.run], step).optional()
    }

    fn put(self, statement: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        let (entered, ended) = (signed(self.entered_ms), signed(self.ended_ms));
        let (execution, version) = (self.execution as i64, self.version as i64);
        let row = params![execution, self.step, self.run, self.status, entered, ended, self.error, version];
        statement.execute(row).map(drop)
    }
}

impl Stored for CommandRow {
    type Key = (u64, String, u32, i64, u32);
    const PUT: &'static str =
        "INSERT OR REPLACE INTO commands VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

    fn key(&self) -> Self::Key {
        (self.execution, self.step.clone(), self.run, iteration(self.iteration), self.attempt)
    }

    fn find(&self, connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "SELECT * FROM commands
                   WHERE execution = ?1 AND step = ?2 AND run = ?3 AND iteration = ?4 AND attempt = ?5";
        let key = params![self.execution as i64, self.step, self.run, iteration(self.iteration), self.attempt];
        connection.prepare_cached(sql)?.query_row(key, command).optional()
    }

    fn put(self, statement: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        let row = params![
            self.execution as i64,
            self.step,
            self.run,
            iteration(self.iteration),
            self.attempt,
            self.command,
            self.status,
            self.tool,
            self.plugin,
            signed(self.issued_ms),
            signed(self.ended_ms),
            self.error,
            self.version as i64
        ];
        statement.execute(row).map(drop)
    }
}

impl Stored for LoopRow {
    type Key = (u64, String, u32);
    const PUT: &'static str = "INSERT OR REPLACE INTO loops VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

    fn key(&self) -> Self::Key {
        (self.execution, self.step.clone(), self.run)
    }

    fn find(&self, connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut query =
            connection.prepare_cached("SELECT * FROM loops WHERE execution = ?1 AND step = ?2 AND run = ?3")?;
        query.query_row(params![self.execution as i64, self.step, self.run], a_loop).optional()
    }

    fn put(self, statement: &mut CachedStatement<'_>) -> rusqlite::Result<()> {
        let (execution, version) = (self.execution as i64, self.version as i64);
        let row =
            params![execution, self.step, self.run, self.total, self.succeeded, self.failed, self.status, version];
        statement.execute(row).map(drop)
    }
}

impl Projections {
    /// The runs of steps of an execution in the order of their entering, the first `limit` of them.
    pub fn steps(&self, execution: u64, limit: usize) -> Result<Vec<StepRow>, ProjectionError> {
        self.read(|connection| {
            let sql = "SELECT * FROM steps WHERE execution = ?1 ORDER BY entered, run, step LIMIT ?2";
            let mut query = connection.prepare_cached(sql)?;
            query.query_map([execution as i64, limit as i64], step)?.collect()
        })
    }

    /// The loops of an execution by step and run, the first `limit` of them.
    pub fn loops(&self, execution: u64, limit: usize) -> Result<Vec<LoopRow>, ProjectionError> {
        self.read(|connection| {
            let mut query = connection.prepare_cached("SELECT * FROM loops WHERE execution = ?1 LIMIT ?2")?;
            query.query_map([execution as i64, limit as i64], a_loop)?.collect()
        })
    }

    /// The commands of an execution by step, run, iteration and attempt. `after` is `next` of the page before;
    /// a page has 1 to [`MOST`] rows.
    pub fn commands(
        &self,
        execution: u64,
        after: Option<&str>,
        size: usize,
    ) -> Result<Page<CommandRow>, ProjectionError> {
        let after = after.map(|text| place(text).ok_or_else(|| bad_cursor(text))).transpose()?;
        let size = size.clamp(1, MOST);
        let (run, iteration, attempt, step) = after.unwrap_or((-1, -1, -1, ""));
        let mut rows: Vec<CommandRow> = self.read(|connection| {
            let sql = "SELECT * FROM commands
                       WHERE execution = ?1 AND (step, run, iteration, attempt) > (?2, ?3, ?4, ?5)
                       ORDER BY step, run, iteration, attempt LIMIT ?6";
            let from = params![execution as i64, step, run, iteration, attempt, size as i64 + 1];
            connection.prepare_cached(sql)?.query_map(from, command)?.collect()
        })?;
        let more = rows.len() > size;
        rows.truncate(size);
        let next = rows.last().filter(|_| more).map(CommandRow::place);
        Ok(Page { rows, next })
    }
}

impl CommandRow {
    /// Where a page that ends with this row ends. The step comes last because it can hold any mark.
    fn place(&self) -> String {
        format!("{}.{}.{}.{}", self.run, iteration(self.iteration), self.attempt, self.step)
    }
}

fn place(text: &str) -> Option<(i64, i64, i64, &str)> {
    let mut parts = text.splitn(4, '.');
    let mut number = || parts.next()?.parse().ok();
    Some((number()?, number()?, number()?, parts.next()?))
}
