//! How a command ends badly: one exit code, one sentence on what was wrong, one on what to do next.
//!
//! Programs branch on the exit code, so a code means the same in every command and the list below is the
//! list in `--help`. A failure that came from the server keeps the server's problem document: with `--json`
//! it is printed as it came, so a program that reads errors sees the same fields over HTTP and over the
//! command line.
//!
//! Bad input: text of a server is printed with control characters removed, because a plugin chooses some of
//! it and a terminal obeys escape sequences.

use std::fmt;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::output::{Output, Paint, printable};

/// What the process returns. The numbers are public: they are in `--help` and never change meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Denied = 4,
    Conflict = 5,
    Unreachable = 6,
    PluginFailure = 7,
}

pub const EXIT_HELP: &str = "\
Exit codes:
  0  done
  1  the operation failed
  2  the command line or the configuration is wrong
  3  not found
  4  denied: no token, or one that may not do this
  5  conflict, or the version asks for capabilities that need --grant
  6  the server is not reachable
  7  the plugin answered with a failure of its own

Data goes to stdout, everything else to stderr. --json works on every command.";

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    pub message: String,
    /// What to do next, when that is known.
    pub next: Option<String>,
    /// Address of the page that explains the error.
    pub help: Option<String>,
    /// The server's own document, when it gave one.
    pub problem: Option<Box<Value>>,
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), next: None, help: None, problem: None }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub fn next(mut self, hint: impl Into<String>) -> Self {
        self.next = Some(hint.into());
        self
    }

    /// Stable code of the server's problem document; empty when the failure is our own.
    pub fn code(&self) -> &str {
        self.problem.as_ref().and_then(|problem| problem["code"].as_str()).unwrap_or_default()
    }

    /// Prints the failure once, at the edge. With `--json` it goes to stderr as well: stdout carries data only.
    pub fn report(&self, output: &Output) {
        let text = if output.json { format!("{:#}", self.document()) } else { self.text(output.stderr_paint()) };
        // Nothing is left to tell when stderr itself is closed.
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn document(&self) -> Value {
        let mut document = self.problem.as_deref().cloned().unwrap_or_else(|| json!({ "detail": self.message }));
        if let Value::Object(fields) = &mut document {
            fields.insert("exit_code".into(), json!(self.exit as u8));
            if let Some(next) = &self.next {
                fields.insert("next".into(), json!(next));
            }
        }
        document
    }

    fn text(&self, paint: Paint) -> String {
        let mut text = format!("{} {}", paint.bad("error:"), printable(&self.message));
        if let Some(next) = &self.next {
            text.push_str(&format!("\n{} {}", paint.dim("next:"), printable(next)));
        }
        if let Some(help) = &self.help {
            text.push_str(&format!("\n{} {}", paint.dim("help:"), printable(help)));
        }
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Says what could not be done to which file.
pub fn io(doing: &str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Failure {
    let what = format!("{doing} {}", path.display());
    move |error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(Exit::NotFound, format!("{what}: no such file or folder")),
        _ => Failure::failed(format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_exit_code() {
        let all = [
            Exit::Failed,
            Exit::Usage,
            Exit::NotFound,
            Exit::Denied,
            Exit::Conflict,
            Exit::Unreachable,
            Exit::PluginFailure,
        ];
        for exit in all {
            assert!(EXIT_HELP.contains(&format!("\n  {}  ", exit as u8)), "{exit:?} is not in the help");
        }
    }

    #[test]
    fn a_problem_document_keeps_its_fields_and_gains_the_exit_code() {
        let mut failure = Failure::new(Exit::Conflict, "taken").next("bump the version");
        failure.problem = Some(Box::new(json!({ "code": "version_taken", "existing": "sha256:00" })));
        let document = failure.document();
        assert_eq!(document["existing"], "sha256:00");
        assert_eq!(document["exit_code"], 5);
        assert_eq!(document["next"], "bump the version");
    }
}
