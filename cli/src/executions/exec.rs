//! `noetl exec`: starts a playbook of the catalog on a server.
//!
//! Alone it prints the id and is done. With `--wait` it waits for the end and prints the result; with `--follow` it shows
//! the steps meanwhile. Whoever stops waiting does not stop the execution.

use std::time::Duration;

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use reqwest::Method;
use serde_json::{Value, json};

use super::stream::{Live, Remote};
use super::{at, ending};
use crate::args::Context;
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::playbook::Whose;
use crate::run::follow::follow;
use crate::run::payload::Payload;
use crate::run::view::View;

const EXAMPLES: &str = "\
Examples:
  noetl exec orders/import --set city=Oslo
  noetl exec orders/import@3 --payload @payload.json --wait 60
  noetl exec orders/import --follow
  id=$(noetl exec orders/import --json | jq -r .execution_id)

With --wait or --follow it ends with 1 if the execution fails or is cancelled. Ctrl-C stops the waiting and not the
execution; `noetl cancel ID` does that.";

/// Seconds that one request waits; beyond them the events are watched.
const ONE_REQUEST: u64 = 30;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Exec {
    /// Path of the playbook, or PATH@VERSION.
    #[arg(value_name = "PATH|CATALOG_ID")]
    playbook: String,
    /// The version [default: the newest].
    #[arg(long)]
    version: Option<u32>,
    #[command(flatten)]
    payload: Payload,
    /// Wait for the end, at most so many seconds, and print the result.
    #[arg(long, value_name = "SECS", num_args = 0..=1, value_parser = seconds)]
    wait: Option<Option<u64>>,
    /// Show the steps until the end, then print the result; with --json one event a line, and the result last.
    #[arg(short, long, conflicts_with = "wait")]
    follow: bool,
    /// The pool its commands run in [default: what the playbook says, else `shared`].
    #[arg(long)]
    pool: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

fn seconds(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number of seconds; write the path before --wait"))
}

impl Exec {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let body = self.body()?;
        if self.follow {
            let id = id_of(&self.post(&client, &body, None).await?)?;
            return follow_to_end(&client, id, context).await;
        }
        let Some(limit) = self.wait else {
            let answer = self.post(&client, &body, None).await?;
            let id = id_of(&answer)?;
            if !context.output.json {
                let known = if answer["status"] == "duplicate" { "was started before" } else { "is started" };
                context.output.say(format_args!("execution {id} {known}; `noetl status {id}` shows it"));
            }
            context.output.result(&answer, |_| id.to_string());
            return Ok(());
        };
        let answer = self.post(&client, &body, Some(limit.unwrap_or(ONE_REQUEST).min(ONE_REQUEST))).await?;
        let id = id_of(&answer)?;
        let answer = match (is_over(&answer), limit) {
            (true, _) => answer,
            (false, None) => end_of(&client, id, None).await?,
            (false, Some(limit)) => end_of(&client, id, Some(limit.saturating_sub(ONE_REQUEST))).await?,
        };
        print_end(&answer, context)
    }

    fn body(&self) -> Outcome<Value> {
        let mut body = json!({ "payload": self.payload.value()? });
        match self.playbook.split_once('@') {
            Some(_) if self.version.is_some() => {
                return Err(
                    Failure::usage(format!("`{}` names a version already", self.playbook)).next("leave out --version")
                );
            }
            Some(_) => body["catalog_id"] = json!(self.playbook),
            None => body["path"] = json!(self.playbook),
        }
        if let Some(version) = self.version {
            body["version"] = json!(version);
        }
        if let Some(pool) = &self.pool {
            body["execution_pool"] = json!(pool);
        }
        Ok(body)
    }

    async fn post(&self, client: &Client, body: &Value, wait: Option<u64>) -> Outcome<Value> {
        let wait = wait.map(|wait| wait.to_string());
        let query = [("wait", wait.as_deref()), ("tenant", self.whose.tenant())];
        let request = client.request(Method::POST, "/api/execute", &query).json(body);
        client.json(client.send(request).await?).await
    }
}

fn id_of(answer: &Value) -> Outcome<ExecutionId> {
    let id = answer["execution_id"].as_str().and_then(|id| id.parse().ok());
    id.ok_or_else(|| Failure::failed("the server did not name the execution it started"))
}

