//! Where rows go: a table, or a statement of the step's own for every row.

use std::collections::HashSet;

use noetl_sdk::Failure;
use noetl_sdk::sql::Script;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sql_common::{Options, database};

use crate::names::{Dialect, quoted};
use crate::options::{Mode, TOOL};
use crate::query::{Piece, Query};
use crate::rows;
use crate::script::{Run, Scripts};

/// One after the other, the names of a statement and of a key.
const QUERY: [&str; 4] = ["query", "command", "statement", "sql"];
const KEY: [&str; 5] = ["key", "keys", "conflict_columns", "primary_key", "conflict_key"];
const KNOWN: [&str; 18] = [
    "type",
    "table",
    "query",
    "command",
    "statement",
    "sql",
    "mapping",
    "key",
    "keys",
    "conflict_columns",
    "primary_key",
    "conflict_key",
    "auth",
    "credential",
    "database",
    "schema",
    "timeout",
    "timeout_ms",
];

pub struct Target {
    pub database: Script,
    pub work: Work,
}

/// What is done with rows, apart from the database it is done in.
#[derive(Debug)]
pub struct Work {
    pub dialect: Dialect,
    pub mode: Mode,
    chunk_size: usize,
    /// As a statement has it.
    table: Option<String>,
    query: Option<String>,
    /// Columns as they are written, and the path of each in a row.
    mapping: Option<Vec<(String, String)>>,
    /// As a statement has them.
    key: Vec<String>,
}

/// What was done.
#[derive(Debug, PartialEq)]
pub struct Done {
    pub rows: usize,
    pub columns: Vec<String>,
    pub statements: usize,
    pub transactions: usize,
}

/// A value of a row: what it is called, how a statement has that, and where it is.
struct Column {
    name: String,
    written: String,
    path: String,
}

impl Target {
    pub fn read(kind: &str, options: Map<String, Value>, mode: Mode, chunk_size: usize) -> Result<Self, Failure> {
        Self::of(kind, Options::of(options), mode, chunk_size).map_err(|failure| failure.context("`target`"))
    }

    fn of(kind: &str, mut options: Options, mode: Mode, chunk_size: usize) -> Result<Self, Failure> {
        let (dialect, mut database) = match kind {
            "postgres" | "postgresql" => (Dialect::Postgres, database::postgres(&mut options)?),
            "sqlite" if options.any_of(&["database"]).is_none() => {
                return Err(Failure::invalid_input("`database` is missing: what is in memory is gone with the call"));
            }
            "sqlite" => (Dialect::Sqlite, database::sqlite(&mut options)?),
            other => {
                return Err(Failure::new(
                    "unsupported_target",
                    format_args!("a target of the type `{other}` is not supported: `postgres` and `sqlite` are"),
                ));
            }
        };
        if let Some(schema) = options.take_text("schema")? {
            database = database.schema(schema);
        }
        if let Some(timeout) = options.timeout()? {
            database = database.timeout(timeout);
        }
        let table = options.take_text("table")?.map(|table| dialect.table(&table)).transpose()?;
        let mut query = None;
        for name in QUERY {
            query = query.or(options.take_text(name)?);
        }
        let mapping = mapping(options.take("mapping"))?;
        let mut key = Vec::new();
        for name in KEY {
            let given = columns(name, options.take(name))?;
            key = if key.is_empty() { given } else { key };
        }
        let key: Vec<String> = key.iter().map(|name| dialect.column(name)).collect();
        options.end(TOOL, &KNOWN);
        let work = Work { dialect, mode, chunk_size, table, query, mapping, key };
        work.check()?;
        Ok(Self { database, work })
    }
}

/// An object of columns and paths, or the JSON of one.
fn mapping(given: Option<Value>) -> Result<Option<Vec<(String, String)>>, Failure> {
    let given = match given {
        Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        None => return Ok(None),
        Some(other) => other,
    };
    let wrong = "`mapping` is a map of columns and where their values are in a row: `{user_id: user.id}`";
    let Value::Object(fields) = given else { return Err(Failure::invalid_input(wrong)) };
    if fields.is_empty() {
        return Ok(None);
    }
    let pair = |(column, path): (String, Value)| match path {
        Value::String(path) if !path.trim().is_empty() => Ok((column, path)),
        _ => Err(Failure::invalid_input(format_args!("{wrong}; that of `{column}` is no path"))),
    };
    fields.into_iter().map(pair).collect::<Result<Vec<_>, _>>().map(Some)
}

