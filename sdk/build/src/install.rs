//! Installing a guest toolchain, for a machine that has none; and other packages of Debian that tests ask for.
//!
//! First `rustup target add`, which is what most people have; where it cannot reach its servers it is given up after a
//! limited time. Then Debian's packages. Each step is announced before it starts. Running it twice does no harm: what is
//! there is left as it is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{answer, run_limited};
use crate::toolchain::{TARGETS, Toolchain, ToolchainError};

/// What the from-source route needs on Debian.
pub(crate) const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "wasi-libc"];

/// Needed only where the ordinary toolchain brings no linker of its own.
const LINKER_PACKAGE: &str = "lld-19";

const RUSTUP_LIMIT: Duration = Duration::from_secs(180);
const APT_LIMIT: Duration = Duration::from_secs(900);

#[derive(Debug, thiserror::Error)]
#[error("the guest toolchain could not be installed\n{}\n{missing}", .tried.join("\n"))]
pub struct InstallError {
    /// One entry for each attempt: the command and the end of what it said.
    pub tried: Vec<String>,
    pub missing: ToolchainError,
}

/// Finds the toolchain, installing what is missing. `progress` gets one line before each step.
pub fn install(progress: &mut dyn FnMut(&str)) -> Result<Toolchain, InstallError> {
    let mut missing = match Toolchain::find() {
        Ok(found) => return Ok(found),
        Err(missing) => missing,
    };
    let mut tried = Vec::new();
    for attempt in [with_rustup, with_apt] {
        attempt(progress, &mut tried);
        match Toolchain::find() {
            Ok(found) => return Ok(found),
            Err(still) => missing = still,
        }
    }
    Err(InstallError { tried, missing })
}

/// Installs packages of Debian; the error has the command and the end of what it said.
pub fn install_packages(packages: &[&str], progress: &mut dyn FnMut(&str)) -> Result<(), String> {
    let mut tried = Vec::new();
    if apt_install(packages, progress, &mut tried) { Ok(()) } else { Err(tried.join("\n")) }
}

fn with_rustup(progress: &mut dyn FnMut(&str), tried: &mut Vec<String>) {
    if answer(Path::new("rustup"), &["--version"]).is_none() {
        tried.push("rustup: not on this machine".to_owned());
        return;
    }
    let mut command = Command::new("rustup");
    command.args(["target", "add"]).args(TARGETS.map(|target| target.name())).env("RUSTUP_MAX_RETRIES", "1");
    run(command, RUSTUP_LIMIT, progress, tried);
}

fn with_apt(progress: &mut dyn FnMut(&str), tried: &mut Vec<String>) {
    if apt_install(&PACKAGES, progress, tried) && Toolchain::find().is_err() {
        apt_install(&[LINKER_PACKAGE], progress, tried);
    }
}

fn apt_install(packages: &[&str], progress: &mut dyn FnMut(&str), tried: &mut Vec<String>) -> bool {
    if answer(Path::new("apt-get"), &["--version"]).is_none() {
        tried.push("apt-get: not on this machine".to_owned());
        return false;
    }
    let root = answer(Path::new("id"), &["-u"]).as_deref() == Some("0");
    if !root && answer(Path::new("sudo"), &["-n", "true"]).is_none() {
        tried.push("apt-get: needs root, and `sudo` asks for a password".to_owned());
        return false;
    }
    run(apt(root, &["update"]), APT_LIMIT, progress, tried);
    let mut arguments = vec!["install", "-y", "--no-install-recommends"];
    arguments.extend(packages);
    run(apt(root, &arguments), APT_LIMIT, progress, tried)
}

fn apt(root: bool, arguments: &[&str]) -> Command {
    let mut command = if root {
        Command::new("apt-get")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "apt-get"]);
        sudo
    };
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Runs one step; what went wrong is added to `tried`.
fn run(mut command: Command, limit: Duration, progress: &mut dyn FnMut(&str), tried: &mut Vec<String>) -> bool {
    let line = std::iter::once(command.get_program()).chain(command.get_args()).map(|word| word.to_string_lossy());
    let line = line.collect::<Vec<_>>().join(" ");
    progress(&line);
    let (success, output) = match run_limited(&mut command, limit) {
        Ok(ended) => (ended.success, ended.output),
        Err(error) => (false, error.to_string()),
    };
    if !success {
        let lines: Vec<_> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = lines[lines.len().saturating_sub(5)..].join("\n  ");
        tried.push(format!("`{line}` failed:\n  {end}"));
    }
    success
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_is_announced_and_its_last_words_are_kept() {
        let (mut said, mut tried) = (Vec::new(), Vec::new());
        let mut command = Command::new("sh");
        command.args(["-c", "for i in 1 2 3 4 5 6 7; do echo word $i; done; exit 1"]);
        assert!(!run(command, Duration::from_secs(60), &mut |line| said.push(line.to_owned()), &mut tried));
        assert_eq!(said.len(), 1);
        assert!(tried[0].contains("word 7") && !tried[0].contains("word 2"), "{}", tried[0]);
    }
}
