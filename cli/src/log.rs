//! `noetl log verify`: reads a server's whole log and checks every checksum and chain link.
//!
//! It takes the folder's lock, so it runs on the folder of a stopped server: a check of files that are being written
//! would report what is only unfinished. Opening the log repairs a torn tail, as the server itself would.

use clap::Subcommand;
use noetl_store::folder::{DataFolder, FolderError};
use noetl_store::log::Log as _;
use noetl_store::log::file::{FileLog, FileLogOptions, OpenError};
use serde_json::json;

use crate::args::Context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::size;

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check the whole log of the data folder; its server must be stopped.
    Verify,
}

pub fn run(command: &Command, context: &Context) -> Outcome {
    match command {
        Command::Verify => verify(context),
    }
}

fn verify(context: &Context) -> Outcome {
    let data = &context.target.data;
    if !data.join("log").is_dir() {
        return Err(Failure::new(Exit::NotFound, format!("there is no log in {}", data.display()))
            .next("name the data folder of a server with --data"));
    }
    let folder = DataFolder::open(data).map_err(|error| match error {
        FolderError::InUse { .. } => {
            Failure::new(Exit::Conflict, error.to_string()).next("stop the server, then verify")
        }
        FolderError::Io { .. } => Failure::failed(error.to_string()),
    })?;
    let log = FileLog::open(folder.log_dir(), FileLogOptions::default()).map_err(|error| match error {
        OpenError::Damaged { .. } => Failure::failed(error.to_string()).next("restore the file it names from a copy"),
        _ => Failure::failed(error.to_string()),
    })?;
    let found = log.verify().map_err(|error| Failure::failed(format!("the log cannot be read: {error}")))?;
    let value = json!({ "segments": found.segments, "streams": found.streams, "bytes": found.bytes,
                        "files": found.files, "problems": found.problems });
    if found.problems.is_empty() {
        context.output.result(&value, |paint| {
            format!(
                "{}: {} segments of {} streams in {} files, {}",
                paint.good("the log is whole"),
                found.segments,
                found.streams,
                found.files,
                size(found.bytes)
            )
        });
        return Ok(());
    }
    let mut failure = Failure::failed(format!("the log has problems:\n  {}", found.problems.join("\n  ")))
        .next("keep a copy of the folder before anything else");
    failure.problem = Some(Box::new(value));
    Err(failure)
}
