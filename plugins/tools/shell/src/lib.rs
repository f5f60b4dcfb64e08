//! The tool `tools/shell`: glue between the world `tool`, the pure [`command`] and the host's processes.

mod command;

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log, process};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let exited = process::run(&command::Options::read(&request.arguments)?.command()?)?;
    log::debug!("ended"; code = format!("{:?}", exited.code));
    Response::json(&command::output(&exited))
}
