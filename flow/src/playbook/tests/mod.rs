//! The parser against documents: what it makes of good ones, what it says of bad ones, and that no text breaks it.

mod arbitrary;
mod documents;
mod model;
mod problems;
mod reference;
mod schema;

use super::{Parsed, Playbook, Problem, parse};

/// A playbook whose workflow is this.
fn document(workflow: &str) -> String {
    format!("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {{name: t}}\nworkflow:\n{workflow}")
}

fn parsed(text: &str) -> Parsed {
    parse(text, false).unwrap_or_else(|problems| panic!("{text}\n{}", listed(&problems)))
}

fn playbook(workflow: &str) -> Playbook {
    parsed(&document(workflow)).playbook
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

/// All problems of a document, whether or not it is refused.
fn problems(text: &str, strict: bool) -> String {
    match parse(text, strict) {
        Ok(parsed) => listed(&parsed.warnings),
        Err(problems) => listed(&problems),
    }
}
