//! Extism beside our host: what a plugin costs that is made of compiled code and called, and one that is kept.
//!
//! Its script builds a small host in C against the library Extism ships and prints what it measured. It is run where it
//! was installed before, and left out where it was not; `NOETL_PEERS` and `NOETL_PEER_SCRIPTS` say where that is.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::engine::peers;

pub struct Extism {
    script: PathBuf,
    place: PathBuf,
}

/// Medians, in µs.
#[derive(Debug, PartialEq)]
pub struct Took {
    pub made_and_called: f64,
    pub called: f64,
}

impl Extism {
    pub fn installed() -> Option<Self> {
        let (scripts, folder) = (peers::place("NOETL_PEER_SCRIPTS")?, peers::place("NOETL_PEERS")?);
        let (script, place) = (peers::script(&scripts, "extism")?, folder.join("extism"));
        place.join("venv").is_dir().then_some(Self { script, place })
    }

    pub fn turn(&self) -> Result<Took> {
        let run = Command::new("bash").arg(&self.script).arg(&self.place).arg("1").output();
        let run = run.with_context(|| format!("start {}", self.script.display()))?;
        ensure!(run.status.success(), "{}: {}", run.status, String::from_utf8_lossy(&run.stderr).trim());
        let said = String::from_utf8_lossy(&run.stdout);
        took(&said).with_context(|| format!("it did not say what it measured: {said}"))
    }
}

fn took(said: &str) -> Option<Took> {
    let line = |what: &str| said.lines().find(|line| line.contains(what));
    let made_and_called = line("first call:")?.split_whitespace().rev().nth(1)?.parse().ok()?;
    let called = line("extism nop")?.split_whitespace().find_map(|word| word.strip_prefix("p50us="))?.parse().ok()?;
    Some(Took { made_and_called, called })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_found_in_what_the_script_says() {
        let said = "libextism 1.41.0\nrun1 extism new-from-compiled + first call: 147.2 us\n\
                    run1 extism nop    bytes=0        calls/s=131844    p50us=6.33     p99us=9.93  MB/s(in)=0\n";
        assert_eq!(took(said), Some(Took { made_and_called: 147.2, called: 6.33 }));
        assert_eq!(took("libextism 1.41.0"), None);
    }
}
