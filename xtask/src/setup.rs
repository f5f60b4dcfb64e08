//! `cargo xtask setup`: what the other commands need beyond a Rust compiler.
//!
//! A [`Need`] can be checked in well under a second and installed if it is missing. Checking is the whole work when nothing
//! is missing, so no record of earlier runs is kept that could go stale.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use noetl_guest_build::{Toolchain, install, install_packages};

use crate::interpreters;
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

const NEEDS: [Need; 2] = [
    Need {
        name: "guest toolchain",
        check: || Toolchain::find().ok().map(|found| found.to_string()),
        install: |progress| Ok(install(progress)?.to_string()),
    },
    Need {
        name: "Python and Node.js, which build the interpreters",
        check: || interpreters::missing().is_none().then(|| "python3, node and npm are there".to_owned()),
        // Which of a machine's many ways to have them is its owner's choice.
        install: |_| bail!("install {}", interpreters::missing().unwrap_or("them")),
    },
];

/// What only suites need, so that a machine without it can build and run all the same.
const TEST_NEEDS: [Need; 3] = [
    Need {
        name: "OCI registry and another client",
        check: || {
            let found = [on_path("docker-registry")?, on_path("skopeo")?];
            Some(found.map(|file| file.display().to_string()).join("\n"))
        },
        install: |progress| {
            install_packages(&["docker-registry", "skopeo"], progress).map_err(|error| anyhow!(error))?;
            Ok("docker-registry and skopeo".to_owned())
        },
    },
    Need {
        name: "clock that can be set for one program",
        check: || on_path("faketime").map(|file| file.display().to_string()),
        install: |progress| {
            install_packages(&["faketime"], progress).map_err(|error| anyhow!(error))?;
            Ok("faketime".to_owned())
        },
    },
    Need {
        name: "database and message server that playbooks talk to",
        check: || {
            // Debian keeps the programs of a database server out of the path.
            let postgres = on_path("initdb").or_else(|| {
                let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
                versions.map(|version| version.path().join("bin/initdb")).find(|program| program.is_file())
            });
            let nats =
                on_path("nats-server").or_else(|| Some(PathBuf::from("/usr/sbin/nats-server")).filter(|p| p.is_file()));
            Some([postgres?, nats?].map(|file| file.display().to_string()).join("\n"))
        },
        install: |progress| {
            install_packages(&["postgresql", "nats-server"], progress).map_err(|error| anyhow!(error))?;
            Ok("postgresql and nats-server".to_owned())
        },
    },
];

/// Checks every need and tells what is there.
pub fn run() -> Result<()> {
    satisfy(&NEEDS, true)?;
    satisfy(&TEST_NEEDS, true)
}

/// Checks what a build needs and says nothing if all is there.
pub fn quietly() -> Result<()> {
    satisfy(&NEEDS, false)
}

/// The same for what suites need.
pub fn for_tests() -> Result<()> {
    satisfy(&TEST_NEEDS, false)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
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
