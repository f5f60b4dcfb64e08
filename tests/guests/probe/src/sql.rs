//! Puts the input into a database in memory and answers with what is read back.

use noetl_sdk::Failure;
use noetl_sdk::sql::{self, Rows};

pub fn probe(input: &[u8]) -> Result<Vec<u8>, Failure> {
    let text = std::str::from_utf8(input)?.replace('\'', "''");
    let script = format!("CREATE TABLE t (v TEXT); INSERT INTO t VALUES ('{text}'); SELECT v FROM t");
    let outcomes = sql::memory().objects(false).run(script)?;
    match outcomes.into_iter().next_back().and_then(|outcome| outcome.rows) {
        Some(Rows::Json(rows)) => Ok(rows.into_bytes()),
        _ => Err(Failure::new("sql", "the last statement gave no rows")),
    }
}
