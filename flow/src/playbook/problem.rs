//! What is wrong with a document, and where.
//!
//! Problems are collected while the document is read and the model is built, because an author wants all of them at
//! once. They are noted against the id of a value; the path (`workflow[2].next.arcs[0].step`) is worked out at the end,
//! in one walk, so that the code which finds problems need not carry paths around.
//!
//! At most [`MOST`] are reported: a document that is not a playbook at all should not answer with a megabyte.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::yaml::{Node, Value};

/// The most problems that are reported of a document.
pub const MOST: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub severity: Severity,
    /// From 1; 0 when the problem is with the document as a whole.
    pub line: u32,
    /// From 1, in characters; 0 when the problem is with the document as a whole.
    pub column: u32,
    /// Empty for the document as a whole.
    pub path: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {severity}: ", self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// Where something is in the text, and which value or key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Unique in a document; 0 for the document as a whole.
    pub id: u32,
    pub line: u32,
    pub column: u32,
}

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    strict: bool,
    found: Vec<(Place, Problem)>,
    dropped: usize,
    failed: bool,
}

impl Problems {
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    pub fn error(&mut self, at: Place, message: impl Into<String>) {
        self.add(Severity::Error, at, message.into(), None);
    }

    /// An error about a name that is none of `known`.
    pub fn unknown_name<'a>(
        &mut self,
        at: Place,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
        message: String,
    ) {
        let suggestion = self.suggestion(Severity::Error, name, known);
        self.add(Severity::Error, at, message, suggestion);
    }

    pub fn warning(&mut self, at: Place, message: impl Into<String>) {
        self.add(Severity::Warning, at, message.into(), None);
    }

    /// A key nobody reads: an error for strict readers.
    pub fn unknown_key<'a>(&mut self, at: Place, key: &str, known: impl IntoIterator<Item = &'a str>) {
        let severity = if self.strict { Severity::Error } else { Severity::Warning };
        let suggestion = self.suggestion(severity, key, known);
        self.add(severity, at, format!("unknown key `{key}` is ignored"), suggestion);
    }

    /// Looked for only if the problem is going to be reported: it costs more than all the rest of it.
    fn suggestion<'a>(
        &self,
        severity: Severity,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        if self.is_full(severity) { None } else { nearest(name, known).map(did_you_mean) }
    }

    /// Errors must not be crowded out by warnings, so those have only half of the room.
    fn is_full(&self, severity: Severity) -> bool {
        self.found.len() >= if severity == Severity::Error { MOST } else { MOST / 2 }
    }

    pub fn add(&mut self, severity: Severity, at: Place, message: String, suggestion: Option<String>) {
        self.failed |= severity == Severity::Error;
        if self.is_full(severity) {
            self.dropped += 1;
            return;
        }
        let problem = Problem { severity, line: at.line, column: at.column, path: String::new(), message, suggestion };
        self.found.push((at, problem));
    }

    pub fn failed(&self) -> bool {
        self.failed
    }

    /// All problems in the order of the text, with their paths.
    pub fn finish(mut self, root: Option<&Node>) -> Vec<Problem> {
        let mut paths: BTreeMap<u32, String> = self.found.iter().map(|(at, _)| (at.id, String::new())).collect();
        if let Some(root) = root {
            find_paths(root, &mut String::new(), &mut paths);
        }
        self.found.sort_by_key(|(at, problem)| (problem.line, problem.column, at.id));
        let mut problems: Vec<Problem> = self
            .found
            .into_iter()
            .map(|(at, problem)| Problem { path: paths.get(&at.id).cloned().unwrap_or_default(), ..problem })
            .collect();
        // An old spelling can lead two readers to the same value.
        problems.dedup();
        if self.dropped > 0 {
            let severity = if self.failed { Severity::Error } else { Severity::Warning };
            let message = format!("and {} more problems", self.dropped);
            problems.push(Problem { severity, line: 0, column: 0, path: String::new(), message, suggestion: None });
        }
        problems
    }
}

/// Fills in the paths of the ids asked for. `path` is that of `node`, and is left as it was.
fn find_paths(node: &Node, path: &mut String, wanted: &mut BTreeMap<u32, String>) {
    if let Some(found) = wanted.get_mut(&node.place.id) {
        found.clone_from(path);
    }
    let end = path.len();
    match &node.value {
        Value::Scalar(_) => {}
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                find_paths(item, path, wanted);
                path.truncate(end);
            }
        }
        Value::Map(entries) => {
            for (key, value) in entries {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key.name);
                if let Some(found) = wanted.get_mut(&key.place.id) {
                    found.clone_from(path);
                }
                find_paths(value, path, wanted);
                path.truncate(end);
            }
        }
    }
}

fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The known name that was probably meant: at most a third of its letters differ.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Beyond this nobody mistypes a name, and the work would grow with the square of it.
    const LONGEST: usize = 64;
    /// Nor is it worth while to look through more.
    const LOOKED_AT: usize = 1000;
    let letters: Vec<char> = name.to_lowercase().chars().take(LONGEST + 1).collect();
    if letters.len() > LONGEST {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in known.into_iter().take(LOOKED_AT) {
        let other: Vec<char> = candidate.to_lowercase().chars().take(LONGEST).collect();
        let far = distance(&letters, &other);
        let allowed = (letters.len().max(other.len()) / 3).max(1);
        if far <= allowed && far < letters.len() && best.is_none_or(|(least, _)| far < least) {
            best = Some((far, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How many letters have to be put in, left out, replaced or swapped with their neighbour.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut this = vec![row + 1; right.len() + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            let mut least = replaced.min(last[column + 1] + 1).min(this[column] + 1);
            if row > 0 && column > 0 && *letter == right[column - 1] && left[row - 1] == *other {
                least = least.min(before[column - 1] + 1);
            }
            this[column + 1] = least;
        }
        before = last;
        last = this;
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_that_was_meant() {
        let known = ["step", "next", "tool", "workflow", "max_in_flight"];
        for (name, meant) in [
            ("stpe", Some("step")),
            ("Next", Some("next")),
            ("tools", Some("tool")),
            ("max_inflight", Some("max_in_flight")),
            ("wrkflwo", Some("workflow")),
            ("x", None),
            ("completely_different", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
        assert_eq!(nearest(&"step".repeat(1000), known), None);
    }

    #[test]
    fn warnings_leave_room_for_errors() {
        let mut problems = Problems::new(false);
        for _ in 0..MOST * 2 {
            problems.warning(Place::default(), "w");
        }
        assert!(!problems.failed());
        problems.error(Place { line: 3, ..Place::default() }, "e");
        assert!(problems.failed());
        let all = problems.finish(None);
        assert!(all.iter().any(|problem| problem.message == "e"));
        assert_eq!(all.last().map(|problem| problem.message.as_str()), Some("and 300 more problems"));
    }
}
