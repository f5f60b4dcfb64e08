//! `noetl why`: what led an execution to where it is, from the outcome back to the start.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::Value;

use super::at;
use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{Paint, cell, one_line, printable, short_digest};

const EXAMPLES: &str = "\
Examples:
  noetl why 338955219312345088
  noetl why 338955219312345088 --json | jq '.chain[] | select(.plugin)'

For an execution that still runs it tells what it waits for.";

/// Links shown of a long chain: the newest ones, and the first ones of all.
const NEWEST: usize = 30;
const OLDEST: usize = 5;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Why {
    /// The execution.
    id: ExecutionId,
}

impl Why {
    pub async fn run(self, context: &Context) -> Outcome {
        let answer = context.client()?.get(&format!("{}/why", at(self.id)), &[]).await?;
        context.output.result(&answer, |paint| text(&answer, paint));
        Ok(())
    }
}

/// The headline, the chain, and what is waited for.
pub fn text(answer: &Value, paint: Paint) -> String {
    let headline = format!("execution {} {}", cell(&answer["execution_id"]), cell(&answer["headline"]));
    let mut lines = vec![match answer["status"].as_str() {
        Some("failed" | "cancelled") => paint.bad(printable(&headline)),
        _ => paint.bold(printable(&headline)),
    }];
    let chain = answer["chain"].as_array().map_or(&[][..], Vec::as_slice);
    if !chain.is_empty() {
        lines.push(paint.dim("what led to it, the last first:"));
    }
    let hidden = chain.len().saturating_sub(NEWEST + OLDEST);
    for (index, link) in chain.iter().enumerate() {
        match index.checked_sub(NEWEST) {
            Some(0) if hidden > 0 => lines.push(paint.dim(format_args!("  … {hidden} more, all with --json"))),
            Some(beyond) if beyond < hidden => {}
            _ => lines.push(self::link(link, paint)),
        }
    }
    lines.extend(waiting(&answer["waiting"], paint));
    lines.join("\n")
}

/// Time, event, step or command, how it came there, who did it, and what went wrong.
fn link(link: &Value, paint: Paint) -> String {
    let subject = match (&link["command"], &link["step"]) {
        (Value::Null, step) if step.is_null() => String::new(),
        (Value::Null, step) => printable(&cell(step)),
        (command, _) => printable(&cell(command)),
    };
    let kind = format!("{:<20}", printable(&cell(&link["event_type"])));
    let error = link["error"]["message"].as_str();
    let kind = if error.is_some() { paint.bad(kind) } else { kind };
    let mut line = format!("  {} {kind} {subject}", paint.dim(printable(&cell(&link["at"]))));
    let mut add = |text: String| line.push_str(&format!("  {text}"));
    if let Some(from) = link["arc"]["from"].as_str() {
        let arc = link["arc"]["index"].as_u64().map(|index| format!(", arc {index}")).unwrap_or_default();
        add(paint.dim(format_args!("from {}{arc}", one_line(from, 60))));
    }
    if let Some(plugin) = link["plugin"].as_str() {
        let digest = link["digest"].as_str().map(|digest| format!(" {}", short_digest(digest))).unwrap_or_default();
        add(paint.dim(format_args!("{}{}", one_line(plugin, 80), printable(&digest))));
    }
    if let Some(child) = link["child_execution_id"].as_str() {
        add(format!("see `noetl why {}`", one_line(child, 40)));
    }
    if let Some(message) = error {
        let code = link["error"]["code"].as_str().map(|code| format!("{code}: ")).unwrap_or_default();
        add(paint.bad(one_line(&format!("{code}{message}"), 200)));
    }
    line.trim_end().to_owned()
}

fn waiting(waiting: &Value, paint: Paint) -> Vec<String> {
    let list = |name: &str| waiting[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| one_line(&cell(value), 160);
    let mut lines = Vec::new();
    for row in list("commands") {
        lines.push(format!("  waits for command {} since {}", text(&row["command"]), text(&row["since"])));
    }
    for row in list("children") {
        let (id, path) = (text(&row["execution_id"]), text(&row["path"]));
        lines.push(format!("  waits for {path}, `noetl why {id}` tells why"));
    }
    for row in list("parked") {
        let message =
            row["message"].as_str().map(|message| format!(": {}", one_line(message, 160))).unwrap_or_default();
        let until = row["until"].as_str().map(|until| format!(" until {}", one_line(until, 40))).unwrap_or_default();
        lines.push(format!("  {} waits to be resumed{until}{message}", paint.warn(text(&row["step"]))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_chain_reads_from_the_outcome_to_the_start() {
        let answer = json!({
            "execution_id": "7", "status": "failed", "headline": "failed because step `load` failed: timeout: no answer",
            "chain": [
                {"at": "T3", "event_type": "playbook.failed", "error": {"code": "step_failed", "message": "`load` failed"}},
                {"at": "T2", "event_type": "command.failed", "step": "load", "command": "load#1~2",
                 "plugin": "tools/http@0.1.0", "digest": "cd".repeat(32), "child_execution_id": null,
                 "error": {"code": "timeout", "message": "no\nanswer"}},
                {"at": "T1", "event_type": "step.enter", "step": "load", "arc": {"from": "start", "index": 0}, "error": null},
                {"at": "T0", "event_type": "workflow.initialized", "step": null, "command": null},
            ],
        });
        assert_eq!(
            text(&answer, Paint::plain()).lines().collect::<Vec<_>>(),
            [
                "execution 7 failed because step `load` failed: timeout: no answer",
                "what led to it, the last first:",
                "  T3 playbook.failed        step_failed: `load` failed",
                "  T2 command.failed       load#1~2  tools/http@0.1.0 cdcdcdcdcdcd  timeout: no answer",
                "  T1 step.enter           load  from start, arc 0",
                "  T0 workflow.initialized",
            ]
        );
    }

    #[test]
    fn a_long_chain_is_shown_at_its_ends_and_what_is_waited_for_below() {
        let chain: Vec<_> = (0..100)
            .map(|number| json!({"at": format!("T{number}"), "event_type": "step.enter", "step": "a"}))
            .collect();
        let answer = json!({
            "execution_id": "7", "status": "running", "headline": "running: waits for 1 parked step", "chain": chain,
            "waiting": {"commands": [{"command": "b#1", "since": "T9"}], "children": [{"execution_id": "9", "path": "a/b"}],
                        "parked": [{"step": "ask", "message": "ship it?", "until": null}]},
        });
        let text = text(&answer, Paint::plain());
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 2 + NEWEST + 1 + OLDEST + 3, "{text}");
        assert_eq!(lines[2 + NEWEST], "  … 65 more, all with --json");
        assert!(lines[2 + NEWEST + 1].contains("T95"), "{text}");
        assert!(text.ends_with("  ask waits to be resumed: ship it?"), "{text}");
    }
}
