//! The compiler process: one component in, and out of it one file of machine code or what can be read of it.
//!
//! It bounds itself before it reads a byte of the component. A bound that cannot be set is an error, not a
//! warning: running unbounded is the one thing this process exists to prevent.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use noetl_contract::inspect;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::engine::{self, EngineKind};

/// Exit code for a component that does not compile, as opposed to a process that broke.
pub const REJECTED: i32 = 3;
const BROKEN: i32 = 4;

/// What the parent asks for.
#[derive(Debug)]
pub struct Job<'a> {
    /// As [`Task::name`] has it.
    pub task: &'a str,
    pub input: &'a Path,
    pub output: &'a Path,
    pub memory_bytes: u64,
    pub cpu_seconds: u64,
}

/// What is done with the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// An [`Inspection`](inspect::Inspection) as JSON.
    Inspect,
    Compile(EngineKind),
}

impl Task {
    const ALL: [Task; 3] = [Task::Inspect, Task::Compile(EngineKind::Guest), Task::Compile(EngineKind::Pure)];

    pub fn name(self) -> &'static str {
        match self {
            Task::Inspect => "inspect",
            Task::Compile(kind) => kind.name(),
        }
    }
}

/// Differences to the contract that are worth telling; ten thousand of them help nobody.
const MOST_DIFFERENCES: usize = 50;

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
    let task = Task::ALL.into_iter().find(|task| task.name() == job.task);
    let bytes = std::fs::read(job.input).map_err(|error| broken("read the component", error))?;
    let made = match task.ok_or_else(|| broken("choose a task", job.task))? {
        Task::Inspect => inspected(&bytes)?,
        Task::Compile(kind) => {
            let engine = engine::compiler(kind).map_err(|error| broken("make an engine", error))?;
            engine.precompile_component(&bytes).map_err(|error| rejected(format!("{error:#}")))?
        }
    };
    std::fs::write(job.output, made).map_err(|error| broken("write what was made", error))
}

fn rejected(message: String) -> Failure {
    Failure { code: REJECTED, message }
}

fn inspected(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut found = inspect::inspect(bytes).map_err(|error| rejected(error.to_string()))?;
    let more = found.skew.len().saturating_sub(MOST_DIFFERENCES);
    if more > 0 {
        found.skew.truncate(MOST_DIFFERENCES);
        found.skew.push(format!("and {more} more differences"));
    }
    serde_json::to_vec(&found).map_err(|error| broken("write down what it is", error))
}

fn bound(job: &Job<'_>) -> Result<(), Failure> {
    let limit = |value| Rlimit { current: Some(value), maximum: Some(value) };
    setrlimit(Resource::Data, limit(job.memory_bytes)).map_err(|error| broken("bound memory", error))?;
    setrlimit(Resource::Cpu, limit(job.cpu_seconds)).map_err(|error| broken("bound processor time", error))?;
    setrlimit(Resource::Core, limit(0)).map_err(|error| broken("switch off core dumps", error))?;
    // Lower priority is a courtesy to calls that are being served; a system that refuses it still bounds us.
    let _ = rustix::process::nice(10);
    die_with_parent();
    Ok(())
}

/// What a server that was killed had asked for is of no use to anybody, and would take the next server's processor. (The
/// system's own signal for this follows the thread that started the process, and threads end before servers do.)
fn die_with_parent() {
    let parent = rustix::process::getppid();
    std::thread::spawn(move || {
        while rustix::process::getppid() == parent {
            std::thread::sleep(Duration::from_millis(200));
        }
        std::process::exit(BROKEN);
    });
}
