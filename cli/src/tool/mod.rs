//! `noetl tool`: which tools playbooks can call, and how. All of it is what the tools say about themselves.

mod docs;
pub mod known;
mod show;

use clap::Subcommand;
use noetl_contract::description::Description;
use serde_json::{Value, json};

use crate::args::Context;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{cell, one_line, table};
use crate::playbook::Whose;

const EXAMPLES: &str = "\
Examples:
  noetl tool show postgres
  noetl tool show http --json | jq '.description.fields[].name'
  noetl tool show http --schema > http.schema.json";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the tools of a server.
    List {
        #[command(flatten)]
        whose: Whose,
        /// The tools that come with this command, without a server.
        #[arg(long)]
        offline: bool,
    },
    /// Show what a tool takes, answers with and fails with.
    #[command(after_help = EXAMPLES)]
    Show {
        /// The kind, as a step writes it.
        kind: String,
        #[command(flatten)]
        whose: Whose,
        /// Print the JSON schema of its fields, for editors.
        #[arg(long)]
        schema: bool,
        /// The tool that comes with this command, without a server.
        #[arg(long)]
        offline: bool,
    },
    /// Print docs/tools.md: the tools that come with this command.
    Docs,
}

pub async fn run(command: Command, context: &Context) -> Outcome {
    match command {
        Command::List { whose, offline } => {
            let answer = match offline {
                true => json!({ "tools": known::all().iter().map(|(kind, tool)| row(kind, tool)).collect::<Vec<_>>() }),
                false => context.client()?.get("/api/tools", &[("tenant", whose.tenant())]).await?,
            };
            let rows = answer["tools"].as_array().cloned().unwrap_or_default();
            context
                .output
                .result(&answer, |_| table(["kind", "version", "from", "what it does"], rows.iter().map(cells)));
        }
        Command::Show { kind, whose, schema, offline } => {
            let answer = find(&kind, &whose, offline, context).await?;
            let described = serde_json::from_value::<Description>(answer["description"].clone()).ok();
            match (schema, described) {
                (true, Some(tool)) => context.output.value(&tool.schema(&kind)),
                (true, None) => {
                    return Err(Failure::failed(format!("`{kind}` does not say what it takes"))
                        .next("a tool says it with the export `describe`"));
                }
                (false, tool) => context.output.result(&answer, |paint| show::page(&answer, tool.as_ref(), paint)),
            }
        }
        Command::Docs => context.output.raw(docs::markdown().as_bytes()),
    }
    Ok(())
}

async fn find(kind: &str, whose: &Whose, offline: bool, context: &Context) -> Outcome<Value> {
    if !offline {
        return context.client()?.get(&format!("/api/tools/{kind}"), &[("tenant", whose.tenant())]).await;
    }
    let tools = known::all();
    let tool = tools.get(kind).ok_or_else(|| {
        let failure = Failure::new(Exit::NotFound, format!("this command has no tool `{kind}`"));
        match crate::config::suggest::nearest(kind, tools.keys().map(String::as_str)) {
            Some(near) => failure.next(format!("did you mean `{near}`?")),
            None => failure.next("`noetl tool list --offline` shows those it has"),
        }
    })?;
    Ok(row(kind, tool))
}

/// In the form a server answers in.
fn row(kind: &str, tool: &Description) -> Value {
    json!({ "kind": kind, "source": "this command", "plugin": null, "version": null, "description": tool })
}

fn cells(tool: &Value) -> [String; 4] {
    let from = match (tool["source"].as_str(), &tool["plugin"]) {
        (Some("binding"), plugin) => format!("bound to {}", cell(plugin)),
        (Some("channel"), _) => "pushed".to_owned(),
        (Some("pin"), _) => "pinned".to_owned(),
        (Some(source), _) => source.to_owned(),
        (None, _) => "-".to_owned(),
    };
    let summary = match tool["description"]["summary"].as_str() {
        Some(summary) => one_line(summary, 80),
        None => one_line(&cell(&tool["problem"]), 80),
    };
    [cell(&tool["kind"]), cell(&tool["version"]), from, summary]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_whose_tool_it_is() {
        let bound = json!({"kind": "http", "version": "2.0.0", "source": "binding", "plugin": "acme/tools/http",
                           "description": {"summary": "Sends one request."}});
        assert_eq!(cells(&bound), ["http", "2.0.0", "bound to acme/tools/http", "Sends one request."]);
        let silent =
            json!({"kind": "x", "version": "1.0.0", "source": "channel", "plugin": "tools/x", "description": null});
        assert_eq!(cells(&silent), ["x", "1.0.0", "pushed", "-"]);
    }
}
