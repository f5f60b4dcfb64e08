//! `noetl events`: what happened in an execution, and with `--follow` what happens from now on.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::{Value, json};

use super::at;
use super::stream::Live;
use crate::args::Context;
use crate::client::Client;
use crate::failure::Outcome;
use crate::output::{Output, Paint, cell, one_line, printable};

const EXAMPLES: &str = "\
Examples:
  noetl events 338955219312345088
  noetl events 338955219312345088 --type 'step.*' --type playbook.failed
  noetl events 338955219312345088 --follow --json | jq -c 'select(.status == \"FAILED\")'";

/// Events asked for at once.
const PAGE: u64 = 1000;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Events {
    /// The execution.
    id: ExecutionId,
    /// Go on with new events until the execution ends; with --json one a line.
    #[arg(short, long)]
    follow: bool,
    /// Only events after this one.
    #[arg(long, value_name = "EVENT_ID", default_value_t = 0)]
    after: u64,
    /// Only events of this type; a `*` at the end stands for any rest. Can be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Most events to show [default: all].
    #[arg(long, conflicts_with = "follow")]
    limit: Option<usize>,
}

impl Events {
    pub async fn run(self, context: &Context) -> Outcome {
        let client = context.client()?;
        let output = context.output;
        if self.follow {
            let mut live = Live::new(&client, self.id, self.after);
            while let Some(event) = live.next().await? {
                if self.wants(&event) {
                    show(&event, &output);
                }
            }
            return Ok(());
        }
        let (events, last, complete) = self.all(&client).await?;
        let value = json!({ "events": events, "last_event": last.to_string(), "complete": complete });
        output.result(&value, |paint| events.iter().map(|event| text(event, paint)).collect::<Vec<_>>().join("\n"));
        Ok(())
    }

    fn wants(&self, event: &Value) -> bool {
        let kind = event["event_type"].as_str().unwrap_or_default();
        self.types.is_empty() || self.types.iter().any(|wanted| matches(wanted, kind))
    }

    /// Page after page.
    async fn all(&self, client: &Client) -> Outcome<(Vec<Value>, u64, bool)> {
        let (path, limit) = (format!("{}/events", at(self.id)), PAGE.to_string());
        let most = self.limit.unwrap_or(usize::MAX);
        let (mut events, mut last) = (Vec::new(), self.after);
        loop {
            let after = last.to_string();
            let mut page =
                client.get(&path, &[("after", Some(after.as_str())), ("limit", Some(limit.as_str()))]).await?;
            let complete = page["complete"] == true;
            let Some(found) = page["events"].as_array_mut().map(std::mem::take).filter(|found| !found.is_empty())
            else {
                return Ok((events, last, complete));
            };
            for event in found {
                if events.len() == most {
                    return Ok((events, last, false));
                }
                last = id_of(&event).unwrap_or(last);
                if self.wants(&event) {
                    events.push(event);
                }
            }
            if complete {
                return Ok((events, last, true));
            }
        }
    }
}

fn id_of(event: &Value) -> Option<u64> {
    event["event_id"].as_str()?.parse().ok()
}

fn matches(wanted: &str, kind: &str) -> bool {
    wanted.strip_suffix('*').map_or(wanted == kind, |start| kind.starts_with(start))
}

fn show(event: &Value, output: &Output) {
    if output.json { output.line(event) } else { output.print(text(event, output.stdout_paint())) }
}

/// One line for people: time, id, type, step or command, and what else matters about it.
fn text(event: &Value, paint: Paint) -> String {
    let kind = format!("{:<22}", printable(&cell(&event["event_type"])));
    let kind = match event["status"].as_str() {
        Some("FAILED" | "CANCELLED") => paint.bad(kind),
        Some("COMPLETED") => paint.good(kind),
        _ => kind,
    };
    let meta = &event["meta"];
    let subject = if meta["command_id"].is_null() { &event["node_name"] } else { &meta["command_id"] };
    let mut line = format!(
        "{} {} {kind} {}",
        paint.dim(printable(&cell(&event["created_at"]))),
        paint.dim(format_args!("{:>6}", printable(&cell(&event["event_id"])))),
        printable(&cell(subject))
    );
    let mut add = |text: String| line.push_str(&format!("  {text}"));
    if let Some(from) = meta["from"].as_str() {
        add(paint.dim(format_args!("from {}", one_line(from, 60))));
    }
    if let Some(ms) = meta["duration_ms"].as_u64() {
        add(paint.dim(crate::output::took(ms)));
    }
    if let Some(plugin) = meta["plugin"].as_str() {
        add(paint.dim(one_line(plugin, 80)));
    }
    if let Some(message) = event["error"]["message"].as_str() {
        add(paint.bad(one_line(message, 200)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_whole_or_a_beginning() {
        assert!(matches("step.exit", "step.exit") && !matches("step.exit", "step.exited"));
        assert!(matches("step.*", "step.enter") && !matches("step.*", "loop.item") && matches("*", "x"));
    }

    #[test]
    fn an_event_is_one_line() {
        let event = json!({
            "event_id": "31", "created_at": "2026-03-01T12:00:00.000Z", "event_type": "call.error", "status": "FAILED",
            "node_name": "load", "error": {"code": "timeout", "message": "no\nanswer"},
            "meta": {"command_id": "load#1~2", "duration_ms": 1500, "plugin": "tools/http@0.1.0"},
        });
        assert_eq!(
            text(&event, Paint::plain()),
            "2026-03-01T12:00:00.000Z     31 call.error             load#1~2  1.5 s  tools/http@0.1.0  no answer"
        );
    }
}
