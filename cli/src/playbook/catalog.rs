//! `noetl catalog`: the playbooks a server has.

use clap::Subcommand;
use reqwest::Method;
use serde_json::Value;

use super::Whose;
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::output::{cell, one_line, printable, short_digest, table, time_cell};

const LIST_EXAMPLES: &str = "\
Examples:
  noetl catalog list
  noetl catalog list --prefix orders/ --json | jq -r '.entries[].catalog_id'";

const SHOW_EXAMPLES: &str = "\
Examples:
  noetl catalog show orders/import > orders.yaml
  noetl catalog show orders/import --version 3 --json";

const DELETE_EXAMPLES: &str = "\
Examples:
  noetl catalog delete orders/import --version 3    # the path means the newest that is left
  noetl catalog delete orders/import                # all versions; `noetl catalog restore` brings them back
  noetl catalog delete orders/import --purge        # for good, once nothing runs them";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// List playbooks, the newest version of each.
    #[command(after_help = LIST_EXAMPLES)]
    List {
        /// Only paths that start with this.
        #[arg(long)]
        prefix: Option<String>,
        /// Those that were deleted too.
        #[arg(long)]
        archived: bool,
        /// Most playbooks to show.
        #[arg(long, default_value_t = 100)]
        limit: u32,
        #[command(flatten)]
        whose: Whose,
    },
    /// Print the text of a playbook.
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Path of the playbook.
        path: String,
        /// The version [default: the newest].
        #[arg(long)]
        version: Option<u32>,
        #[command(flatten)]
        whose: Whose,
    },
    /// List the versions of a playbook.
    Versions {
        /// Path of the playbook.
        path: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Take a version, or all, out of use; executions that run go on.
    #[command(after_help = DELETE_EXAMPLES)]
    Delete {
        /// Path of the playbook.
        path: String,
        /// The version [default: all].
        #[arg(long)]
        version: Option<u32>,
        /// Delete for good instead of putting aside.
        #[arg(long)]
        purge: bool,
        #[command(flatten)]
        whose: Whose,
    },
    /// Bring back what was deleted and not purged.
    Restore {
        /// Path of the playbook.
        path: String,
        /// The version [default: all].
        #[arg(long)]
        version: Option<u32>,
        #[command(flatten)]
        whose: Whose,
    },
}

pub async fn run(command: Command, context: &Context) -> Outcome {
    let client = context.client()?;
    match command {
        Command::List { prefix, archived, limit, whose } => {
            let limit = limit.to_string();
            let query = [
                ("prefix", prefix.as_deref()),
                ("archived", archived.then_some("true")),
                ("limit", Some(limit.as_str())),
                ("tenant", whose.tenant()),
            ];
            let answer = client.get("/api/catalog", &query).await?;
            context.output.result(&answer, |_| entries(&answer));
            if !answer["next"].is_null() && !context.output.json {
                context.output.say("there are more: ask for them with --limit, or for fewer with --prefix");
            }
        }
        Command::Show { path, version, whose } => {
            let version = version.map(|version| version.to_string());
            let query = [("version", version.as_deref()), ("tenant", whose.tenant())];
            let answer = client.get(&at(&path, "")?, &query).await?;
            context.output.result(&answer, |_| printable(answer["content"].as_str().unwrap_or_default().trim_end()));
        }
        Command::Versions { path, whose } => {
            let answer = client.get(&at(&path, ":versions")?, &[("tenant", whose.tenant())]).await?;
            context.output.result(&answer, |_| entries(&answer));
        }
        Command::Delete { path, version, purge, whose } => {
            let query = [("purge", purge.then_some("true")), ("tenant", whose.tenant())];
            let number = version.map(|version| version.to_string());
            let query = [query[0], query[1], ("version", number.as_deref())];
            let answer = client.delete(&at(&path, "")?, &query).await?;
            let how = if purge { "deleted for good" } else { "deleted" };
            context.output.result(&answer, |_| changed(&answer, how));
        }
        Command::Restore { path, version, whose } => restore(&client, &path, version, &whose, context).await?,
    }
    Ok(())
}

async fn restore(client: &Client, path: &str, version: Option<u32>, whose: &Whose, context: &Context) -> Outcome {
    let number = version.map(|version| version.to_string());
    let query = [("version", number.as_deref()), ("tenant", whose.tenant())];
    let request = client.request(Method::POST, &at(path, ":restore")?, &query);
    let answer = client.json(client.send(request).await?).await?;
    context.output.result(&answer, |_| changed(&answer, "back"));
    Ok(())
}

/// What was done to which versions.
fn changed(answer: &Value, how: &str) -> String {
    let ids: Vec<_> = answer["changed"].as_array().into_iter().flatten().map(|row| cell(&row["catalog_id"])).collect();
    match ids.as_slice() {
        [] => format!("{} was so already", cell(&answer["path"])),
        [one] => format!("{one} is {how}"),
        many => format!("{} are {how}", many.join(", ")),
    }
}

/// The playbook's address in the API. What is no path is refused here, because it could mean another address.
fn at(path: &str, verb: &str) -> Outcome<String> {
    let known = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/');
    let whole = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !whole || !path.chars().all(known) {
        return Err(Failure::usage(format!("`{path}` is not the path of a playbook"))
            .next("`noetl catalog list` shows the paths; a version goes into --version"));
    }
    Ok(format!("/api/catalog/{path}{verb}"))
}

fn entries(answer: &Value) -> String {
    let rows = answer["entries"].as_array().or_else(|| answer["versions"].as_array()).cloned().unwrap_or_default();
    table(
        ["path", "version", "digest", "created", "by", "description"],
        rows.iter().map(|row| {
            let description = row["description"].as_str().map(|text| one_line(text, 60)).unwrap_or_default();
            let archived = if row["archived"] == true { "(deleted) " } else { "" };
            [
                cell(&row["path"]),
                cell(&row["version"]),
                short_digest(&cell(&row["digest"])),
                time_cell(&row["created_at"]),
                cell(&row["created_by"]),
                format!("{archived}{description}"),
            ]
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_become_addresses() {
        assert_eq!(at("orders/import", ":versions").expect("a path"), "/api/catalog/orders/import:versions");
        for bad in ["", "/", "a//b", "../tokens", "a/../b", "a b", "a:restore", "a?x=1", "a@3"] {
            assert!(at(bad, "").is_err(), "{bad:?} was accepted");
        }
    }
}
