//! `cargo xtask bench`: builds with optimisations and hands over to the crate `noetl-bench`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::build;
use crate::project::{Project, must_run};

struct Bench {
    name: &'static str,
    /// Whether it measures the `noetl` binary, which takes long to compile.
    binary: bool,
}

const BENCHES: &[Bench] = &[Bench { name: "log", binary: false }, Bench { name: "host", binary: true }];

pub fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|bench| bench.name).collect()
}

pub fn run(project: &Project, name: &str, json: Option<PathBuf>) -> Result<()> {
    if BENCHES.iter().any(|bench| bench.name == name && bench.binary) {
        build::everything(project, true)?;
    } else {
        build::guests(project)?;
    }
    let mut cargo = project.cargo(["run", "--release", "--quiet", "--package", "noetl-bench", "--", name]);
    if let Some(file) = json {
        // Relative to where the user is, not to where Cargo runs.
        cargo.arg("--json").arg(std::path::absolute(&file).with_context(|| format!("use {}", file.display()))?);
    }
    cargo.env("NOETL_BIN", project.binary(true));
    must_run(&mut cargo)
}
