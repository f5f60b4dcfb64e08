//! The language of playbooks: a document becomes a checked [`Playbook`], or a list of everything that is wrong with it.
//!
//! The text becomes values with their places (`yaml`); those are held against one table of keys (`keys`, `shape`) that
//! the schema for editors is made of too (`schema`); then the model is built (`build`, `step`, `tool`, `rule`), and on
//! the way everything is checked that a table cannot say.
//!
//! Invariants:
//! 1. All problems of a document are reported at once, each with its line, column and path; only a text that is not YAML
//!    stops at its first.
//! 2. A playbook is only given out if it has no errors, and then the promises of `model` hold.
//! 3. Unknown keys of our own objects are warnings, errors when `strict`. Keys of tools are the tools' own.
//! 4. No text makes this panic, and the work is bounded by the size of the document.

mod build;
mod duration;
mod keychain;
mod keys;
mod model;
mod problem;
mod rule;
mod scalar;
mod schema;
mod shape;
mod step;
mod text;
mod tool;
mod yaml;

#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

pub use model::{
    Admit, Arc, Cursor, Executor, Failures, Limit, Loop, Metadata, Next, NextMode, OnError, OnNoMatch, Park, Playbook,
    Requires, Step, Work,
};
pub use problem::{Problem, Severity};
pub use schema::schema;
pub use yaml::LARGEST;

use problem::Problems;
pub(crate) use problem::nearest;

/// A playbook and what its author should know all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub playbook: Playbook,
    pub warnings: Vec<Problem>,
}

/// Reads a document. The error has all problems, warnings included, in the order of the text.
pub fn parse(text: &str, strict: bool) -> Result<Parsed, Vec<Problem>> {
    let mut problems = Problems::new(strict);
    let Some(root) = yaml::read(text, &mut problems) else {
        return Err(problems.finish(None));
    };
    if !root.is_map() {
        problems.error(root.place, "expected a playbook: a map with `apiVersion`, `kind`, `metadata` and `workflow`");
        return Err(problems.finish(Some(&root)));
    }
    keys::PLAYBOOK.check(&root, &mut problems);
    let playbook = build::playbook(&root, hex::encode(Sha256::digest(text)), &mut problems);
    match problems.failed() {
        true => Err(problems.finish(Some(&root))),
        false => Ok(Parsed { playbook, warnings: problems.finish(Some(&root)) }),
    }
}

/// Any document of YAML, or JSON which is a part of it, as plain values, under the rules that playbooks are read by.
pub fn plain(text: &str) -> Result<serde_json::Value, Vec<Problem>> {
    let mut problems = Problems::new(true);
    match yaml::read(text, &mut problems) {
        Some(root) if !problems.failed() => Ok(root.json()),
        root => Err(problems.finish(root.as_ref())),
    }
}
