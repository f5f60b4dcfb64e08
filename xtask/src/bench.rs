//! `cargo xtask bench`: builds with optimisations and hands over to the crate `noetl-bench`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::{Project, must_run};
use crate::{build, setup};

/// The benches `noetl-bench` knows.
pub const NAMES: &[&str] = &["log", "host", "engine", "tools"];

/// Those of them that talk to what the suites talk to.
const LIKE_SUITES: &[&str] = &["tools"];

/// Where scripts that measure other engines are, beside the checkout. Without them nothing is compared with.
const PEERS: &str = "../shared/peers";

pub fn run(
    project: &Project,
    name: &str,
    json: Option<PathBuf>,
    finished: Option<u32>,
    only: Option<&str>,
) -> Result<()> {
    if LIKE_SUITES.contains(&name) {
        setup::for_tests()?;
    }
    let noetl = build::everything(project, true)?;
    let mut bench = Command::new(noetl.with_file_name("noetl-bench"));
    bench.arg(name);
    if let Some(file) = json {
        // Relative to where the user is, not to where the bench runs.
        bench.arg("--json").arg(std::path::absolute(&file).with_context(|| format!("use {}", file.display()))?);
    }
    if let Some(finished) = finished {
        bench.arg("--finished").arg(finished.to_string());
    }
    if let Some(only) = only {
        bench.arg("--only").arg(only);
    }
    let peers = project.root.join(PEERS);
    if peers.is_dir() {
        bench.env("NOETL_PEER_SCRIPTS", peers);
    }
    bench.env("NOETL_BIN", noetl).env("NOETL_GUESTS_DIR", project.guests());
    must_run(&mut bench)
}
