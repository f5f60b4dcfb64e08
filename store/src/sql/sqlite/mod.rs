//! Scripts on SQLite: in memory, or in a file of the folder an operator set aside.
//!
//! A script reaches one database and nothing else of the machine: files are named, never addressed, and lie in a folder of
//! their tenant's; an authorizer refuses to attach others, to load code and to change how the library works. Sizes of
//! values, statements and databases are bounded ([`guard`]), and so is what it takes besides ([`meter`]).
//!
//! Each script opens the database and closes it, on a thread of its own. When its time is over, or nobody waits for it
//! any more, it is interrupted between two steps; what it did not commit is undone. A function that runs is one step and
//! is not interrupted: whoever waits is answered all the same, and what the script holds is given back when its thread has
//! really ended.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use noetl_contract::Tenant;
use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Statement};
use tokio::runtime::Handle;

use super::cells::{Cell, Collector, Shape};
use super::script::{Token, statements, tokens};
use super::{Bounds, Column, Done, Fault, Request, SqlError, check_tables};
use crate::payloads::Payloads;

mod functions;
mod guard;
mod meter;
mod places;

/// Which database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Gone with the script.
    Memory,
    File(PathBuf),
}

/// The operator's folder of databases.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

const LONGEST_NAME: usize = 64;

impl Folder {
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The database of that name, whether it is there or not. Its folder is made.
    pub fn place(&self, tenant: &Tenant, name: &str) -> Result<Place, SqlError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if name.is_empty() || name.len() > LONGEST_NAME || name.starts_with('.') || !name.bytes().all(plain) {
            let text = "a database is named by letters, digits, `_`, `-` and `.`, at most 64, and not by a path";
            return Err(SqlError::Denied(text.to_owned()));
        }
        let own = self.0.join(tenant.as_str());
        match DirBuilder::new().recursive(true).mode(0o700).create(&own) {
            Ok(()) => Ok(Place::File(own.join(format!("{}.sqlite", name.trim_end_matches(".sqlite"))))),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(SqlError::Denied("the server may not write to the folder `sql.folder` names".to_owned()))
            }
            Err(error) => Err(SqlError::Connect(format!("the folder of databases: {error}"))),
        }
    }
}

/// How long past its time a script is waited for, so that one that is interrupted can say so.
const GRACE: Duration = Duration::from_secs(1);

/// Runs a script. What it is given to hold, such as its tenant's slot, it holds until its thread ends, whoever has gone
/// meanwhile.
pub async fn run(
    place: Place,
    request: Request,
    payloads: Payloads,
    held: impl Send + 'static,
) -> Result<Vec<Done>, SqlError> {
    let runtime = Handle::current();
    let given_up = GivenUp::default();
    let committing = Arc::new(AtomicBool::new(false));
    let (time, is_kept) = (request.time, place != Place::Memory);
    let limit = guard::Limit::new(Instant::now() + time, given_up.0.clone());
    let running = tokio::task::spawn_blocking({
        let committing = committing.clone();
        move || {
            // Dropped last, after the connection.
            let _held = held;
            let connection = guard::open(&place, time, limit.clone())?;
            let script = Script {
                connection: &connection,
                request: &request,
                payloads: &payloads,
                limit: &limit,
                committing: &committing,
                runtime,
            };
            script.run().map_err(|error| limit.explain(error))
        }
    });
    let ended = tokio::time::timeout(time.saturating_add(GRACE), running).await;
    drop(given_up);
    match ended {
        Ok(Ok(done)) => done,
        Ok(Err(error)) => Err(SqlError::Connect(format!("the database's thread ended: {error}"))),
        Err(_) if is_kept && committing.load(Ordering::Relaxed) => {
            Err(SqlError::Lost("it did not stop when its time was over".to_owned()))
        }
        Err(_) => Err(SqlError::Timeout),
    }
}

/// Dropped with the future of whoever waits, it ends what still runs.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Script<'s> {
    connection: &'s Connection,
    request: &'s Request,
    payloads: &'s Payloads,
    limit: &'s guard::Limit,
    /// Set before anything that is durable once it is done.
    committing: &'s AtomicBool,
    runtime: Handle,
}

