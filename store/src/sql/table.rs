//! Rows that are many, as an Arrow IPC stream in a payload.
//!
//! Truth values, whole numbers, floating point numbers and bytes are columns of those types. Everything else is text, the
//! same text that few rows would have shown: a number of any precision, a time, an array keep all they are. What the
//! database calls the type is in the column's metadata under `type`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::cells::{Buffer, Cell, Shape, write};
use super::{Column, SqlError};
use crate::payloads::{PayloadWriter, Payloads, SealedPayload};

pub(super) struct Table {
    schema: SchemaRef,
    shapes: Vec<Shape>,
    stream: StreamWriter<Vec<u8>>,
    file: PayloadWriter,
    most: u64,
}

fn broken(error: ArrowError) -> SqlError {
    SqlError::Store(format!("the table could not be written: {error}"))
}

impl Table {
    /// A table for these columns. What the database says nothing about is decided by the first rows.
    pub(super) async fn new(
        columns: &[(Column, Shape)],
        first: &Buffer,
        most: u64,
        payloads: &Payloads,
    ) -> Result<Self, SqlError> {
        let mut shapes: Vec<Shape> = columns.iter().map(|(_, shape)| *shape).collect();
        learn(&mut shapes, first);
        let field = |((column, _), shape): (&(Column, Shape), &Shape)| {
            let kind = match shape {
                Shape::Bool => DataType::Boolean,
                Shape::Int => DataType::Int64,
                Shape::Float => DataType::Float64,
                Shape::Bytes => DataType::Binary,
                Shape::Text | Shape::Unknown => DataType::Utf8,
            };
            let said: HashMap<_, _> = [("type".to_owned(), column.kind.clone())].into_iter().collect();
            Field::new(&column.name, kind, true).with_metadata(said)
        };
        let fields: Vec<Field> = columns.iter().zip(&shapes).map(field).collect();
        let schema = Arc::new(Schema::new(fields));
        let stream = StreamWriter::try_new(Vec::new(), &schema).map_err(broken)?;
        let file = payloads.writer().await.map_err(|error| SqlError::Store(error.to_string()))?;
        Ok(Self { schema, shapes, stream, file, most })
    }

    /// Adds whole rows.
    pub(super) async fn add(&mut self, rows: &Buffer) -> Result<(), SqlError> {
        if let Some(batch) = self.batch(rows)? {
            self.stream.write(&batch).map_err(broken)?;
        }
        self.write_out().await
    }

    pub(super) async fn finish(mut self) -> Result<SealedPayload, SqlError> {
        self.stream.finish().map_err(broken)?;
        self.write_out().await?;
        self.file.seal().await.map_err(|error| SqlError::Store(error.to_string()))
    }

    async fn write_out(&mut self) -> Result<(), SqlError> {
        let bytes = std::mem::take(self.stream.get_mut());
        let size = self.file.size() + bytes.len() as u64;
        if size > self.most {
            return Err(SqlError::TooLarge(size));
        }
        self.file.write(&bytes).await.map_err(|error| SqlError::Store(error.to_string()))
    }

    fn batch(&self, rows: &Buffer) -> Result<Option<RecordBatch>, SqlError> {
        let mut columns: Vec<Building> = self.shapes.iter().map(|shape| Building::new(*shape)).collect();
        let width = columns.len().max(1);
        for (number, cell) in rows.cells().enumerate() {
            let place = number % width;
            let Some(column) = columns.get_mut(place) else { break };
            column.append(&cell).map_err(|()| {
                let name = self.schema.field(place).name();
                SqlError::Invalid(format!(
                    "the column `{name}` has values of several types, which a large result cannot hold: cast it to one"
                ))
            })?;
        }
        let arrays: Vec<ArrayRef> = columns.into_iter().map(Building::finish).collect();
        if arrays.first().is_none_or(|first| first.is_empty()) {
            return Ok(None);
        }
        RecordBatch::try_new(self.schema.clone(), arrays).map(Some).map_err(broken)
    }
}

/// The types of columns the database does not name, from values that are there.
fn learn(shapes: &mut [Shape], rows: &Buffer) {
    if !shapes.contains(&Shape::Unknown) {
        return;
    }
    let mut seen = vec![Shape::Unknown; shapes.len()];
    for (number, cell) in rows.cells().enumerate() {
        let Some(seen) = seen.get_mut(number % shapes.len()) else { return };
        let this = match &cell {
            Cell::Null | Cell::Hidden(_) => continue,
            Cell::Bool(_) => Shape::Bool,
            Cell::Number(text) if text.parse::<i64>().is_ok() => Shape::Int,
            Cell::Number(_) => Shape::Float,
            Cell::Bytes(_) => Shape::Bytes,
            Cell::Text(_) | Cell::Json(_) => Shape::Text,
        };
        *seen = match (*seen, this) {
            (Shape::Unknown, this) => this,
            (before, this) if before == this => this,
            (Shape::Int, Shape::Float) | (Shape::Float, Shape::Int) => Shape::Float,
            _ => Shape::Text,
        };
    }
    for (shape, seen) in shapes.iter_mut().zip(seen) {
        if *shape == Shape::Unknown {
            *shape = seen;
        }
    }
}

