//! `noetl status`: one execution at a glance.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::Value;

use super::at;
use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{Paint, cell, one_line, table, time_ms, took};

const EXAMPLES: &str = "\
Examples:
  noetl status 338955219312345088
  noetl status 338955219312345088 --json | jq -r .status

Ends with 0 whatever the execution's status is; `noetl exec --wait` ends with 1 for one that failed.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Status {
    /// The execution.
    id: ExecutionId,
}

impl Status {
    pub async fn run(self, context: &Context) -> Outcome {
        let shown = context.client()?.get(&at(self.id), &[("consistency", Some("strong"))]).await?;
        context.output.result(&shown, |paint| text(&shown, paint));
        Ok(())
    }
}

/// A status in the colour of its meaning.
pub fn painted(status: &Value, paint: Paint) -> String {
    let text = cell(status).to_lowercase();
    match text.as_str() {
        "completed" => paint.good(text),
        "failed" | "cancelled" => paint.bad(text),
        "parked" => paint.warn(text),
        _ => text,
    }
}

/// How long it took or takes, from its own times.
pub fn duration(row: &Value) -> String {
    let given = row["duration_ms"].as_u64();
    let counted = || {
        let (from, to) = (time_ms(&row["started_at"])?, time_ms(&row["ended_at"])?);
        u64::try_from(to - from).ok()
    };
    given.or_else(counted).map_or_else(|| "-".to_owned(), took)
}

fn text(shown: &Value, paint: Paint) -> String {
    let mut lines = Vec::new();
    let mut put = |name: &str, value: String| lines.push(format!("{} {value}", paint.dim(format_args!("{name:<10}"))));
    put("execution", cell(&shown["execution_id"]));
    put("playbook", format!("{} version {}", cell(&shown["path"]), cell(&shown["version"])));
    put("status", painted(&shown["status"], paint));
    put("started", format!("{} by {}", cell(&shown["started_at"]), cell(&shown["requested_by"])));
    if !shown["ended_at"].is_null() {
        put("ended", format!("{} after {}", cell(&shown["ended_at"]), duration(shown)));
    } else if !shown["current_step"].is_null() {
        put("step", cell(&shown["current_step"]));
    }
    if !shown["parent_execution_id"].is_null() {
        put("parent", cell(&shown["parent_execution_id"]));
    }
    if let Some(error) = error(shown) {
        put("error", paint.bad(error));
    }
    for row in list(&shown["loops"]) {
        put("loop", loop_line(row));
    }
    let steps = list(&shown["steps"]);
    if !steps.is_empty() {
        lines.push(String::new());
        lines.push(table(
            ["step", "run", "status", "took", "error"],
            steps.iter().map(|row| {
                let run =
                    row["run"].as_u64().filter(|run| *run > 0).map_or_else(|| "-".to_owned(), |run| run.to_string());
                [
                    cell(&row["step"]),
                    run,
                    cell(&row["status"]).to_lowercase(),
                    step_took(row),
                    error(row).unwrap_or_default(),
                ]
            }),
        ));
    }
    lines.join("\n")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn error(row: &Value) -> Option<String> {
    let error = &row["error"];
    let text = error["message"].as_str().or_else(|| error.as_str()).filter(|text| !text.is_empty())?;
    Some(one_line(text, 200))
}

fn step_took(row: &Value) -> String {
    let given = row["duration_ms"].as_u64();
    let began = time_ms(&row["entered_at"]).or_else(|| time_ms(&row["started_at"]));
    let counted = || u64::try_from(time_ms(&row["ended_at"])? - began?).ok();
    given.or_else(counted).map_or_else(|| "-".to_owned(), took)
}

fn loop_line(row: &Value) -> String {
    let number = |name: &str| row[name].as_u64().unwrap_or(0);
    let (done, failed) = (number("succeeded") + number("failed"), number("failed"));
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let total = row["total"].as_u64().map_or_else(|| "?".to_owned(), |total| total.to_string());
    format!("{} {done}/{total}{failed}", cell(&row["step"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_execution_is_shown_with_its_steps() {
        let shown = json!({
            "execution_id": "7", "path": "demo/a", "version": 3, "status": "FAILED", "requested_by": "alice",
            "started_at": "2026-03-01T12:00:00.000Z", "ended_at": "2026-03-01T12:00:01.500Z", "error": "`load` failed",
            "parent_execution_id": null, "current_step": "load",
            "loops": [{"step": "load", "run": 1, "total": 3, "succeeded": 1, "failed": 2}],
            "steps": [{"step": "load", "run": 1, "status": "FAILED", "entered_at": "2026-03-01T12:00:00.000Z",
                       "ended_at": "2026-03-01T12:00:00.012Z", "error": "no\nanswer"},
                      {"step": "x", "run": 0, "status": "SKIPPED"}],
        });
        let text = text(&shown, Paint::plain());
        for wanted in [
            "execution  7\n",
            "playbook   demo/a version 3\n",
            "status     failed\n",
            "after 1.5 s",
            "error      `load` failed",
            "loop       load 3/3, 2 failed",
            "12 ms  no answer",
            "skipped",
        ] {
            assert!(text.contains(wanted), "`{wanted}` is not in:\n{text}");
        }
    }
}
