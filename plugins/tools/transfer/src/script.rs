//! Statements gathered into scripts, each of which is one transaction.
//!
//! Values are parameters by name, since those are counted for every statement by itself. A script is run when the next
//! statement would make it longer than the host or the database takes; until then everything is in one.

use std::fmt::Write as _;

use noetl_sdk::Failure;
use serde_json::value::RawValue;

use crate::names::Dialect;

/// Takes a script and its parameters, a JSON object.
pub type Run<'r> = dyn FnMut(String, String) -> Result<(), Failure> + 'r;

/// The host takes 10,000 statements of one script.
const MOST_STATEMENTS: usize = 10_000;
/// What a place in the list of a statement takes: `:p123456, ` and what is around a row.
const NAME: usize = 12;

impl Dialect {
    /// Parameters of one statement: the protocol of PostgreSQL counts to 65,535. The host lets SQLite have 10,000, but that
    /// looks for each name among all others, so that few are fast.
    pub fn most_parameters(self) -> usize {
        match self {
            Self::Postgres => 60_000,
            Self::Sqlite => 2_000,
        }
    }

    /// Bytes of a script. SQLite takes 1 MiB of text; for PostgreSQL, with its values, what a server holds for one call.
    fn most_bytes(self) -> usize {
        match self {
            Self::Postgres => 8 << 20,
            Self::Sqlite => 1_000_000,
        }
    }
}

pub struct Scripts<'r> {
    dialect: Dialect,
    run: &'r mut Run<'r>,
    text: String,
    /// An object of JSON that is not closed.
    values: String,
    /// Parameters and statements of the script that is being written.
    names: usize,
    waiting: usize,
    statements: usize,
    transactions: usize,
}

impl<'r> Scripts<'r> {
    pub fn new(dialect: Dialect, run: &'r mut Run<'r>) -> Self {
        let (text, values) = (String::new(), String::new());
        Self { dialect, run, text, values, names: 0, waiting: 0, statements: 0, transactions: 0 }
    }

    /// Begins `statements` that have text of `length` and `values` in them.
    pub fn begin(&mut self, statements: usize, length: usize, values: usize) -> Result<(), Failure> {
        let size = match self.dialect {
            Dialect::Postgres => self.text.len() + self.values.len(),
            Dialect::Sqlite => self.text.len(),
        };
        let is_full = size + length + values * NAME > self.dialect.most_bytes();
        if self.waiting > 0 && (is_full || self.waiting + statements > MOST_STATEMENTS) {
            self.send()?;
        }
        if self.waiting > 0 {
            // On a line of its own, because a statement may end in a comment.
            self.text.push_str("\n;\n");
        }
        self.waiting += statements;
        self.statements += 1;
        Ok(())
    }

    pub fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// A value at this place; nothing is null.
    pub fn value(&mut self, value: Option<&RawValue>) {
        let (name, value) = (self.names, value.map_or("null", RawValue::get));
        self.names += 1;
        let before = if name == 0 { '{' } else { ',' };
        // Writing to text does not fail.
        let _ = write!(self.text, ":p{name}");
        let _ = write!(self.values, "{before}\"p{name}\":{value}");
    }

    /// Runs what is left; answers with how many statements and transactions there were.
    pub fn end(mut self) -> Result<(usize, usize), Failure> {
        self.send()?;
        Ok((self.statements, self.transactions))
    }

    fn send(&mut self) -> Result<(), Failure> {
        if self.waiting == 0 {
            return Ok(());
        }
        let (text, mut values) = (std::mem::take(&mut self.text), std::mem::take(&mut self.values));
        values.push_str(if values.is_empty() { "{}" } else { "}" });
        (self.names, self.waiting) = (0, 0);
        (self.run)(text, values).map_err(|failure| match self.transactions {
            0 => failure,
            done => failure.context(format_args!("transaction {} (those before it are written)", done + 1)),
        })?;
        self.transactions += 1;
        Ok(())
    }
}
