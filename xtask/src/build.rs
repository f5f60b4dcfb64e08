//! `cargo xtask build`: the guests, then the binary that embeds them.

use std::path::PathBuf;

use anyhow::Result;

use crate::project::{Project, must_run};
use crate::setup;
use crate::{guests, interpreters};

/// Everything that has to be there before the native workspace compiles.
pub fn guests(project: &Project) -> Result<()> {
    setup::quietly()?;
    guests::build_all(project)?;
    interpreters::build_all(project)
}

/// Guests and binary; answers with the binary's path.
pub fn everything(project: &Project, release: bool) -> Result<PathBuf> {
    guests(project)?;
    let mut cargo = project.cargo(["build", "--package", "noetl"]);
    if release {
        // Only measurements ask for this; one command for all makes one build of what they share.
        cargo.args(["--package", "noetl-bench", "--package", "noetl-tests", "--release"]);
    }
    must_run(&mut cargo)?;
    Ok(project.binary(release))
}
