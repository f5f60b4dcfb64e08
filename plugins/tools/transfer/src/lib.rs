//! The tool `tools/transfer`: rows from a server or a database into a table.
//!
//! The glue between what a step asks for ([`options`]), where rows come from ([`source`], [`rows`]) and the statements that
//! take them ([`names`], [`query`], [`script`], [`target`]). All but [`source`] and the run of a script is pure.
//!
//! Invariants:
//! 1. A value is a parameter and never part of a statement. It is not read into a value of the tool's own, and a number keeps
//!    its digits unless it is inside of a map or a list.
//! 2. Nothing is written before all rows are here: a source that fails leaves the target as it was.
//! 3. What goes into one script is written altogether or not at all; the answer says how many scripts it took.

mod names;
mod options;
mod query;
mod rows;
mod script;
mod source;
mod target;

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log};
use serde_json::json;

use options::Step;
use target::Target;

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let Step { source, target } = Step::read(&request.arguments)?;
    let Target { database, work } = target;
    let (source_type, target_type) = (source.kind(), work.dialect.name());
    let found = source.read_all().map_err(|failure| failure.context("the source"))?;
    let rows = found.rows()?;
    let mut run = |text: String, values: String| {
        let script = database.clone().objects(false).parameters(values);
        script.run(text).map(drop).map_err(|error| Failure::from(error).context("the target"))
    };
    let done = work.write(&rows, found.exact, &mut run)?;
    log::debug!("done"; rows = done.rows, statements = done.statements, transactions = done.transactions);
    Response::json(&json!({
        "direction": format!("{source_type}_to_{target_type}"),
        "source_type": source_type,
        "target_type": target_type,
        "mode": work.mode.name(),
        "rows_read": rows.len(),
        "rows_transferred": done.rows,
        "columns": done.columns,
        "chunks": done.statements,
        "transactions": done.transactions,
    }))
}