enum Building {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Bytes(BinaryBuilder),
    Text(StringBuilder),
}

impl Building {
    fn new(shape: Shape) -> Self {
        match shape {
            Shape::Bool => Self::Bool(BooleanBuilder::new()),
            Shape::Int => Self::Int(Int64Builder::new()),
            Shape::Float => Self::Float(Float64Builder::new()),
            Shape::Bytes => Self::Bytes(BinaryBuilder::new()),
            Shape::Text | Shape::Unknown => Self::Text(StringBuilder::new()),
        }
    }

    /// Fails on a value of another type than the column's.
    fn append(&mut self, cell: &Cell<'_>) -> Result<(), ()> {
        match (self, cell) {
            (Self::Bool(column), Cell::Null) => column.append_null(),
            // A column of numbers has no place for what is left of one.
            (Self::Int(column), Cell::Null | Cell::Hidden(_)) => column.append_null(),
            (Self::Float(column), Cell::Null | Cell::Hidden(_)) => column.append_null(),
            (Self::Bytes(column), Cell::Null) => column.append_null(),
            (Self::Text(column), Cell::Null) => column.append_null(),
            (Self::Bool(column), Cell::Bool(value)) => column.append_value(*value),
            (Self::Int(column), Cell::Number(text)) => column.append_value(text.parse().map_err(drop)?),
            // Infinities and what is no number come as text.
            (Self::Float(column), Cell::Number(text) | Cell::Text(text)) => {
                column.append_value(text.parse().map_err(drop)?);
            }
            (Self::Bytes(column), Cell::Bytes(bytes)) => column.append_value(bytes),
            (Self::Text(column), Cell::Text(text) | Cell::Json(text) | Cell::Number(text) | Cell::Hidden(text)) => {
                column.append_value(text);
            }
            (Self::Text(column), other) => {
                let mut text = String::new();
                write(&mut text, other);
                column.append_value(text.trim_matches('"'));
            }
            _ => return Err(()),
        }
        Ok(())
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bool(mut column) => ArrayBuilder::finish(&mut column),
            Self::Int(mut column) => ArrayBuilder::finish(&mut column),
            Self::Float(mut column) => ArrayBuilder::finish(&mut column),
            Self::Bytes(mut column) => ArrayBuilder::finish(&mut column),
            Self::Text(mut column) => ArrayBuilder::finish(&mut column),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_ipc::reader::StreamReader;

    use super::super::cells::Collector;
    use super::super::{Bounds, Hidden, Hide, Rows};
    use super::*;

    async fn collected(shapes: &[Shape], rows: &[Vec<Cell<'static>>], bounds: Bounds) -> Result<Vec<u8>, SqlError> {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let columns = shapes
            .iter()
            .enumerate()
            .map(|(number, shape)| (Column { name: format!("c{number}"), kind: "k".to_owned() }, *shape))
            .collect();
        let mut collector = Collector::new(columns, true, bounds, &payloads);
        for row in rows {
            if collector.push(row.iter().cloned()) {
                collector.settle().await?;
            }
        }
        match collector.finish().await?.2 {
            Rows::Table(sealed) => Ok(sealed.read_range(0, sealed.size()).await.expect("readable").to_vec()),
            Rows::Json(text) => Ok(text.into_bytes()),
        }
    }

    const SMALL: Bounds = Bounds { inline: 64, most: 1 << 30 };

    #[tokio::test]
    async fn many_rows_are_a_stream_that_has_them_all() {
        let row = |n: i64| {
            let float = if n == 7 { Cell::Text("NaN".into()) } else { Cell::Number(format!("{n}.5").into()) };
            let numeric = Cell::Text(format!("{n}.00000000000000000000000001").into());
            vec![Cell::Number(n.to_string().into()), float, numeric, Cell::Null, Cell::Bytes(vec![n as u8].into())]
        };
        let rows: Vec<_> = (0..50_000).map(row).collect();
        let shapes = [Shape::Int, Shape::Float, Shape::Text, Shape::Bool, Shape::Bytes];
        let bytes = collected(&shapes, &rows, SMALL).await.expect("a table");
        let reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
        assert_eq!(reader.schema().field(2).metadata()["type"], "k");
        let mut next = 0;
        for batch in reader {
            let batch = batch.expect("whole");
            let (ints, floats) =
                (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Float64Type>());
            let texts = batch.column(2).as_string::<i32>();
            for place in 0..batch.num_rows() {
                assert_eq!(ints.value(place), next);
                assert!(if next == 7 {
                    floats.value(place).is_nan()
                } else {
                    floats.value(place) == next as f64 + 0.5
                });
                assert_eq!(texts.value(place), format!("{next}.00000000000000000000000001"));
                assert!(batch.column(3).is_null(place));
                next += 1;
            }
        }
        assert_eq!(next, 50_000);
    }

    #[tokio::test]
    async fn a_column_nobody_names_is_what_its_first_values_are() {
        let row = |cell: Cell<'static>| vec![cell, Cell::Text("x".repeat(40).into())];
        let number = |text: &'static str| Cell::Number(text.into());
        let mut rows = vec![row(Cell::Null), row(number("1")), row(number("2.5")), row(number("3"))];
        let shapes = [Shape::Unknown, Shape::Unknown];
        let bytes = collected(&shapes, &rows, Bounds { inline: 200, most: 1 << 30 }).await.expect("a table");
        let mut reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
        assert_eq!(reader.schema().field(0).data_type(), &DataType::Float64);
        let batch = reader.next().expect("a batch").expect("whole");
        assert!(batch.column(0).is_null(0) && batch.column(0).as_primitive::<Float64Type>().value(2) == 2.5);
        rows.push(row(Cell::Text("no number".into())));
        let refused = collected(&shapes, &rows, Bounds { inline: 150, most: 1 << 30 }).await.expect_err("mixed");
        assert!(matches!(refused, SqlError::Invalid(text) if text.contains("`c0`")));
    }

    /// Hides one word.
    struct Word(&'static str);

    impl Hide for Word {
        fn text(&self, text: &str) -> Option<String> {
            text.contains(self.0).then(|| text.replace(self.0, "?"))
        }

        fn json(&self, text: &str) -> Option<String> {
            self.text(text)
        }

        fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
            self.text(&String::from_utf8_lossy(bytes)).map(String::into_bytes)
        }
    }

    #[tokio::test]
    async fn what_is_hidden_is_in_no_cell_of_a_table_and_of_no_list() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let row = || {
            let bytes: &[u8] = b"a 1234 b";
            vec![Cell::Number("1234".into()), Cell::Text("a 1234".into()), Cell::Bytes(bytes.into()), Cell::Null]
        };
        let shapes = [Shape::Int, Shape::Text, Shape::Bytes, Shape::Text];
        let column =
            |(place, shape): (usize, &Shape)| (Column { name: format!("c1234-{place}"), kind: String::new() }, *shape);
        let hidden = Hidden::by(Arc::new(Word("1234")));
        for (bounds, rows) in [(SMALL, 200), (Bounds { inline: 1 << 20, most: 1 << 20 }, 1)] {
            let columns = shapes.iter().enumerate().map(column).collect();
            let mut collector = Collector::new(columns, true, bounds, &payloads).hiding(&hidden);
            for _ in 0..rows {
                if collector.push(row().into_iter()) {
                    collector.settle().await.expect("written");
                }
            }
            let (columns, count, rows) = collector.finish().await.expect("rows");
            assert_eq!(
                (columns[0].name.as_str(), count),
                ("c?-0", if matches!(rows, Rows::Table(_)) { 200 } else { 1 })
            );
            match rows {
                Rows::Json(text) => {
                    assert_eq!(text, r#"[{"c?-0":"?","c?-1":"a ?","c?-2":"YSA/IGI=","c?-3":null}]"#);
                }
                Rows::Table(sealed) => {
                    let bytes = sealed.read_range(0, sealed.size()).await.expect("readable");
                    assert!(!bytes.windows(4).any(|window| window == b"1234"));
                    let mut reader = StreamReader::try_new(&bytes[..], None).expect("a stream");
                    let batch = reader.next().expect("a batch").expect("whole");
                    assert!(batch.column(0).is_null(0), "a number that is hidden is no number");
                    assert_eq!(batch.column(1).as_string::<i32>().value(0), "a ?");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_table_beyond_its_bound_is_refused() {
        let rows: Vec<_> = (0..10_000).map(|_| vec![Cell::Text("x".repeat(1000).into())]).collect();
        let bounds = Bounds { inline: 64, most: 2 << 20 };
        let refused = collected(&[Shape::Text], &rows, bounds).await.expect_err("too large");
        assert!(matches!(refused, SqlError::TooLarge(size) if size > 2 << 20));
    }
}
