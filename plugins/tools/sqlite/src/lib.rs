//! The tool `tools/sqlite`: a script on a database of the operator's folder, or on one in memory.

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log};
use sql_common::{Options, answer, database};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let mut options = Options::read(&request.arguments)?;
    let database = database::sqlite(&mut options)?;
    let (script, text) = options.plan("sqlite")?.on(database)?;
    let outcomes = script.run(text)?;
    log::debug!("done"; statements = outcomes.len());
    answer(outcomes)
}