impl Script<'_> {
    fn run(&self) -> Result<Vec<Done>, SqlError> {
        if self.request.schema.is_some() {
            return Err(SqlError::Invalid("SQLite has no schemas to choose from".to_owned()));
        }
        places::check(&self.request.script, &self.request.parameters)?;
        let whole = self.request.transaction && is_plain(&self.request.script);
        if whole {
            self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| wrong(error, 0))?;
        }
        let mut done: Vec<Done> = Vec::new();
        let mut bounds = self.request.bounds;
        let mut taken = 0;
        let mut batch = Batch::new(self.connection, &self.request.script);
        loop {
            let number = u32::try_from(done.len() + 1).unwrap_or(u32::MAX);
            if self.limit.is_over() {
                return Err(SqlError::Timeout);
            }
            self.limit.begin_statement();
            let Some(mut statement) = batch.next().map_err(|error| wrong(error, number))? else { break };
            let ended = self.statement(&mut statement, number, bounds, &mut taken)?;
            bounds = bounds.after(&ended);
            done.push(ended);
            check_tables(&done)?;
        }
        if whole {
            self.committing.store(true, Ordering::Relaxed);
            self.connection.execute_batch("COMMIT").map_err(|error| wrong(error, done.len() as u32))?;
        }
        match (done.is_empty(), self.connection.is_autocommit()) {
            (true, _) => Err(SqlError::Invalid("there is no statement in the script".to_owned())),
            (_, false) => {
                let text = "the script leaves a transaction open, which was rolled back: end it with COMMIT";
                Err(SqlError::Invalid(text.to_owned()))
            }
            _ => Ok(done),
        }
    }

    /// `taken`: how many values of the list the statements so far have.
    fn statement(
        &self,
        statement: &mut Statement<'_>,
        number: u32,
        bounds: Bounds,
        taken: &mut usize,
    ) -> Result<Done, SqlError> {
        // Before values are part of it.
        let verb = statement.expanded_sql().as_deref().and_then(first_word).unwrap_or_default();
        *taken += places::bind(statement, &self.request.parameters, number, *taken)?;
        let before = self.connection.total_changes();
        let writes = !statement.readonly();
        let ends = matches!(verb.as_str(), "COMMIT" | "END" | "RELEASE");
        if ends || (writes && self.connection.is_autocommit()) {
            self.committing.store(true, Ordering::Relaxed);
        }
        let columns: Vec<_> = statement
            .columns()
            .iter()
            .map(|column| {
                let kind = column.decl_type().unwrap_or_default().to_owned();
                (Column { name: column.name().to_owned(), kind }, Shape::Unknown)
            })
            .collect();
        let width = columns.len();
        let collector = Collector::new(columns, self.request.objects, bounds, self.payloads);
        let mut collector = collector.hiding(&self.request.hidden);
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|error| wrong(error, number))? {
            let cells = (0..width).map(|place| row.get_ref(place).map_or(Cell::Null, cell));
            if width > 0 && collector.push(cells) {
                self.runtime.block_on(collector.settle())?;
            }
        }
        drop(rows);
        let changed = self.connection.total_changes() != before;
        let counts = matches!(verb.as_str(), "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH");
        let affected = (changed || (writes && counts)).then(|| if changed { self.connection.changes() } else { 0 });
        let status = affected.map_or(verb.clone(), |affected| format!("{verb} {affected}"));
        if width == 0 {
            return Ok(Done { status, affected, columns: Vec::new(), row_count: 0, rows: None });
        }
        let (columns, row_count, rows) = self.runtime.block_on(collector.finish())?;
        Ok(Done { status, affected, columns, row_count, rows: Some(rows) })
    }
}

fn first_word(text: &str) -> Option<String> {
    tokens(text).find(|(token, _)| *token == Token::Word).map(|(_, word)| word.to_ascii_uppercase())
}

/// Whether all statements fit into one transaction: there are several, and none of them is about transactions.
fn is_plain(script: &str) -> bool {
    let own = |statement: &str| {
        let word = first_word(statement.trim_start()).unwrap_or_default();
        // Not `END`, which is also the end of a trigger.
        matches!(word.as_str(), "BEGIN" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "VACUUM")
    };
    statements(script).nth(1).is_some() && !statements(script).any(own)
}

fn cell(value: ValueRef<'_>) -> Cell<'_> {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(whole) => Cell::Number(whole.to_string().into()),
        ValueRef::Real(float) => match serde_json::Number::from_f64(float) {
            Some(number) => Cell::Number(number.to_string().into()),
            None => Cell::Text(if float > 0.0 { "Infinity" } else { "-Infinity" }.into()),
        },
        ValueRef::Text(bytes) => Cell::Text(String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.into()),
    }
}

/// What the library says, in the words that other databases use for it.
fn wrong(error: rusqlite::Error, statement: u32) -> SqlError {
    use rusqlite::ErrorCode;
    let (code, message, position) = match error {
        rusqlite::Error::SqliteFailure(code, message) => {
            let message = message.unwrap_or_else(|| code.to_string());
            (code, message, None)
        }
        rusqlite::Error::SqlInputError { error, msg, offset, .. } => {
            (error, msg, u32::try_from(offset).ok().map(|offset| offset + 1))
        }
        other => return SqlError::Invalid(format!("statement {statement}: {other}")),
    };
    let sqlstate = match (code.code, code.extended_code) {
        (ErrorCode::OperationInterrupted, _) => return SqlError::Timeout,
        (ErrorCode::AuthorizationForStatementDenied, _) => {
            return SqlError::Denied(format!("statement {statement}: {message}"));
        }
        // A function that is denied has no code of its own.
        _ if message.starts_with("not authorized") => {
            return SqlError::Denied(format!("statement {statement}: {message}"));
        }
        (ErrorCode::CannotOpen | ErrorCode::NotADatabase | ErrorCode::SystemIoFailure, _) => {
            return SqlError::Connect(message);
        }
        (ErrorCode::ConstraintViolation, 1555 | 2067 | 2579) => "23505",
        (ErrorCode::ConstraintViolation, 1299) => "23502",
        (ErrorCode::ConstraintViolation, 787) => "23503",
        (ErrorCode::ConstraintViolation, 275) => "23514",
        (ErrorCode::ConstraintViolation, _) => "23000",
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => "55P03",
        (ErrorCode::DiskFull, _) => "53100",
        (ErrorCode::OutOfMemory, _) => "53200",
        (ErrorCode::TooBig, _) => "54000",
        (ErrorCode::ReadOnly, _) => "25006",
        (ErrorCode::TypeMismatch, _) => "42804",
        (ErrorCode::Unknown, _) => "42000",
        _ => "XX000",
    };
    SqlError::Sql(Box::new(Fault { statement, sqlstate: sqlstate.to_owned(), message, position, ..Fault::default() }))
}

#[cfg(test)]
mod tests;
