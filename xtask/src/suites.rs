//! `cargo xtask test`: suites by name, each one or more runs of `cargo test`.
//!
//! Cargo's output streams through unchanged. What failed is shown once more at the end, because by then it is far up;
//! the last line is always `N passed, N failed`.

use std::time::Instant;

use anyhow::Result;

use crate::outcome::{Outcome, watched};
use crate::project::Project;
use crate::{build, check, say, setup};

struct Suite {
    name: &'static str,
    about: &'static str,
    /// Arguments of `cargo test`, one list a run.
    runs: &'static [&'static [&'static str]],
}

/// A suite of `tests/tests/<name>.rs`, against the real binary.
macro_rules! end_to_end {
    ($name:literal, $about:literal) => {
        Suite {
            name: $name,
            about: $about,
            // The whole workspace is selected, so that features and with them the built dependencies are the same
            // for every suite.
            runs: &[&["--workspace", "--test", $name, "--", "--show-output"]],
        }
    };
}

/// The suites that use programs which are not part of the project.
const WITH_PROGRAMS: [&str; 8] =
    ["supply", "engine_faults", "sql", "nats_tool", "fidelity", "canary", "examples", "compat"];

const SUITES: &[Suite] = &[
    Suite {
        name: "unit",
        about: "every crate by itself, and the direction of their dependencies",
        runs: &[
            &[
                "--workspace",
                "--lib",
                "--bins",
                "--test",
                "arch",
                "--test",
                "builds",
                "--test",
                "corpus",
                "--no-fail-fast",
            ],
            &["--workspace", "--doc", "--no-fail-fast"],
        ],
    },
    Suite {
        name: "flow",
        about: "the pure core: golden decisions, interleavings, large loops",
        runs: &[&[
            "--workspace",
            "--test",
            "golden",
            "--test",
            "flows",
            "--test",
            "ends",
            "--test",
            "interleavings",
            "--test",
            "large_loops",
            "--no-fail-fast",
        ]],
    },
    end_to_end!("api", "the HTTP interface"),
    end_to_end!("author", "a plugin author's way from a new project to a call"),
    end_to_end!("languages", "plugins that are Python and JavaScript source"),
    end_to_end!("python_tool", "code of steps: the tools python and javascript"),
    end_to_end!("ring", "every capability in every ring"),
    end_to_end!("swap", "versions changed under load"),
    end_to_end!("crash", "the server killed during pushes"),
    end_to_end!("access", "tokens, tenants, and what one may do to another"),
    end_to_end!("wallet", "credentials: kept, used, rotated, and never seen"),
    end_to_end!("supply", "registries, signatures and bundles"),
    end_to_end!("faults", "guests that go wrong, and what is done about them"),
    end_to_end!("bulk", "large data in bounded memory"),
    end_to_end!("hostile", "attacks by guests, uploads and tenants, and what they do to a bystander"),
    end_to_end!("canary", "planted secrets, and every place they must not be in"),
    end_to_end!("fuzz", "bytes from nowhere at every edge, a minute each"),
    end_to_end!("engine_api", "playbooks and executions over the HTTP interface"),
    end_to_end!("engine_crash", "the server killed while playbooks run"),
    end_to_end!("engine_faults", "a full disk and a clock that jumps while playbooks run"),
    end_to_end!("engine_swap", "the engine's services replaced and broken while playbooks run"),
    end_to_end!("engine_replay", "components and native code fold alike"),
    end_to_end!("sql", "databases: every type, transactions, time, pools, and the tools over them"),
    end_to_end!("http_tool", "the tool http: bodies, classes of failure, lost calls, results by reference"),
    end_to_end!("nats_tool", "the tools nats, subscription and shell"),
    end_to_end!("fidelity", "values from a server through Python into a database and back, digit by digit"),
    end_to_end!("engine_cli", "playbooks through the command, with and without a server"),
    end_to_end!("compat", "playbooks of others, held against their oracles"),
    end_to_end!("examples", "every example comes to what it says, and tools say what they take"),
];

pub fn names() -> Vec<&'static str> {
    SUITES.iter().map(|suite| suite.name).collect()
}

/// Runs one suite, or the checks and all suites; true if nothing failed.
pub fn run(project: &Project, only: Option<&str>, long: bool) -> Result<bool> {
    build::everything(project, false)?;
    if only.is_none_or(|name| WITH_PROGRAMS.contains(&name)) {
        setup::for_tests()?;
    }
    let mut total = Outcome::default();
    if only.is_none() {
        say::heading("check");
        if !check::run(project)? {
            total.fail("`cargo xtask check`, whose words are at the beginning");
        }
    }
    for suite in SUITES.iter().filter(|suite| only.is_none_or(|name| name == suite.name)) {
        say::heading(&format!("{}: {}", suite.name, suite.about));
        let started = Instant::now();
        let mut outcome = Outcome::default();
        for arguments in suite.runs {
            outcome.add(cargo_test(project, arguments, long, FUZZ_SECONDS)?);
        }
        show_report(project);
        eprintln!("{}: {outcome} in {}", suite.name, say::time(started.elapsed()));
        total.add(outcome);
    }
    if !total.ok() {
        say::heading("what failed");
        total.failures().for_each(|line| println!("{line}"));
    }
    println!("{total}");
    Ok(total.ok())
}

/// What a fuzz target gets when all suites run; they run at the same time.
const FUZZ_SECONDS: u64 = 60;

/// Runs the fuzz targets alone, or one of them; true if nothing was found.
pub fn fuzz(project: &Project, target: Option<&str>, seconds: u64) -> Result<bool> {
    build::everything(project, false)?;
    let mut arguments = vec!["--workspace", "--test", "fuzz", "--", "--show-output"];
    arguments.extend(target);
    let outcome = cargo_test(project, &arguments, false, seconds)?;
    println!("{outcome}");
    Ok(outcome.ok())
}

/// Rows that a suite's tests wrote for people to see, as one table.
fn show_report(project: &Project) {
    let Ok(rows) = std::fs::read_to_string(project.report()) else { return };
    println!("| attack | class | contained in | bystander p50 | bystander p99 |\n|---|---|---|---|---|");
    let mut rows: Vec<_> = rows.lines().collect();
    rows.sort_unstable();
    rows.iter().for_each(|row| println!("{row}"));
}

fn cargo_test(project: &Project, arguments: &[&str], long: bool, fuzz_seconds: u64) -> Result<Outcome> {
    let mut command = project.cargo(["test"]);
    command.args(arguments);
    command.env("NOETL_BIN", project.binary(false));
    command.env("NOETL_FUZZ_SECONDS", fuzz_seconds.to_string());
    // Left by an earlier run, its rows would be taken for this one's.
    let _ = std::fs::remove_file(project.report());
    command.env("NOETL_TEST_REPORT", project.report());
    if long {
        command.env("NOETL_TEST_LONG", "1");
    }
    watched(&mut command)
}
