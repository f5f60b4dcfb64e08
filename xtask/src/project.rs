//! Where things are, and Cargo as it is called for the native workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

pub struct Project {
    /// The folder of the native workspace.
    pub root: PathBuf,
    /// Cargo's target folder for it.
    pub target: PathBuf,
}

impl Project {
    pub fn find() -> Result<Project> {
        // As Cargo says at run time: checkouts that share a target folder can share this very program.
        let here = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
        let manifest = Path::new(&here).parent().context("xtask is a folder of the project")?.join("Cargo.toml");
        let metadata = MetadataCommand::new()
            .manifest_path(&manifest)
            .no_deps()
            .exec()
            .with_context(|| format!("read the workspace {}", manifest.display()))?;
        Ok(Project { root: metadata.workspace_root.into(), target: metadata.target_directory.into() })
    }

    /// The folder with the compiled guests.
    pub fn guests(&self) -> PathBuf {
        self.target.join("guests")
    }

    /// Where tests write rows of a table that is shown after their suite.
    pub fn report(&self) -> PathBuf {
        self.target.join("test-report.md")
    }

    /// The `noetl` binary of a profile.
    pub fn binary(&self, release: bool) -> PathBuf {
        let profile = if release { "release" } else { "debug" };
        self.target.join(profile).join(format!("noetl{}", env::consts::EXE_SUFFIX))
    }

    /// Cargo, in the project's folder. The folder of the guests is named in all calls alike: the binary's build script
    /// looks at it, and a call without it would compile the binary anew.
    pub fn cargo<I>(&self, arguments: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<std::ffi::OsStr>,
    {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root).args(arguments);
        command.env("CARGO_TARGET_DIR", &self.target).env("NOETL_GUESTS_DIR", self.guests());
        for name in env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
            if speaks_of_this_program(&name) {
                command.env_remove(name);
            }
        }
        command
    }
}

/// What the outer Cargo says of the program it runs. Build scripts of dependencies that watch such a variable would
/// be compiled again, with all that stands on them, whenever the checkout's path changes or Cargo is called by hand.
fn speaks_of_this_program(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// The command as a person would type it.
pub fn as_typed(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(|word| {
        let word = word.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word.into_owned() } else { format!("'{word}'") }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs with the terminal's streams; an error if it fails.
pub fn must_run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("start `{}`", as_typed(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", as_typed(command));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_are_quoted() {
        let mut command = Command::new("/some/where/noetl");
        command.args(["plugin", "call", "acme/demo/greet", "--input", "two words"]);
        assert_eq!(as_typed(&command), "noetl plugin call acme/demo/greet --input 'two words'");
    }
}
