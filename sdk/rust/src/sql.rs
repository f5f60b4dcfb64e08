//! Scripts of SQL on databases that a credential or a name stands for, for plugins that hold `sql` (and `payload`, whose
//! types it speaks in).
//!
//! ```no_run
//! # fn main() -> Result<(), noetl_sdk::Failure> {
//! let done = noetl_sdk::sql::postgres("orders").parameters("[7]").run("SELECT * FROM orders WHERE id = $1")?;
//! # Ok(()) }
//! ```
//!
//! A script is one transaction unless it says otherwise, and each of its statements has an [`Outcome`]. Few rows are JSON
//! text, many are a payload that never enters the guest. The codes of failures are for rules to match: `constraint`,
//! `deadlock` and `serialization` (both are gone when the script is run again), `connect`, `timeout`, `auth`, `sql_error`.

use std::time::Duration;

use crate::Failure;
use crate::bindings::noetl::sql::sql::{self, Database, Request, SqlError};
pub use crate::bindings::noetl::sql::sql::{Column, Fault, Outcome, Rows};

/// Why a script has no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Invalid(String),
    #[error("{0}")]
    UnknownCredential(String),
    #[error("not permitted: {0}")]
    Denied(String),
    #[error("no connection to the database: {0}")]
    Connect(String),
    #[error("the database refused the credential: {0}")]
    Refused(String),
    #[error("the connection was lost, and the script may have been committed: {0}")]
    Lost(String),
    #[error("the database did not answer in time")]
    Timeout,
    #[error("{}", told(.0))]
    Sql(Box<Fault>),
    #[error("a result of {0} bytes is larger than the plugin may take")]
    TooLarge(u64),
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Invalid(text) => Self::Invalid(text),
            SqlError::UnknownCredential(text) => Self::UnknownCredential(text),
            SqlError::Denied(text) => Self::Denied(text),
            SqlError::Connect(text) => Self::Connect(text),
            SqlError::Refused(text) => Self::Refused(text),
            SqlError::Lost(text) => Self::Lost(text),
            SqlError::Timeout => Self::Timeout,
            SqlError::Sql(fault) => Self::Sql(fault.into()),
            SqlError::TooLarge(size) => Self::TooLarge(size),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (code, retryable) = match &error {
            Error::Invalid(_) => ("invalid_input", false),
            Error::UnknownCredential(_) | Error::Refused(_) => ("auth", false),
            Error::Denied(_) => ("denied", false),
            Error::Connect(_) => ("connect", true),
            Error::Lost(_) => ("connection_lost", false),
            Error::Timeout => ("timeout", true),
            Error::Sql(fault) => class(&fault.sqlstate),
            Error::TooLarge(_) => ("too_large", false),
        };
        Self { retryable, ..Self::new(code, error) }
    }
}

/// What rules match, and whether running the script again can help.
fn class(sqlstate: &str) -> (&'static str, bool) {
    match sqlstate {
        "40P01" => ("deadlock", true),
        "40001" => ("serialization", true),
        "55P03" => ("locked", true),
        "42501" => ("auth", false),
        _ => match sqlstate.get(..2) {
            Some("23") => ("constraint", false),
            Some("08") => ("connect", true),
            Some("28") => ("auth", false),
            // Out of memory, of disk, of connections.
            Some("53") => ("sql_error", true),
            _ => ("sql_error", false),
        },
    }
}

/// What is wrong and where, without the values that a detail would show.
fn told(fault: &Fault) -> String {
    let mut text = match (fault.statement, fault.position) {
        (0, _) => String::new(),
        (number, None) => format!("statement {number}: "),
        (number, Some(position)) => format!("statement {number}, character {position}: "),
    };
    text.push_str(&fault.message);
    if let Some(hint) = &fault.hint {
        text.push_str(&format!(" (hint: {hint})"));
    }
    if fault.sqlstate == "25001" {
        text.push_str(" (run it with `transaction: false`)");
    }
    text.push_str(&format!(" [SQLSTATE {}]", fault.sqlstate));
    text
}

/// A script being put together; a copy is another one on the same database.
#[derive(Debug, Clone)]
#[must_use = "a script does nothing until it is run"]
pub struct Script(Request);

/// PostgreSQL, reached with the tenant's credential of that alias.
pub fn postgres(credential: impl Into<String>) -> Script {
    Script::on(Database::Credential(credential.into()))
}

/// SQLite, the tenant's file of that name in the folder the operator has set aside.
pub fn file(name: impl Into<String>) -> Script {
    Script::on(Database::File(name.into()))
}

/// SQLite, an empty database for one script.
pub fn memory() -> Script {
    Script::on(Database::Memory)
}

impl Script {
    fn on(database: Database) -> Self {
        Self(Request {
            database,
            script: String::new(),
            parameters: None,
            schema: None,
            transaction: true,
            objects: true,
            timeout_ms: None,
            inline_bytes: None,
        })
    }

    /// JSON: a list for `$1`, `$2`, ..., or an object for `:name`.
    pub fn parameters(mut self, json: impl Into<String>) -> Self {
        self.0.parameters = Some(json.into());
        self
    }

    /// Where unqualified names are looked for.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.0.schema = Some(schema.into());
        self
    }

    /// Whether it is all statements or none; it is if nothing is said.
    pub fn transaction(mut self, transaction: bool) -> Self {
        self.0.transaction = transaction;
        self
    }

    /// Whether rows are objects by column name, or lists; they are objects if nothing is said.
    pub fn objects(mut self, objects: bool) -> Self {
        self.0.objects = objects;
        self
    }

    /// Bounded by the call's own `limits.wall_ms`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout_ms = Some(u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX));
        self
    }

    /// Rows beyond this many bytes become a table.
    pub fn inline_bytes(mut self, bytes: u32) -> Self {
        self.0.inline_bytes = Some(bytes);
        self
    }

    /// Run the statements; one outcome each.
    pub fn run(mut self, script: impl Into<String>) -> Result<Vec<Outcome>, Error> {
        self.0.script = script.into();
        Ok(sql::run(&self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(sqlstate: &str) -> Fault {
        Fault {
            statement: 2,
            sqlstate: sqlstate.to_owned(),
            message: "no".to_owned(),
            position: Some(8),
            detail: Some("Key (email)=(ada@example.com) already exists.".to_owned()),
            hint: None,
            constraint: None,
        }
    }

    #[test]
    fn failures_are_told_apart_by_what_helps() {
        for (sqlstate, code, retryable) in [
            ("23505", "constraint", false),
            ("40P01", "deadlock", true),
            ("40001", "serialization", true),
            ("55P03", "locked", true),
            ("42601", "sql_error", false),
            ("42501", "auth", false),
            ("53300", "sql_error", true),
            ("08006", "connect", true),
            ("", "sql_error", false),
        ] {
            let failure = Failure::from(Error::Sql(fault(sqlstate).into()));
            assert_eq!((failure.code.as_str(), failure.retryable), (code, retryable), "{sqlstate}");
        }
        assert!(Failure::from(Error::Connect("x".into())).retryable && Failure::from(Error::Timeout).retryable);
        assert!(!Failure::from(Error::Lost("x".into())).retryable, "it may have been done");
    }

    #[test]
    fn a_failure_names_the_place_and_no_value() {
        let failure = Failure::from(Error::Sql(fault("23505").into()));
        assert_eq!(failure.message, "statement 2, character 8: no [SQLSTATE 23505]");
        let outside = Failure::from(Error::Sql(fault("25001").into()));
        assert!(outside.message.contains("transaction: false"), "{outside}");
    }
}
