//! `cargo xtask check`: what a reviewer should not have to look for.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use noetl_contract::Digest;
use walkdir::WalkDir;

use crate::project::{Project, as_typed};
use crate::{build, say};

/// A file of more lines has more than one idea in it.
const MOST_LINES: usize = 600;
const LARGEST_SHOWN: usize = 10;

/// Runs every check, also after one has failed; true if all passed.
pub fn run(project: &Project) -> Result<bool> {
    // The lints compile the binary, and that embeds the guests.
    build::guests(project)?;
    let mut passed = true;
    let mut commands = vec![
        project.cargo(["fmt", "--all", "--check"]),
        project.cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ];
    for workspace in ["plugins/Cargo.toml", "tests/guests/Cargo.toml"] {
        if project.root.join(workspace).is_file() {
            commands.push(project.cargo(["fmt", "--all", "--check", "--manifest-path", workspace]));
        }
    }
    for mut command in commands {
        let typed = as_typed(&command);
        eprintln!("$ {typed}");
        let status = command.status().with_context(|| format!("start `{typed}`"))?;
        passed &= report(&typed, if status.success() { Ok(()) } else { Err(format!("ended with {status}")) });
    }
    let sizes = line_counts(&project.root)?;
    for (file, lines) in sizes.iter().take(LARGEST_SHOWN) {
        eprintln!("{lines:>6} lines  {}", file.display());
    }
    passed &= report("file sizes", too_long(&sizes));
    passed &= report("frozen contract", lock_holds(&project.root.join("wit")).map_err(|error| format!("{error:#}")));
    Ok(passed)
}

fn report(name: &str, outcome: Result<(), String>) -> bool {
    match outcome {
        Ok(()) => say::done(name),
        Err(problem) => {
            eprintln!("FAILED: {name}: {problem}");
            return false;
        }
    }
    true
}

/// Every Rust file of the project with its number of lines, the longest first.
fn line_counts(root: &Path) -> Result<Vec<(PathBuf, usize)>> {
    let hidden = |name: &str| name.starts_with('.') && name.len() > 1;
    let walk = WalkDir::new(root).into_iter().filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || (name != "target" && !hidden(&name))
    });
    let mut sizes = Vec::new();
    for entry in walk {
        let entry = entry?;
        if entry.file_type().is_file() && entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("read {}", entry.path().display()))?;
            let name = entry.path().strip_prefix(root).unwrap_or(entry.path()).to_owned();
            sizes.push((name, text.lines().count()));
        }
    }
    sizes.sort_by(|(left, a), (right, b)| b.cmp(a).then(left.cmp(right)));
    Ok(sizes)
}

fn too_long(sizes: &[(PathBuf, usize)]) -> Result<(), String> {
    let long: Vec<_> = sizes.iter().filter(|(_, lines)| *lines > MOST_LINES).collect();
    if long.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = long.iter().map(|(file, _)| file.display().to_string()).collect();
    Err(format!("over {MOST_LINES} lines, split by idea: {}", names.join(", ")))
}

/// Every WIT file is in `wit.lock` with the hash it had when it was released.
fn lock_holds(wit: &Path) -> Result<()> {
    let lock = fs::read_to_string(wit.join("wit.lock")).context("read wit/wit.lock")?;
    let mut locked: BTreeMap<&str, &str> =
        lock.lines().filter_map(|line| line.split_once("  ")).map(|(hash, file)| (file, hash)).collect();
    let mut problems = Vec::new();
    for entry in WalkDir::new(wit).sort_by_file_name() {
        let entry = entry?;
        if entry.path().extension().is_none_or(|extension| extension != "wit") {
            continue;
        }
        let name = entry.path().strip_prefix(wit).unwrap_or(entry.path()).to_string_lossy().into_owned();
        let hash = Digest::of(&fs::read(entry.path()).with_context(|| format!("read {name}"))?).hex();
        match locked.remove(name.as_str()) {
            Some(expected) if expected == hash => {}
            Some(_) => {
                problems.push(format!("wit/{name} is released and was changed: put the change in a new version"))
            }
            None => problems.push(format!("wit/{name} is not in wit/wit.lock: add `{hash}  {name}`")),
        }
    }
    problems.extend(locked.keys().map(|file| format!("wit/{file} is in wit/wit.lock and gone")));
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_missing_or_new_wit_file_is_found() {
        let wit = tempfile::tempdir().expect("temporary folder");
        fs::write(wit.path().join("kv.wit"), "package noetl:kv;").expect("file");
        let lock = format!("{}  kv.wit\n", Digest::of(b"package noetl:kv;").hex());
        fs::write(wit.path().join("wit.lock"), &lock).expect("file");
        lock_holds(wit.path()).expect("all is as released");

        fs::write(wit.path().join("kv.wit"), "package noetl:kv; // changed").expect("file");
        fs::write(wit.path().join("new.wit"), "package noetl:new;").expect("file");
        fs::write(wit.path().join("wit.lock"), format!("{lock}00  gone.wit\n")).expect("file");
        let problem = lock_holds(wit.path()).expect_err("three problems").to_string();
        for part in ["kv.wit is released and was changed", "new.wit is not in", "gone.wit is in wit/wit.lock and gone"]
        {
            assert!(problem.contains(part), "{part:?} is not in:\n{problem}");
        }
    }

    #[test]
    fn a_file_over_the_limit_is_named() {
        let sizes = [(PathBuf::from("big.rs"), MOST_LINES + 1), (PathBuf::from("fits.rs"), MOST_LINES)];
        let problem = too_long(&sizes).expect_err("big.rs is too long");
        assert!(problem.contains("big.rs") && !problem.contains("fits.rs"), "{problem}");
    }
}
