//! Databases of the outside: scripts of SQL run on them, and what they answer as JSON or as a table.
//!
//! A [`Request`] is one script. It runs in one transaction unless it says otherwise, each statement gives a [`Done`], and
//! the rows are in the form they are handed on in: JSON text that loses nothing, or, beyond a bound, an Arrow stream in a
//! payload that was never whole in memory. Which database is meant, and whether it may be reached, is decided by whoever
//! calls; this module knows the drivers and no policy.
//!
//! Invariants:
//! 1. A value that the driver does not know is its text. Nothing becomes null that is not null, but a number in a table
//!    that has to be [`Hidden`].
//! 2. No error carries a parameter's value or a credential by itself; what a server says about a statement is passed on.
//! 3. A request that is given up (its future dropped) stops in the server too.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::payloads::SealedPayload;

mod cells;
mod hidden;
mod listed;
mod named;
pub mod placed;
pub mod postgres;
mod room;
pub mod script;
pub mod sqlite;
mod table;

pub use hidden::{Hidden, Hide};
pub use room::{GiveRoom, Room, Taken};

/// One script.
#[derive(Debug, Clone)]
pub struct Request {
    pub script: String,
    pub parameters: Parameters,
    /// Where unqualified names are looked for, one or several with commas between them.
    pub schema: Option<String>,
    /// All statements or none. Without it each is committed by itself.
    pub transaction: bool,
    /// Rows as objects by the names of their columns, or as lists.
    pub objects: bool,
    pub time: Duration,
    pub bounds: Bounds,
    /// What is taken out of rows and the names of columns.
    pub hidden: Hidden,
    /// Where memory for large rows comes from.
    pub room: Room,
}

/// Values for a script.
#[derive(Debug, Clone, Default)]
pub enum Parameters {
    #[default]
    None,
    /// `$1`, `$2`, ...; each statement takes those it mentions. [`placed`] makes them of `%s`.
    Positional(Vec<Value>),
    /// `:name` or `%(name)s`.
    Named(Map<String, Value>),
}

/// How much comes back.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Rows that make the answer longer than this many bytes become a table.
    pub inline: u64,
    /// Tables of more than this many bytes together are an error.
    pub most: u64,
}

impl Bounds {
    /// What is left of them for the statements after this one.
    fn after(self, done: &Done) -> Self {
        match &done.rows {
            Some(Rows::Json(text)) => Self { inline: self.inline.saturating_sub(text.len() as u64), ..self },
            Some(Rows::Table(table)) => Self { most: self.most.saturating_sub(table.size()), ..self },
            None => self,
        }
    }
}

/// Tables of one script: each is an open file.
const MOST_TABLES: usize = 64;

/// Whether what the last statement came to still fits.
fn check_tables(done: &[Done]) -> Result<(), SqlError> {
    let is_table = |done: &&Done| matches!(done.rows, Some(Rows::Table(_)));
    match done.last().filter(is_table).map(|_| done.iter().filter(is_table).count()) {
        Some(count) if count > MOST_TABLES => Err(SqlError::Invalid(format!(
            "more than {MOST_TABLES} statements of the script have large results: make it several scripts"
        ))),
        _ => Ok(()),
    }
}

/// What one statement came to.
#[derive(Debug)]
pub struct Done {
    /// What the server calls it: `INSERT 0 3`.
    pub status: String,
    /// Rows changed; nothing for a statement that changes none by its nature.
    pub affected: Option<u64>,
    pub columns: Vec<Column>,
    pub row_count: u64,
    /// Nothing for a statement that gives no rows.
    pub rows: Option<Rows>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// As the database calls it: `int4`, `_text`, `INTEGER`; empty if it does not say.
    pub kind: String,
}

#[derive(Debug)]
pub enum Rows {
    /// A JSON list.
    Json(String),
    /// An Arrow IPC stream.
    Table(SealedPayload),
}

/// The media type of [`Rows::Table`].
pub const TABLE_TYPE: &str = "application/vnd.apache.arrow.stream";

/// What a database said about a statement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fault {
    /// Counted from 1; 0 if no statement is to blame.
    pub statement: u32,
    pub sqlstate: String,
    pub message: String,
    /// A character of the statement, counted from 1.
    pub position: Option<u32>,
    /// These may contain values of rows.
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub constraint: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
}

/// Why a script has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// The request makes no sense: nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// The place is out of bounds.
    #[error("{0}")]
    Denied(String),
    /// No connection, or one that broke before anything was committed.
    #[error("no connection: {0}")]
    Connect(String),
    /// The server did not take the credential.
    #[error("the server refused the credential: {0}")]
    Refused(String),
    /// The connection broke while something was committed, so that nobody knows whether it was.
    #[error("the connection was lost, and the script may have been committed: {0}")]
    Lost(String),
    #[error("the time was over")]
    Timeout,
    #[error("statement {}: {} [SQLSTATE {}]", .0.statement, .0.message, .0.sqlstate)]
    Sql(Box<Fault>),
    #[error("a result of {0} bytes is too large")]
    TooLarge(u64),
    /// What the result is written to failed.
    #[error("the payload store failed: {0}")]
    Store(String),
}
