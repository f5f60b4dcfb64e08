//! The tool `tools/sqlite`: a script on a database of the operator's folder, or on one in memory.
//!
//! `database` is the name of one; without it the script has an empty database that is gone with it.

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log, sql};
use sql_common::{Options, answer};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let mut options = Options::read(&request.arguments)?;
    let database = match options.take_text("database")?.as_deref() {
        None | Some(":memory:") => sql::memory(),
        Some(name) => sql::file(name),
    };
    let (script, text) = options.plan("sqlite")?.on(database)?;
    let outcomes = script.run(text)?;
    log::debug!("done"; statements = outcomes.len());
    answer(outcomes)
}
