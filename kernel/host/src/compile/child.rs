//! The compiler process: one component in, one file of machine code out.
//!
//! It bounds itself before it reads a byte of the component. A bound that cannot be set is an error, not a
//! warning: running unbounded is the one thing this process exists to prevent.

use std::io::Write;
use std::path::Path;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine::{self, EngineKind};

/// Exit code for a component that does not compile, as opposed to a process that broke.
pub const REJECTED: i32 = 3;
const BROKEN: i32 = 4;

/// What the parent asks for.
#[derive(Debug)]
pub struct Job<'a> {
    pub engine: &'a str,
    pub input: &'a Path,
    pub output: &'a Path,
    pub memory_bytes: u64,
    pub cpu_seconds: u64,
}

/// Runs the job and gives the process's exit code.
pub fn main(job: &Job<'_>) -> i32 {
    match compile(job) {
        Ok(()) => 0,
        Err(Failure { code, message }) => {
            let _ = writeln!(std::io::stderr(), "{message}");
            code
        }
    }
}

struct Failure {
    code: i32,
    message: String,
}

fn broken(doing: &str, error: impl std::fmt::Display) -> Failure {
    Failure { code: BROKEN, message: format!("cannot {doing}: {error}") }
}

fn compile(job: &Job<'_>) -> Result<(), Failure> {
    bound(job)?;
    let kind = EngineKind::from_name(job.engine).ok_or_else(|| broken("choose an engine", job.engine))?;
    let bytes = std::fs::read(job.input).map_err(|error| broken("read the component", error))?;
    let engine = engine::compiler(kind).map_err(|error| broken("make an engine", error))?;
    let code = engine
        .precompile_component(&bytes)
        .map_err(|error| Failure { code: REJECTED, message: format!("{error:#}") })?;
    std::fs::write(job.output, code).map_err(|error| broken("write the machine code", error))
}

fn bound(job: &Job<'_>) -> Result<(), Failure> {
    let limit = |value| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Data, limit(job.memory_bytes)).map_err(|error| broken("bound memory", error))?;
    setrlimit(Resource::Cpu, limit(job.cpu_seconds)).map_err(|error| broken("bound processor time", error))?;
    setrlimit(Resource::Core, limit(0)).map_err(|error| broken("switch off core dumps", error))?;
    // Lower priority is a courtesy to calls that are being served; a system that refuses it still bounds us.
    let _ = rustix::process::nice(10);
    Ok(())
}
