//! Measurements against a raw baseline of the same run: `cargo xtask bench NAME`.
//!
//! A bench is a function that answers with rows; it stands in [`BENCHES`]. Machines are noisy, so whatever can be compared
//! is measured alternately with its baseline, and the ratio is what counts. Thresholds live here and never in tests.

mod bare;
mod engine;
mod extism;
mod host;
mod languages;
mod log;
mod rows;
mod server;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser};
use engine::Part;

use rows::Rows;

/// A bench and its name on the command line.
type Bench = (&'static str, fn(Options) -> Result<Rows>);

const BENCHES: &[Bench] =
    &[("log", |_| log::run()), ("host", |_| host::run()), ("engine", engine::run), ("tools", |_| tools::run())];

#[derive(Clone, Copy, Args)]
pub struct Options {
    /// Executions that `engine` lets end before it looks whether they slow the next ones down.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    finished: u32,
    /// Measure this part of `engine` alone.
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Parser)]
#[command(about = "Measure noetl.", disable_version_flag = true)]
struct Cli {
    #[arg(value_parser = BENCHES.iter().map(|(name, _)| *name).collect::<Vec<_>>())]
    name: String,
    /// Write the rows to this file as well.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True if every floor was reached.
fn run(cli: &Cli) -> Result<bool> {
    if cfg!(debug_assertions) {
        eprintln!("this is a build without optimisations: its numbers mean nothing, use `cargo xtask bench`");
    }
    let (_, bench) = BENCHES.iter().find(|(name, _)| *name == cli.name).context("clap lets only known names pass")?;
    let rows = bench(cli.options)?;
    println!("{}", rows.table());
    if let Some(file) = &cli.json {
        std::fs::write(file, rows.json()?).with_context(|| format!("write {}", file.display()))?;
    }
    let missed = rows.below_floor();
    for name in &missed {
        eprintln!("below its floor: {name}");
    }
    Ok(missed.is_empty())
}
