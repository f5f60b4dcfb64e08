//! A command that was run, and what a test expects of it.

use std::process::Command;

use serde_json::Value;

/// How a command ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ran {
    #[track_caller]
    pub fn ok(self) -> Self {
        self.ends(0)
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }

    #[track_caller]
    pub fn says(self, wanted: &str) -> Self {
        let all = format!("{}{}", self.stdout, self.stderr);
        assert!(all.contains(wanted), "`{wanted}` is not in:\n{all}");
        self
    }
}
