//! `cargo xtask compat`: builds, and hands over to `noetl-compat` of the tests.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::project::{Project, as_typed};
use crate::{build, setup};

/// The suite's playbooks, where they are beside the checkout.
const FOLDER: &str = "../shared/fixtures/noetl-e2e";

#[derive(Args)]
pub struct Arguments {
    /// The folder; `../shared/fixtures/noetl-e2e` if left out.
    folder: Option<PathBuf>,
    /// Only playbooks whose file or path has this in it.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Facilities of the patient benchmark.
    #[arg(long, value_name = "N")]
    facilities: Option<u64>,
    /// Patients of each facility.
    #[arg(long, value_name = "N")]
    patients: Option<u64>,
    /// Leave the servers running afterwards, and say where they are.
    #[arg(long)]
    keep: bool,
    /// Write what came of each to this file as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The patient benchmark alone, with optimisations: facilities and patients of each, such as `10x1000`.
    #[arg(long, value_name = "FxP")]
    pft: Option<String>,
}

pub fn run(project: &Project, arguments: &Arguments) -> Result<bool> {
    let folder = match &arguments.folder {
        Some(folder) => std::path::absolute(folder).with_context(|| format!("use {}", folder.display()))?,
        None => project.root.join(FOLDER),
    };
    if !folder.is_dir() {
        bail!("{} is not there; name the folder of playbooks to run", folder.display());
    }
    setup::for_tests()?;
    let release = arguments.pft.is_some();
    let noetl = build::everything(project, release)?;
    let mut command = if release {
        Command::new(noetl.with_file_name("noetl-compat"))
    } else {
        project.cargo(["run", "--quiet", "--package", "noetl-tests", "--bin", "noetl-compat", "--"])
    };
    command.arg(folder).env("NOETL_BIN", noetl);
    for (flag, value) in [("--only", &arguments.only), ("--pft", &arguments.pft)] {
        command.args(value.iter().flat_map(|value| [flag, value.as_str()]));
    }
    for (flag, value) in [("--facilities", arguments.facilities), ("--patients", arguments.patients)] {
        command.args(value.iter().flat_map(|value| [flag.to_owned(), value.to_string()]));
    }
    if arguments.keep {
        command.arg("--keep");
    }
    if let Some(file) = &arguments.report {
        // Relative to where the user is, not to where the run is.
        command.arg("--report").arg(std::path::absolute(file).with_context(|| format!("use {}", file.display()))?);
    }
    let status = command.status().with_context(|| format!("start `{}`", as_typed(&command)))?;
    Ok(status.success())
}
