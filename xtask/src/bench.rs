//! `cargo xtask bench`: builds with optimisations and hands over to the crate `noetl-bench`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::build;
use crate::project::{Project, must_run};

/// The benches `noetl-bench` knows.
pub const NAMES: &[&str] = &["log", "host"];

pub fn run(project: &Project, name: &str, json: Option<PathBuf>) -> Result<()> {
    let noetl = build::everything(project, true)?;
    let mut bench = Command::new(noetl.with_file_name("noetl-bench"));
    bench.arg(name);
    if let Some(file) = json {
        // Relative to where the user is, not to where the bench runs.
        bench.arg("--json").arg(std::path::absolute(&file).with_context(|| format!("use {}", file.display()))?);
    }
    bench.env("NOETL_BIN", noetl).env("NOETL_GUESTS_DIR", project.guests());
    must_run(&mut bench)
}
