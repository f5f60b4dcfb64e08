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
mod credentials;
pub(crate) mod duration;
mod keychain;
mod keys;
mod kinds;
mod model;
mod problem;
mod rule;
mod scalar;
mod schema;
mod shape;
mod step;
mod text;
mod tool;
mod uses;
mod yaml;

#[cfg(test)]
mod tests;

use sha2::{Digest, Sha256};

pub use credentials::NamedCredential;
pub use kinds::KINDS as OWN_KINDS;
pub use model::{
    Admit, Arc, Cursor, Executor, Failures, Limit, Loop, Metadata, Next, NextMode, OnError, OnNoMatch, Park, Playbook,
    Requires, Step, Work,
};
pub use problem::{Problem, Severity};
pub use schema::{schema, schema_with};
pub use uses::{Given, Use, UsedField};
pub use yaml::LARGEST;

use problem::Problems;
pub(crate) use problem::nearest;

/// A playbook and what its author should know all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    pub playbook: Playbook,
    pub warnings: Vec<Problem>,
}

/// All that can be said of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// Unless it has errors.
    pub playbook: Option<Playbook>,
    /// In the order of the text, warnings included.
    pub problems: Vec<Problem>,
    /// Where it calls which tool, as far as that can be seen.
    pub uses: Vec<Use>,
    /// Where it names which credential, likewise.
    pub credentials: Vec<NamedCredential>,
}

/// Reads a document. The error has all problems, warnings included, in the order of the text.
pub fn parse(text: &str, strict: bool) -> Result<Parsed, Vec<Problem>> {
    let (built, problems) = understand(text, strict);
    match built {
        Some((_, Some(playbook))) => Ok(Parsed { playbook, warnings: problems }),
        _ => Err(problems),
    }
}

/// Reads a document and lists the tools it calls and the credentials it names, for somebody who knows those.
pub fn read(text: &str, strict: bool) -> Reading {
    let (built, problems) = understand(text, strict);
    let (root, playbook) = built.unzip();
    let uses = root.as_ref().map(uses::uses).unwrap_or_default();
    let credentials = root.as_ref().map(credentials::named).unwrap_or_default();
    Reading { playbook: playbook.flatten(), problems, uses, credentials }
}

/// The document as values, and the playbook unless there are errors; nothing of a text that is no document.
fn understand(text: &str, strict: bool) -> (Option<(yaml::Node, Option<Playbook>)>, Vec<Problem>) {
    let mut problems = Problems::new(strict);
    let Some(root) = yaml::read(text, &mut problems) else {
        return (None, problems.finish(None));
    };
    if !root.is_map() {
        problems.error(root.place, "expected a playbook: a map with `apiVersion`, `kind`, `metadata` and `workflow`");
        let problems = problems.finish(Some(&root));
        return (Some((root, None)), problems);
    }
    keys::PLAYBOOK.check(&root, &mut problems);
    let playbook = build::playbook(&root, hex::encode(Sha256::digest(text)), &mut problems);
    let playbook = (!problems.failed()).then_some(playbook);
    let problems = problems.finish(Some(&root));
    (Some((root, playbook)), problems)
}

/// Any document of YAML, or JSON which is a part of it, as plain values, under the rules that playbooks are read by.
pub fn plain(text: &str) -> Result<serde_json::Value, Vec<Problem>> {
    let mut problems = Problems::new(true);
    match yaml::read(text, &mut problems) {
        Some(root) if !problems.failed() => Ok(root.json()),
        root => Err(problems.finish(root.as_ref())),
    }
}