fn is_over(answer: &Value) -> bool {
    let status = answer["status"].as_str().unwrap_or_default().to_lowercase();
    matches!(status.as_str(), "completed" | "failed" | "cancelled")
}

/// Waits for the end, at most so many seconds.
async fn end_of(client: &Client, id: ExecutionId, limit: Option<u64>) -> Outcome<Value> {
    let ending = async {
        let mut live = Live::new(client, id, 0);
        while live.next().await?.is_some() {}
        Ok::<_, Failure>(())
    };
    match limit {
        None => ending.await?,
        Some(limit) => match tokio::time::timeout(Duration::from_secs(limit), ending).await {
            Ok(ended) => ended?,
            Err(_) => {
                let mut failure = Failure::failed(format!("execution {id} still runs"))
                    .next(format!("`noetl status {id}` shows it, `noetl why {id}` what it waits for"));
                let detail = failure.message.clone();
                failure.problem = Some(Box::new(
                    json!({ "code": "still_running", "detail": detail, "execution_id": id.to_string() }),
                ));
                return Err(failure);
            }
        },
    }
    ended(client, id).await
}

/// The result of an execution that has ended.
async fn ended(client: &Client, id: ExecutionId) -> Outcome<Value> {
    let shown = client.get(&at(id), &[("consistency", Some("strong"))]).await?;
    let status = shown["status"].as_str().unwrap_or_default().to_lowercase();
    // The failure has its code; the error of a row is a sentence.
    let error = if shown["failure"].is_null() { &shown["error"] } else { &shown["failure"] };
    Ok(json!({ "execution_id": id.to_string(), "status": status, "output": shown["output"], "error": error }))
}

async fn follow_to_end(client: &Client, id: ExecutionId, context: &Context) -> Outcome {
    let output = context.output;
    let mut view = View::new(output, false);
    let root = id.to_string();
    let following = follow(Remote(client.clone()), &root, |event| match output.json {
        true => output.line(event),
        false => view.event(event),
    });
    let followed = following.await;
    view.close();
    followed?;
    let answer = ended(client, id).await?;
    if output.json {
        output.line(&answer);
        return ending(&answer).map_or(Ok(()), Err);
    }
    print_end(&answer, context)
}

fn print_end(answer: &Value, context: &Context) -> Outcome {
    let failure = ending(answer);
    if context.output.json {
        context.output.value(answer);
    } else if failure.is_none() {
        context.output.value(&answer["output"]);
    }
    failure.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        exec: Exec,
    }

    fn exec(args: &[&str]) -> Exec {
        Line::try_parse_from([&["exec"], args].concat()).expect("a command line").exec
    }

    #[test]
    fn a_playbook_is_named_by_path_or_by_path_and_version() {
        assert_eq!(exec(&["a/b"]).body().expect("valid"), json!({"payload": {}, "path": "a/b"}));
        assert_eq!(
            exec(&["a/b", "--version", "3", "--set", "x.y=1", "--pool", "big"]).body().expect("valid"),
            json!({"payload": {"x": {"y": 1}}, "path": "a/b", "version": 3, "execution_pool": "big"})
        );
        assert_eq!(exec(&["a/b@3"]).body().expect("valid"), json!({"payload": {}, "catalog_id": "a/b@3"}));
        assert!(exec(&["a/b@3", "--version", "3"]).body().is_err());
    }

    #[test]
    fn waiting_has_a_limit_or_none() {
        assert_eq!(exec(&["a"]).wait, None);
        assert_eq!(exec(&["a", "--wait"]).wait, Some(None));
        assert_eq!(exec(&["a", "--wait", "5"]).wait, Some(Some(5)));
        let error = Line::try_parse_from(["exec", "--wait", "a/b"]).expect_err("no number").to_string();
        assert!(error.contains("write the path before --wait"), "{error}");
    }

    #[test]
    fn only_an_end_is_an_end() {
        assert!(is_over(&json!({"status": "completed"})) && is_over(&json!({"status": "CANCELLED"})));
        assert!(
            !is_over(&json!({"status": "started"})) && !is_over(&json!({"status": "running"})) && !is_over(&json!({}))
        );
    }
}
