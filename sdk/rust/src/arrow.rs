//! Arrow IPC streams from and to bytes: the form in which tables travel through the platform.
//!
//! ```
//! use noetl_sdk::{Failure, arrow};
//!
//! fn keep_all(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
//!     let table = arrow::read(&input)?;
//!     arrow::write(&table.schema, &table.batches)
//! }
//! # assert!(keep_all(b"no stream".to_vec()).is_err());
//! ```
//!
//! Input that is not an Arrow IPC stream is the caller's fault (`invalid_input`). Compressed streams are not read.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema, SchemaRef};

use crate::Failure;

pub use {arrow_array as array, arrow_ipc as ipc, arrow_schema as schema};

/// The whole of a stream.
#[derive(Debug, Clone)]
pub struct Table {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

impl Table {
    pub fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::new("arrow", error)
    }
}

/// Read every batch of a stream.
pub fn read(bytes: &[u8]) -> Result<Table, Failure> {
    let reader = open(bytes)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<_, _>>().map_err(not_a_stream)?;
    Ok(Table { schema, batches })
}

/// Read a stream one batch at a time, so that only one is in memory beside the input.
pub fn open(bytes: &[u8]) -> Result<StreamReader<&[u8]>, Failure> {
    StreamReader::try_new(bytes, None).map_err(not_a_stream)
}

/// Write batches of one schema as a stream. No batch at all is a valid, empty table.
pub fn write(schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<u8>, Failure> {
    let size = batches.iter().map(RecordBatch::get_array_memory_size).sum();
    let mut writer = StreamWriter::try_new(Vec::with_capacity(size), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

fn not_a_stream(error: ArrowError) -> Failure {
    Failure::invalid_input(format_args!("the input is not an Arrow IPC stream: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn batch(values: &[i64]) -> RecordBatch {
        let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        RecordBatch::try_from_iter([("n", column)]).expect("one column")
    }

    #[test]
    fn batches_survive_the_stream() {
        let batches = vec![batch(&[1, 2]), batch(&[3])];
        let bytes = write(&batches[0].schema(), &batches).expect("a stream");
        let table = read(&bytes).expect("a table");
        assert_eq!((table.num_rows(), table.batches), (3, batches));
    }

    #[test]
    fn an_empty_table_keeps_its_schema() {
        let schema = batch(&[]).schema();
        let table = read(&write(&schema, &[]).expect("a stream")).expect("a table");
        assert_eq!((table.schema, table.batches.len()), (schema, 0));
    }

    #[test]
    fn a_torn_stream_is_the_callers_fault() {
        let whole = write(&batch(&[]).schema(), &[batch(&[1, 2, 3])]).expect("a stream");
        for end in [0, 3, whole.len() / 2] {
            assert_eq!(read(&whole[..end]).expect_err("torn").code, "invalid_input", "cut at {end}");
        }
    }
}
