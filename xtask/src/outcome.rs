//! What a run of `cargo test` came to: its result lines added up, and the words of the tests that failed.
//!
//! A run that ends without success and without a failed test, such as one that does not compile or is killed, counts as
//! one failure: the sum cannot look better than what happened.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::project::as_typed;

/// Lines kept of the failures of one run; a backtrace has many, and the first say what went wrong.
const KEPT: usize = 200;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    passed: u64,
    failed: u64,
    failures: Vec<String>,
}

impl Outcome {
    pub fn add(&mut self, other: Outcome) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }

    pub fn fail(&mut self, what: &str) {
        self.failed += 1;
        self.failures.push(what.to_owned());
    }

    pub fn ok(&self) -> bool {
        self.failed == 0
    }

    pub fn failures(&self) -> impl Iterator<Item = &str> {
        self.failures.iter().map(String::as_str)
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Runs a command whose output is that of `cargo test`, which is passed on as it comes.
pub fn watched(command: &mut Command) -> Result<Outcome> {
    let typed = as_typed(command);
    eprintln!("$ {typed}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("start `{typed}`"))?;
    let mut reader = Reader::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.with_context(|| format!("read from `{typed}`"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            reader.read(&line);
        }
    }
    let status = child.wait().with_context(|| format!("wait for `{typed}`"))?;
    let mut outcome = reader.outcome;
    if !status.success() && outcome.failed == 0 {
        let what = format!("`{typed}` ended with {status}");
        eprintln!("{what}");
        outcome.fail(&what);
    }
    Ok(outcome)
}

/// Goes over the output of the test harness line by line.
#[derive(Default)]
struct Reader {
    outcome: Outcome,
    /// How many lines of the failures of the binary under way were kept; nothing outside of them.
    in_failures: Option<usize>,
}

impl Reader {
    fn read(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix("test result: ") {
            self.in_failures = None;
            self.outcome.passed += number(result, "passed");
            self.outcome.failed += number(result, "failed");
        } else if line == "failures:" {
            // Said twice: before what the tests printed, and before the list of their names.
            self.in_failures.get_or_insert(0);
        } else if let Some(kept) = &mut self.in_failures {
            // The list of names at the end is kept however long the failures are.
            if *kept < KEPT || line.starts_with("    ") && !line.starts_with("     ") {
                self.outcome.failures.push(line.to_owned());
            }
            *kept += 1;
        }
    }
}

/// The number before a word in `ok. 5 passed; 0 failed; ...`.
fn number(result: &str, what: &str) -> u64 {
    let words = result.split([' ', ';']).filter(|word| !word.is_empty()).collect::<Vec<_>>();
    words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Outcome {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.read(line));
        reader.outcome
    }

    #[test]
    fn result_lines_are_added_and_others_ignored() {
        let outcome = read(
            "test store::writes ... ok\n\
             test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.01s\n\
             test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s\n",
        );
        assert_eq!(outcome, Outcome { passed: 15, failed: 2, failures: Vec::new() });
    }

    #[test]
    fn the_words_of_failed_tests_are_kept_and_those_of_others_not() {
        let long = "a frame\n".repeat(2 * KEPT);
        let outcome = read(&format!(
            "successes:\n\n---- fine stdout ----\nwell\n\nfailures:\n\n---- bad stdout ----\nit broke\n{long}\n\
             failures:\n    bad\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored\nafter\n"
        ));
        let kept: Vec<&str> = outcome.failures().filter(|line| !line.is_empty() && *line != "a frame").collect();
        assert_eq!(kept, ["---- bad stdout ----", "it broke", "    bad"]);
        assert!(outcome.failures().count() < KEPT + 10);
    }

    #[test]
    fn a_run_that_dies_without_a_result_is_a_failure() {
        let mut died = Command::new("sh");
        died.args(["-c", "echo 'test result: ok. 4 passed; 0 failed; 0 ignored'; exit 101"]);
        let outcome = watched(&mut died).expect("sh starts");
        assert_eq!((outcome.passed, outcome.failed), (4, 1));
        assert!(outcome.failures().next().is_some_and(|line| line.contains("101")), "{outcome:?}");
    }
}
