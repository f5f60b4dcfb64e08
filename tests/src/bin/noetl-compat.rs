//! Runs a folder of playbooks and prints what came of them; `cargo xtask compat` builds what it needs and calls it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use noetl_tests::compat::{self, Options};

/// The patient benchmark's playbook, below the folder.
const PFT: &str = "pft_flow_test/test_pft_flow.yaml";
const FLOOR_SECS: f64 = 54.0;
const GOAL_SECS: f64 = 5.0;

#[derive(Parser)]
#[command(name = "noetl-compat", about = "Run a folder of playbooks against a private server.")]
struct Arguments {
    folder: PathBuf,
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    #[arg(long, value_name = "N")]
    facilities: Option<u64>,
    #[arg(long, value_name = "N")]
    patients: Option<u64>,
    #[arg(long)]
    keep: bool,
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The patient benchmark alone: facilities and patients of each.
    #[arg(long, value_name = "FxP")]
    pft: Option<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<bool, String> {
    let Arguments { folder, only, facilities, patients, keep, report: file, pft } = arguments;
    let options = Options { folder, only, facilities, patients, keep };
    if let Some(size) = pft {
        let numbers = size.split_once('x').and_then(|(f, p)| Some((f.trim().parse().ok()?, p.trim().parse().ok()?)));
        let (facilities, patients) = numbers.ok_or_else(|| format!("`{size}` is not like 10x1000"))?;
        return benchmark(&options, facilities, patients).await;
    }
    let report = compat::run(&options).await?;
    println!("{report}");
    if let Some(file) = file {
        let text = format!("{:#}\n", report.json());
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(report.passed())
}

/// Every row is counted; the time is that of the playbook, from its start to its last event.
async fn benchmark(options: &Options, facilities: u64, patients: u64) -> Result<bool, String> {
    let started = Instant::now();
    let ran = compat::pft::run(&options.folder, PFT, facilities, patients).await?;
    println!("| table | rows | expected |\n|---|---|---|");
    for count in &ran.counts {
        let found = count.found.as_ref().map_or_else(Clone::clone, u64::to_string);
        println!("| {} | {found} | {} |", count.table, count.wanted);
    }
    let seconds = ran.took.as_secs_f64();
    println!("{facilities} x {patients} patients: {} in {seconds:.2} s", ran.status);
    if facilities * patients == 10_000 {
        println!(
            "floor {FLOOR_SECS:.0} s: {}, goal {GOAL_SECS:.0} s: {}",
            mark(seconds, FLOOR_SECS),
            mark(seconds, GOAL_SECS)
        );
    }
    eprintln!("with its servers: {:.1} s", started.elapsed().as_secs_f64());
    for problem in &ran.problems {
        eprintln!("{problem}");
    }
    Ok(ran.problems.is_empty())
}

fn mark(seconds: f64, limit: f64) -> &'static str {
    if seconds <= limit { "met" } else { "missed" }
}
