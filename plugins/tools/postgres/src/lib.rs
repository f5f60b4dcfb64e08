//! The tool `tools/postgres`: a script on the PostgreSQL server that a credential names.
//!
//! A call that ends before its answer has left nothing behind, unless it was told that the outcome is unknown.

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log};
use sql_common::{Options, answer, database};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let mut options = Options::read(&request.arguments)?;
    let database = database::postgres(&mut options)?;
    let (script, text) = options.plan("postgres")?.on(database)?;
    let outcomes = script.run(text)?;
    log::debug!("done"; statements = outcomes.len());
    answer(outcomes)
}
