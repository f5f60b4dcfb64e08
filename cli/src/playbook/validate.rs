//! `noetl validate`: everything that is wrong with playbooks, without a server.
//!
//! The checker is the one that servers run, compiled into this command, and fields of tools are held against what the
//! tools in this command say about themselves. A server may have other keys and other tools; what counts is what it says
//! at `noetl register`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use noetl_flow::playbook;
use serde_json::{Value, json};

use super::files::{Source, collect};
use super::problems;
use crate::args::Context;
use crate::failure::{Failure, Outcome};
use crate::output::Paint;
use crate::tool::known;

const EXAMPLES: &str = "\
Examples:
  noetl validate orders.yaml
  noetl validate playbooks/ --strict
  noetl validate orders.yaml --json | jq '.files[].problems'

Ends with 1 if a playbook has errors. Warnings alone are no failure.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Validate {
    /// Files, or folders with playbooks below them.
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,
    /// Take keys nobody knows for errors, which are warnings otherwise.
    #[arg(long)]
    strict: bool,
}

/// A file and what the checker says of it.
pub struct Checked {
    pub file: String,
    /// The playbook, unless it has errors.
    pub playbook: Option<playbook::Playbook>,
    /// As the API gives them too.
    pub problems: Vec<Value>,
}

impl Validate {
    pub fn run(self, context: &Context) -> Outcome {
        let checked: Vec<_> = collect(&self.files)?.iter().map(|source| check(source, self.strict)).collect();
        let wrong = checked.iter().filter(|checked| checked.playbook.is_none()).count();
        let value = json!({ "valid": wrong == 0, "files": checked.iter().map(Checked::json).collect::<Vec<_>>() });
        context.output.result(&value, |paint| {
            checked.iter().flat_map(|checked| checked.lines(paint)).collect::<Vec<_>>().join("\n")
        });
        match wrong {
            0 => Ok(()),
            _ => {
                let mut failure = Failure::failed(format!("{wrong} of {} playbooks cannot run", checked.len()))
                    .next("`noetl schema playbook` prints the schema for editors");
                // The problems themselves are data and went to stdout.
                failure.problem = Some(Box::new(json!({ "code": "invalid_playbook", "detail": failure.message })));
                Err(failure)
            }
        }
    }
}

pub fn check(source: &Source, strict: bool) -> Checked {
    let read = playbook::read(&source.text, strict);
    let plain = |problem: &playbook::Problem| serde_json::to_value(problem).expect("problems are plain data");
    let mut found: Vec<Value> = read.problems.iter().map(plain).collect();
    found.extend(known::problems(&read.uses, strict));
    let place = |problem: &Value| (problem["line"].as_u64(), problem["column"].as_u64());
    found.sort_by_key(|problem| (place(problem).0 == Some(0), place(problem)));
    let playbook = read.playbook.filter(|_| !found.iter().any(problems::is_error));
    Checked { file: source.name(), playbook, problems: found }
}

impl Checked {
    fn json(&self) -> Value {
        json!({
            "file": self.file,
            "valid": self.playbook.is_some(),
            "path": self.playbook.as_ref().map(|playbook| playbook.metadata.path.as_str()),
            "problems": self.problems,
        })
    }

    fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines = problems::lines(&self.file, &self.problems, paint);
        lines.push(match &self.playbook {
            Some(playbook) => {
                let about = format!("{} with {} steps", playbook.metadata.path, playbook.steps.len());
                let about = format!("{about}, {}", problems::count(&self.problems));
                format!("{} {}: {about}", paint.good("✓"), self.file)
            }
            None => format!("{} {}: {}", paint.bad("✗"), self.file, problems::count(&self.problems)),
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, strict: bool) -> Checked {
        check(&Source { file: "a.yaml".into(), text: text.to_owned() }, strict)
    }

    const GOOD: &str = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a, path: demo/a}\nextra: 1\n\
                        workflow:\n- step: start\n  tool: {kind: noop}\n";

    #[test]
    fn a_field_that_its_tool_does_not_take_is_told_with_the_one_that_was_meant() {
        let slip = checked(&GOOD.replace("kind: noop", "kind: http, urk: x"), false);
        let lines = slip.lines(Paint::plain());
        assert!(slip.playbook.is_none(), "`url` is missing");
        assert!(
            lines.iter().any(|line| line.starts_with("a.yaml:7:22: warning") && line.contains("`url`?")),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains("error: workflow[0].tool: `url` is missing")), "{lines:#?}");
    }

    #[test]
    fn every_problem_has_its_place_and_a_warning_is_none_in_the_way() {
        let good = checked(GOOD, false);
        assert_eq!(
            good.lines(Paint::plain()),
            ["a.yaml:4:1: warning: extra: unknown key `extra` is ignored", "✓ a.yaml: demo/a with 1 steps, 1 warning"]
        );
        assert_eq!(good.json()["path"], "demo/a");
        let strict = checked(GOOD, true);
        assert!(strict.playbook.is_none());
        let wrong = checked(&GOOD.replace("kind: noop", "knd: noop"), false);
        let lines = wrong.lines(Paint::plain());
        assert!(lines.iter().any(|line| line.starts_with("a.yaml:7:")), "{lines:#?}");
        assert!(lines.last().is_some_and(|line| line.starts_with("✗ a.yaml: ")), "{lines:#?}");
    }
    #[test]
    fn a_playbook_without_a_path_is_told_once() {
        let lost = checked(&GOOD.replace("extra: 1\n", "").replace("kind: noop", "kind: playbook"), false);
        let lines = lost.lines(Paint::plain());
        assert!(lost.playbook.is_none() && lost.problems.len() == 1, "{lines:#?}");
        assert!(lines[0].contains("`path` or `catalog_id` is missing"), "{lines:#?}");
    }
}
