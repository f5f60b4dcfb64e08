//! What came of a folder, for people and for programs.

use std::fmt;
use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::{Value as Json, json};

use super::Found;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    /// It needs something that is not part of this run, such as a tool that the catalog has not.
    NotHere,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Passed => "ok",
            Verdict::Failed => "FAILED",
            Verdict::NotHere => "not here",
        }
    }
}

#[derive(Debug)]
pub struct Row {
    pub file: String,
    pub verdict: Verdict,
    pub status: String,
    /// Whether more than the end was looked at.
    pub oracle: bool,
    pub took: Duration,
    pub why: String,
}

impl Row {
    pub(super) fn of(file: &str, oracle: bool) -> Self {
        let (status, why) = (String::new(), String::new());
        Self { file: file.to_owned(), verdict: Verdict::Failed, status, oracle, took: Duration::ZERO, why }
    }

    pub(super) fn take(&mut self, found: Found, took: Duration) {
        (self.verdict, self.status, self.why, self.took) = (found.verdict, found.status, found.why, took);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, verdict, status, took, why, .. } = self;
        write!(f, "{:<8} {file}  {status}  {:.1} s  {why}", verdict.word(), took.as_secs_f64())
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    pub fn of(&self, verdict: Verdict) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.verdict == verdict)
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.of(verdict).count()
    }

    pub fn passed(&self) -> bool {
        self.count(Verdict::Failed) == 0
    }

    pub fn json(&self) -> Json {
        let rows: Vec<Json> = self
            .rows
            .iter()
            .map(|row| {
                json!({"file": row.file, "verdict": row.verdict.word(), "status": row.status, "oracle": row.oracle,
                    "seconds": row.took.as_secs_f64(), "why": row.why})
            })
            .collect();
        json!({"passed": self.count(Verdict::Passed), "failed": self.count(Verdict::Failed),
            "not_here": self.count(Verdict::NotHere), "playbooks": rows})
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN).set_header(["playbook", "", "status", "oracle", "time", "why"]);
        for row in &self.rows {
            let why: String = row.why.replace('\n', " ").chars().take(160).collect();
            let time = format!("{:.1} s", row.took.as_secs_f64());
            let oracle = if row.oracle { "checked" } else { "ends" };
            table.add_row([row.file.as_str(), row.verdict.word(), &row.status, oracle, &time, &why]);
        }
        writeln!(f, "{table}")?;
        let counts = [Verdict::Passed, Verdict::Failed, Verdict::NotHere].map(|verdict| self.count(verdict));
        write!(f, "{} passed, {} failed, {} not here", counts[0], counts[1], counts[2])
    }
}
