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
        let quote = if needs_its_digits(value, self.dialect) { "\"" } else { "" };
        // Writing to text does not fail.
        let _ = write!(self.text, ":p{name}");
        let _ = write!(self.values, "{before}\"p{name}\":{quote}{value}{quote}");
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

/// Whether a number would lose digits on its way and has to go as text, which is what the database takes it from anyway.
/// SQLite would keep the text of a fraction, so that stays the number it can be.
fn needs_its_digits(value: &str, dialect: Dialect) -> bool {
    let is_number = value.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let fits = digits <= 15 || value.parse::<i64>().is_ok();
    is_number && !fits && (dialect == Dialect::Postgres || !value.contains(['.', 'e', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_many_digits_goes_as_text() {
        for (value, postgres, sqlite) in [
            ("12345678901234567890123", true, true),
            ("-12345678901234567890", true, true),
            ("0.12345678901234567", true, false),
            ("9223372036854775807", false, false),
            ("1.5e300", false, false),
            ("\"12345678901234567890123\"", false, false),
            ("[12345678901234567890123]", false, false),
        ] {
            assert_eq!(needs_its_digits(value, Dialect::Postgres), postgres, "{value}");
            assert_eq!(needs_its_digits(value, Dialect::Sqlite), sqlite, "{value}");
        }
    }
}
