//! Rows on their way from a database to whoever asked: few as JSON, many as a table.
//!
//! Values are kept in one buffer until it is known which it will be; a value that is only passed on is never an object of
//! its own. The buffer never grows beyond the bound and one row.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::table::Table;
use super::{Bounds, Column, Hidden, Rows, SqlError};
use crate::payloads::Payloads;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Bool(bool),
    /// A number as JSON writes it.
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    /// JSON already.
    Json(Cow<'a, str>),
    /// Shown as base64.
    Bytes(Cow<'a, [u8]>),
    /// What is left of a number that must not be shown: a text.
    Hidden(Cow<'a, str>),
}

/// What a column of a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Bool,
    Int,
    Float,
    Bytes,
    Text,
    /// To be seen from the values: the database does not say.
    Unknown,
}

/// What comes before a value in the buffer; from `NUMBER` on there is a length and there are bytes.
const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const TEXT: u8 = 4;
const JSON: u8 = 5;
const BYTES: u8 = 6;
const HIDDEN: u8 = 7;

/// Values one after the other.
#[derive(Default)]
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, cell: &Cell<'_>) {
        let (tag, bytes): (u8, &[u8]) = match cell {
            Cell::Null => (NULL, &[]),
            Cell::Bool(false) => (FALSE, &[]),
            Cell::Bool(true) => (TRUE, &[]),
            Cell::Number(text) => (NUMBER, text.as_bytes()),
            Cell::Text(text) => (TEXT, text.as_bytes()),
            Cell::Json(text) => (JSON, text.as_bytes()),
            Cell::Bytes(bytes) => (BYTES, bytes),
            Cell::Hidden(text) => (HIDDEN, text.as_bytes()),
        };
        self.0.push(tag);
        if tag >= NUMBER {
            // Nothing a database sends in one value is as long as this counts.
            self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            self.0.extend_from_slice(bytes);
        }
    }

    /// All values, in order.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (tag, after) = rest.split_first()?;
            rest = after;
            if *tag < NUMBER {
                return Some(if *tag == NULL { Cell::Null } else { Cell::Bool(*tag == TRUE) });
            }
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            // What was pushed as text is text.
            let text = || String::from_utf8_lossy(bytes);
            Some(match *tag {
                NUMBER => Cell::Number(text()),
                TEXT => Cell::Text(text()),
                JSON => Cell::Json(text()),
                HIDDEN => Cell::Hidden(text()),
                _ => Cell::Bytes(bytes.into()),
            })
        })
    }
}

/// Takes the rows of one statement.
pub(super) struct Collector {
    columns: Vec<(Column, Shape)>,
    objects: bool,
    bounds: Bounds,
    hidden: Hidden,
    payloads: Payloads,
    buffer: Buffer,
    /// What the rows in the buffer are as JSON, about.
    weight: u64,
    count: u64,
    table: Option<Table>,
}

/// A table is written in pieces of about this size.
const PIECE: usize = 1 << 20;

impl Collector {
    pub(super) fn new(columns: Vec<(Column, Shape)>, objects: bool, bounds: Bounds, payloads: &Payloads) -> Self {
        let (payloads, hidden, buffer) = (payloads.clone(), Hidden::default(), Buffer::default());
        Self { columns, objects, bounds, hidden, payloads, buffer, weight: 0, count: 0, table: None }
    }

    /// The same, without what is hidden in the rows it takes and the names it has.
    pub(super) fn hiding(mut self, hidden: &Hidden) -> Self {
        self.hidden = hidden.clone();
        for (column, _) in &mut self.columns {
            column.name = hidden.name(std::mem::take(&mut column.name));
        }
        self
    }

