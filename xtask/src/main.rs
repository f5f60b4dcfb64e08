//! The project's own commands: `cargo xtask <command>`.
//!
//! Every command makes what it needs first, so on a fresh machine each is the only one to be typed. What is done already is
//! checked and skipped, not repeated. Talk goes to stderr and results to stdout; the exit code is 0 only if all went well.

mod bench;
mod build;
mod check;
mod compat;
mod demo;
mod guests;
mod interpreters;
mod outcome;
mod project;
mod say;
mod setup;
mod suites;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use project::Project;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Build, try, test and measure noetl.", disable_version_flag = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Find what the other commands need on this machine, and install what is missing.
    Setup,
    /// Build the guest components and the `noetl` binary.
    Build {
        /// With optimisations, as for a release.
        #[arg(long)]
        release: bool,
    },
    /// Show it: start a server, push a plugin, change it live, override it, roll it back; run a playbook and ask why.
    Demo,
    /// Run the tests; without a suite, the checks and every suite.
    Test {
        /// One suite only.
        #[arg(value_parser = suites::names())]
        suite: Option<String>,
        /// Repeat the fault tests far more often.
        #[arg(long)]
        long: bool,
    },
    /// Throw mutated bytes at every edge; an input that breaks something is kept in `tests/fuzz/`.
    Fuzz {
        /// One target only.
        #[arg(value_parser = ["component", "manifest", "api", "values"])]
        target: Option<String>,
        /// How long each target runs.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Measure with optimisations, against a raw baseline of the same run.
    Bench {
        #[arg(value_parser = bench::NAMES.to_vec())]
        name: String,
        /// Write the rows to this file as well.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// For `engine`: executions that end before it looks whether they slow the next ones down.
        #[arg(long, value_name = "N")]
        finished: Option<u32>,
        /// For `engine`: measure this part alone.
        #[arg(long, value_name = "PART", value_parser = ["alone", "busy", "length", "parked", "history"])]
        only: Option<String>,
    },
    /// Run a folder of playbooks on a private server with Postgres, NATS and an HTTP server, and check what came of each.
    Compat(compat::Arguments),
    /// Formatting, lints, file sizes and the frozen contract.
    Check,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command; false means that it ran and found something wrong, which it has told.
fn run(command: Command) -> Result<bool> {
    let project = Project::find()?;
    match command {
        Command::Setup => setup::run().map(|_| true),
        Command::Build { release } => {
            let binary = build::everything(&project, release)?;
            say::done(&format!("built {}", binary.display()));
            Ok(true)
        }
        Command::Demo => demo::run(&project).map(|()| true),
        Command::Test { suite, long } => suites::run(&project, suite.as_deref(), long),
        Command::Bench { name, json, finished, only } => {
            bench::run(&project, &name, json, finished, only.as_deref()).map(|()| true)
        }
        Command::Fuzz { target, seconds } => suites::fuzz(&project, target.as_deref(), seconds),
        Command::Compat(arguments) => compat::run(&project, &arguments),
        Command::Check => check::run(&project),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