/// Names of columns: a list, or text with commas between.
fn columns(option: &str, given: Option<Value>) -> Result<Vec<String>, Failure> {
    let wrong = || Failure::invalid_input(format_args!("`{option}` is the name of a column, or a list of them"));
    match given {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            Ok(names.map(str::to_owned).collect())
        }
        Some(Value::Array(list)) => {
            list.iter().map(|name| name.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

impl Work {
    fn check(&self) -> Result<(), Failure> {
        let wrong = match (&self.table, &self.query, self.mode) {
            (None, None, _) => "there is nowhere to write to: give `table`, or a `query` that is run for every row",
            (None, Some(_), Mode::Replace) => "`mode: replace` empties a table: give `table` beside the `query`",
            (Some(_), None, Mode::Upsert) if self.key.is_empty() => {
                "`mode: upsert` needs the columns that tell rows apart: give them as `key`; the table has to have a \
                 unique index on them"
            }
            _ => return Ok(()),
        };
        Err(Failure::invalid_input(wrong))
    }

    /// Writes the rows; `exact` if the names of their fields are names of columns to the letter.
    pub fn write(&self, rows: &[&RawValue], exact: bool, run: &mut Run<'_>) -> Result<Done, Failure> {
        let mut scripts = Scripts::new(self.dialect, run);
        if let (Mode::Replace, Some(table)) = (self.mode, &self.table) {
            let text = format!("DELETE FROM {table}");
            scripts.begin(1, text.len(), 0)?;
            scripts.text(&text);
        }
        let (written, columns) = match (&self.query, &self.table) {
            (Some(query), _) => (rows.len(), self.by_query(query, rows, exact, &mut scripts)?),
            (None, Some(table)) => self.by_table(table, rows, exact, &mut scripts)?,
            (None, None) => (0, Vec::new()),
        };
        let (statements, transactions) = scripts.end()?;
        Ok(Done { rows: written, columns, statements, transactions })
    }

    fn by_table(
        &self,
        table: &str,
        rows: &[&RawValue],
        exact: bool,
        scripts: &mut Scripts<'_>,
    ) -> Result<(usize, Vec<String>), Failure> {
        let columns = match &self.mapping {
            Some(mapping) => self.mapped(mapping),
            None => self.own(rows, exact)?,
        };
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        if columns.is_empty() {
            return match rows.is_empty() {
                true => Ok((0, names)),
                false => Err(Failure::new("invalid_data", "the rows have no fields to write")),
            };
        }
        let most = self.dialect.most_parameters();
        if columns.len() > most {
            let text = format!("a row of {} values is more than the {most} of one statement", columns.len());
            return Err(Failure::new("invalid_data", text));
        }
        let (head, tail) = (self.head(table, &columns), self.tail(&columns)?);
        let kept = if self.mode == Mode::Upsert { self.last_of_each(rows, &columns) } else { rows.to_vec() };
        for chunk in kept.chunks(self.chunk_size.min(most / columns.len())) {
            scripts.begin(1, head.len() + tail.len(), chunk.len() * columns.len())?;
            scripts.text(&head);
            for (number, row) in chunk.iter().enumerate() {
                let row = Row::of(row);
                scripts.text(if number == 0 { "(" } else { "),(" });
                for (place, column) in columns.iter().enumerate() {
                    scripts.text(if place == 0 { "" } else { "," });
                    scripts.value(row.find(&column.path));
                }
            }
            scripts.text(")");
            scripts.text(&tail);
        }
        Ok((kept.len(), names))
    }

    fn head(&self, table: &str, columns: &[Column]) -> String {
        let written: Vec<&str> = columns.iter().map(|column| column.written.as_str()).collect();
        format!("INSERT INTO {table} ({}) VALUES ", written.join(", "))
    }

    /// What becomes of a row whose key is in the table.
    fn tail(&self, columns: &[Column]) -> Result<String, Failure> {
        if self.mode != Mode::Upsert {
            return Ok(String::new());
        }
        if let Some(missing) = self.key.iter().find(|key| !columns.iter().any(|column| column.written == **key)) {
            let text = format!("`target.key` names {missing}, which is no column that is written");
            return Err(Failure::invalid_input(text));
        }
        let others = columns.iter().map(|column| &column.written).filter(|written| !self.key.contains(written));
        let set: Vec<String> = others.map(|column| format!("{column} = excluded.{column}")).collect();
        let action = if set.is_empty() { "NOTHING".to_owned() } else { format!("UPDATE SET {}", set.join(", ")) };
        Ok(format!(" ON CONFLICT ({}) DO {action}", self.key.join(", ")))
    }

    /// Of the rows with the same key the last, since one statement may not write a row twice. A null is like no other.
    fn last_of_each<'a>(&self, rows: &[&'a RawValue], columns: &[Column]) -> Vec<&'a RawValue> {
        let key: Vec<&str> = columns
            .iter()
            .filter(|column| self.key.contains(&column.written))
            .map(|column| column.path.as_str())
            .collect();
        let (mut seen, mut kept) = (HashSet::new(), Vec::new());
        for value in rows.iter().rev().copied() {
            let row = Row::of(value);
            let values: Vec<&'a str> = key.iter().map(|path| row.find(path).map_or("null", RawValue::get)).collect();
            if values.contains(&"null") || seen.insert(values) {
                kept.push(value);
            }
        }
        kept.reverse();
        kept
    }

    /// Runs the step's own statement for every row; answers with the names it can use.
    fn by_query(
        &self,
        query: &str,
        rows: &[&RawValue],
        exact: bool,
        scripts: &mut Scripts<'_>,
    ) -> Result<Vec<String>, Failure> {
        let mut columns = self.mapping.as_ref().map(|mapping| self.mapped(mapping)).unwrap_or_default();
        if rows.is_empty() {
            return Ok(columns.into_iter().map(|column| column.name).collect());
        }
        let mapped = columns.len();
        match self.own(rows, exact) {
            Ok(own) => columns.extend(own),
            // Rows that are no objects have values where a mapping says so.
            Err(failure) if mapped == 0 => return Err(failure),
            Err(_) => {}
        }
        let places = if mapped == 0 { columns.len() } else { mapped };
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let query = Query::read(query, self.dialect, &names, places)?;
        let (length, values) = query.size();
        for row in rows {
            let row = Row::of(row);
            scripts.begin(query.statements, length, values)?;
            for piece in &query.pieces {
                match piece {
                    Piece::Text(text) => scripts.text(text),
                    Piece::Value(column) => scripts.value(row.find(&columns[*column].path)),
                }
            }
        }
        Ok(columns.into_iter().map(|column| column.name).take(places).collect())
    }

    fn mapped(&self, mapping: &[(String, String)]) -> Vec<Column> {
        let column = |(name, path): &(String, String)| Column {
            name: name.clone(),
            written: self.dialect.column(name),
            path: path.clone(),
        };
        mapping.iter().map(column).collect()
    }

    /// The fields of all rows, in the order they are first met in.
    fn own(&self, rows: &[&RawValue], exact: bool) -> Result<Vec<Column>, Failure> {
        let (mut seen, mut columns) = (HashSet::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            let fields = rows::fields(row).ok_or_else(|| {
                Failure::new(
                    "invalid_data",
                    format_args!("row {} is no object: give a `mapping`, where `$` is the row itself", number + 1),
                )
            })?;
            for (name, _) in fields {
                if !seen.contains(&name) {
                    let written = if exact { quoted(&name) } else { self.dialect.column(&name) };
                    columns.push(Column { written, path: name.clone(), name: name.clone() });
                    seen.insert(name);
                }
            }
        }
        Ok(columns)
    }
}

/// A row whose fields are looked for once.
struct Row<'a> {
    value: &'a RawValue,
    fields: Vec<(String, &'a RawValue)>,
}

impl<'a> Row<'a> {
    fn of(value: &'a RawValue) -> Self {
        Self { value, fields: rows::fields(value).unwrap_or_default() }
    }

    fn find(&self, path: &str) -> Option<&'a RawValue> {
        rows::get(&self.fields, path).or_else(|| rows::find(self.value, path))
    }
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
