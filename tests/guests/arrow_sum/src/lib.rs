//! Reads an Arrow IPC stream and appends the doubled form of its first int64 column to every batch.
//!
//! The new column is called `<name>_doubled`; nulls stay nulls. A number that does not fit is the failure `overflow`.

use std::sync::Arc;

use noetl_sdk::arrow::array::cast::AsArray;
use noetl_sdk::arrow::array::types::Int64Type;
use noetl_sdk::arrow::array::{Int64Array, RecordBatch};
use noetl_sdk::arrow::schema::{DataType, Field, Schema, SchemaRef};
use noetl_sdk::{Failure, arrow};

noetl_sdk::transform!(run);

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let table = arrow::read(&input)?;
    drop(input);
    let fields = table.schema.fields();
    let at = fields
        .iter()
        .position(|field| field.data_type() == &DataType::Int64)
        .ok_or_else(|| Failure::invalid_input("the table has no int64 column"))?;
    let doubled = Field::new(format!("{}_doubled", fields[at].name()), DataType::Int64, fields[at].is_nullable());
    let schema: SchemaRef =
        Arc::new(Schema::new(fields.iter().cloned().chain([Arc::new(doubled)]).collect::<Vec<_>>()));
    let batches =
        table.batches.iter().map(|batch| extended(batch, at, &schema)).collect::<Result<Vec<_>, Failure>>()?;
    arrow::write(&schema, &batches)
}

fn extended(batch: &RecordBatch, at: usize, schema: &SchemaRef) -> Result<RecordBatch, Failure> {
    let numbers = batch.column(at).as_primitive::<Int64Type>();
    let doubled: Int64Array = numbers.try_unary(|number| {
        number.checked_mul(2).ok_or_else(|| Failure::new("overflow", format_args!("{number} cannot be doubled")))
    })?;
    let mut columns = batch.columns().to_vec();
    columns.push(Arc::new(doubled));
    Ok(RecordBatch::try_new(schema.clone(), columns)?)
}

#[cfg(test)]
mod tests {
    use noetl_sdk::arrow::array::{Array, ArrayRef};

    use super::*;

    fn stream(values: Vec<Option<i64>>) -> Vec<u8> {
        let column: ArrayRef = Arc::new(Int64Array::from(values));
        let batch = RecordBatch::try_from_iter_with_nullable([("n", column, true)]).expect("one column");
        arrow::write(&batch.schema(), &[batch]).expect("a stream")
    }

    #[test]
    fn the_first_number_column_is_doubled() {
        let table = arrow::read(&run(stream(vec![Some(1), None, Some(-4)])).expect("an answer")).expect("a table");
        assert_eq!(table.schema.field(1).name(), "n_doubled");
        let doubled = table.batches[0].column(1).as_primitive::<Int64Type>();
        assert_eq!((doubled.value(0), doubled.is_null(1), doubled.value(2)), (2, true, -8));
    }

    #[test]
    fn a_number_that_does_not_fit_is_a_failure() {
        assert_eq!(run(stream(vec![Some(i64::MAX)])).expect_err("too large").code, "overflow");
    }
}
