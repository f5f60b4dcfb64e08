//! `cargo xtask setup`: what the other commands need beyond a Rust compiler.
//!
//! A [`Need`] can be checked in well under a second and installed if it is missing. Checking is the whole work when nothing
//! is missing, so no record of earlier runs is kept that could go stale.

use anyhow::{Context, Result};
use noetl_guest_build::{Toolchain, install};

use crate::say::{Step, done};

/// Takes one line before each step.
type Progress<'a> = &'a mut dyn FnMut(&str);

struct Need {
    name: &'static str,
    /// What was found; none if it is missing.
    check: fn() -> Option<String>,
    /// Installs it, telling each step, and answers with what is there then.
    install: fn(Progress) -> Result<String>,
}

const NEEDS: [Need; 1] = [Need {
    name: "guest toolchain",
    check: || Toolchain::find().ok().map(|found| found.to_string()),
    install: |progress| Ok(install(progress)?.to_string()),
}];

/// Checks every need and tells what is there.
pub fn run() -> Result<()> {
    satisfy(&NEEDS, true)
}

/// Checks every need and says nothing if all is there.
pub fn quietly() -> Result<()> {
    satisfy(&NEEDS, false)
}

fn satisfy(needs: &[Need], tell: bool) -> Result<()> {
    for need in needs {
        if let Some(found) = (need.check)() {
            if tell {
                done(&describe(need.name, &found));
            }
            continue;
        }
        let step = Step::start(&format!("installing the {}", need.name));
        let found = (need.install)(&mut |line| step.now(line)).with_context(|| format!("set up the {}", need.name))?;
        step.end(&describe(need.name, &found));
    }
    Ok(())
}

fn describe(name: &str, found: &str) -> String {
    format!("{name}\n    {}", found.replace('\n', "\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        let present = Need {
            name: "present",
            check: || Some("there".to_owned()),
            install: |_| anyhow::bail!("installed although it is there"),
        };
        let missing = Need {
            name: "missing",
            check: || None,
            install: |progress| {
                progress("installing");
                anyhow::bail!("no servers are reached")
            },
        };
        satisfy(&[present], false).expect("nothing to install");
        let error = satisfy(&[missing], false).expect_err("the install fails");
        assert_eq!(format!("{error:#}"), "set up the missing: no servers are reached");
    }
}
