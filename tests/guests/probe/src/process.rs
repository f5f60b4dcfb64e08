//! Runs a program, which the operator of a test's server has not switched on, and answers with what was said of it.

use noetl_sdk::{Failure, process};

pub fn probe(_: &[u8]) -> Result<Vec<u8>, Failure> {
    let command = process::Command {
        program: "true".to_owned(),
        arguments: Vec::new(),
        folder: None,
        environment: Vec::new(),
        timeout_ms: None,
    };
    match process::run(&command) {
        Err(process::Error::Off(said)) => Ok(said.into_bytes()),
        other => Err(Failure::new("unexpected", format_args!("{:?}", other.err()))),
    }
}