    /// Adds a row; whoever does calls [`Collector::settle`] when it is asked for.
    #[must_use = "a buffer that is full is written"]
    pub(super) fn push<'c>(&mut self, row: impl Iterator<Item = Cell<'c>>) -> bool {
        let before = self.buffer.len();
        row.for_each(|cell| self.buffer.push(&self.hidden.cell(cell)));
        let names = self.columns.iter().map(|(column, _)| column.name.len() + 4).sum::<usize>();
        self.weight += (self.buffer.len() - before + if self.objects { names } else { 2 }) as u64;
        self.count += 1;
        if self.table.is_some() { self.buffer.len() > PIECE } else { self.weight > self.bounds.inline }
    }

    /// Moves what is there into the table.
    pub(super) async fn settle(&mut self) -> Result<(), SqlError> {
        if self.table.is_none() {
            self.table = Some(Table::new(&self.columns, &self.buffer, self.bounds.most, &self.payloads).await?);
        }
        if let Some(table) = &mut self.table {
            table.add(&self.buffer).await?;
        }
        self.buffer.clear();
        Ok(())
    }

    pub(super) async fn finish(mut self) -> Result<(Vec<Column>, u64, Rows), SqlError> {
        let rows = match self.table.take() {
            Some(mut table) => {
                table.add(&self.buffer).await?;
                Rows::Table(table.finish().await?)
            }
            None => Rows::Json(self.json()),
        };
        Ok((self.columns.into_iter().map(|(column, _)| column).collect(), self.count, rows))
    }

    fn json(&self) -> String {
        let names: Vec<Option<String>> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, (column, _))| {
                // Of columns with one name an object has the last.
                let again = self.columns[place + 1..].iter().any(|(other, _)| other.name == column.name);
                (!again).then(|| quoted(&column.name))
            })
            .collect();
        let mut out = String::with_capacity(self.buffer.len() + 64);
        out.push('[');
        let mut cells = self.buffer.cells();
        for row in 0..self.count {
            out.push_str(if row > 0 { "," } else { "" });
            out.push(if self.objects { '{' } else { '[' });
            let mut first = true;
            for name in &names {
                let cell = cells.next().unwrap_or(Cell::Null);
                if self.objects && name.is_none() {
                    continue;
                }
                if !first {
                    out.push(',');
                }
                first = false;
                if let Some(name) = name.as_ref().filter(|_| self.objects) {
                    out.push_str(name);
                    out.push(':');
                }
                write(&mut out, &cell);
            }
            out.push(if self.objects { '}' } else { ']' });
        }
        out.push(']');
        out
    }
}

/// A value as JSON.
pub(super) fn write(out: &mut String, cell: &Cell<'_>) {
    match cell {
        Cell::Null => out.push_str("null"),
        Cell::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Cell::Number(text) | Cell::Json(text) => out.push_str(text),
        Cell::Text(text) | Cell::Hidden(text) => out.push_str(&quoted(text)),
        Cell::Bytes(bytes) => {
            out.push('"');
            STANDARD.encode_string(bytes, out);
            out.push('"');
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, shape: Shape) -> (Column, Shape) {
        (Column { name: name.to_owned(), kind: String::new() }, shape)
    }

    fn collector(folder: &tempfile::TempDir, columns: &[&str], objects: bool) -> Collector {
        let columns = columns.iter().map(|name| column(name, Shape::Text)).collect();
        let payloads = Payloads::open(folder.path()).expect("a store");
        Collector::new(columns, objects, Bounds { inline: 1 << 20, most: 1 << 30 }, &payloads)
    }

    fn cells() -> Vec<Cell<'static>> {
        vec![
            Cell::Null,
            Cell::Bool(true),
            Cell::Number("-1e+300".into()),
            Cell::Text("a \"quote\" \u{1F600}\u{0}".into()),
            Cell::Json("{\"a\": [null]}".into()),
            Cell::Bytes(vec![0, 255].into()),
            Cell::Text("".into()),
        ]
    }

    #[test]
    fn a_buffer_gives_back_what_was_put_into_it() {
        let mut buffer = Buffer::default();
        cells().iter().for_each(|cell| buffer.push(cell));
        assert_eq!(buffer.cells().collect::<Vec<_>>(), cells());
    }

    #[tokio::test]
    async fn rows_are_json_of_the_wanted_form() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let mut lists = collector(&folder, &names, false);
        assert!(!lists.push(cells().into_iter()));
        let (_, count, rows) = lists.finish().await.expect("rows");
        let Rows::Json(text) = rows else { panic!("few rows are inline") };
        let parsed: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let expected =
            serde_json::json!([[null, true, -1e300, "a \"quote\" \u{1F600}\u{0}", {"a": [null]}, "AP8=", ""]]);
        assert_eq!((count, parsed), (1, expected));
    }

    #[tokio::test]
    async fn an_object_has_the_last_of_columns_with_one_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut objects = collector(&folder, &["id", "n", "id"], true);
        let row = ["1", "2", "3"].map(|text| Cell::Number(text.into()));
        assert!(!objects.push(row.into_iter()));
        let (columns, _, rows) = objects.finish().await.expect("rows");
        assert_eq!(columns.len(), 3);
        assert!(matches!(rows, Rows::Json(text) if text == r#"[{"n":2,"id":3}]"#));
    }
}
