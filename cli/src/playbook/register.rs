//! `noetl register`: playbooks into the catalog of a server, each as the next version of its path.
//!
//! Of many files all are tried, so that one slip does not hide the next; those that are right are registered. A text that
//! the path means already is left as it is, so registering a folder again changes nothing.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::files::{Source, collect};
use super::{Whose, problems};
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Paint, cell};

const EXAMPLES: &str = "\
Examples:
  noetl register orders.yaml
  noetl register playbooks/
  noetl register orders.yaml && noetl exec orders/import --follow";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Register {
    /// Files, or folders with playbooks below them.
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,
    /// Refuse keys nobody knows, which are warnings otherwise.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    whose: Whose,
}

impl Register {
    pub async fn run(self, context: &Context) -> Outcome {
        let sources = collect(&self.files)?;
        let client = context.client()?;
        let paint = context.output.stdout_paint();
        let mut answers = Vec::new();
        let mut refused = Vec::new();
        for source in &sources {
            match self.send(&client, source).await {
                Ok(mut answer) => {
                    answer["file"] = json!(source.name());
                    tell(&answer, source, context, paint);
                    answers.push(answer);
                }
                // The same would be true of every other file.
                Err(failure) if matches!(failure.exit, Exit::Unreachable | Exit::Denied) => return Err(failure),
                Err(failure) => refused.push((source, failure)),
            }
        }
        if context.output.json {
            context.output.value(&json!({ "registered": answers }));
        }
        if refused.is_empty() { Ok(()) } else { Err(refusal(refused, sources.len(), context)) }
    }

    async fn send(&self, client: &Client, source: &Source) -> Outcome<Value> {
        let query = [("strict", self.strict.then_some("true")), ("tenant", self.whose.tenant())];
        let body = json!({ "content": source.text, "resource_type": "Playbook" });
        let request = client.request(Method::POST, "/api/catalog/register", &query).json(&body);
        let response = client.send(request).await?;
        let created = response.status() == StatusCode::CREATED;
        let mut answer = client.json(response).await?;
        answer["created"] = json!(created);
        Ok(answer)
    }
}

/// What became of one file, for people.
fn tell(answer: &Value, source: &Source, context: &Context, paint: Paint) {
    if context.output.json {
        return;
    }
    for line in problems::lines(&source.name(), list(&answer["warnings"]), context.output.stderr_paint()) {
        context.output.say(line);
    }
    let what = if answer["created"] == false { "was there already" } else { "is registered" };
    context.output.print(format_args!(
        "{} version {} {}",
        cell(&answer["path"]),
        cell(&answer["version"]),
        paint.good(what)
    ));
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn refusal(refused: Vec<(&Source, Failure)>, all: usize, context: &Context) -> Failure {
    let paint = context.output.stderr_paint();
    let mut documents = Vec::new();
    let mut lines = Vec::new();
    for (source, failure) in &refused {
        let problem = failure.problem.as_deref().cloned().unwrap_or_else(|| json!({ "detail": failure.message }));
        let found = list(&problem["problems"]);
        match found.is_empty() {
            true => lines.push(format!("{}: {failure}", source.name())),
            false => lines.extend(problems::lines(&source.name(), found, paint)),
        }
        documents.push(json!({ "file": source.name(), "problem": problem }));
    }
    if !context.output.json {
        lines.iter().for_each(|line| context.output.say(line));
    }
    let mut failure = Failure::failed(format!("{} of {all} playbooks were refused", refused.len()))
        .next("`noetl validate FILE` checks without a server");
    failure.problem =
        Some(Box::new(json!({ "code": "invalid_playbook", "detail": failure.message, "refused": documents })));
    failure
}
