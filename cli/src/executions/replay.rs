//! `noetl replay`: the state of an execution at any moment, rebuilt from its events, with checksums.
//!
//! Two replays with the same checksum are the same state; that is how a rebuilt table, a copy of a log or another
//! server is compared.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::Value;

use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{Paint, cell, printable, table};
use crate::playbook::Whose;

const EXAMPLES: &str = "\
Examples:
  noetl replay 338955219312345088
  noetl replay 338955219312345088 --at-event 31 --json | jq .stages
  noetl replay 338955219312345088 --at-time 2026-03-01T12:00:00Z";

/// The parts of a state, in the order they are shown.
const SURFACES: [&str; 6] = ["execution", "stages", "frames", "commands", "loops", "business_objects"];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Replay {
    /// The execution.
    id: ExecutionId,
    /// The state after this event, as `noetl events` shows its id.
    #[arg(long, value_name = "EVENT_ID", group = "moment")]
    at_event: Option<u64>,
    /// The state at this position of the whole log.
    #[arg(long, value_name = "POSITION", group = "moment")]
    at_position: Option<u64>,
    /// The state at this time, such as 2026-03-01T12:00:00Z.
    #[arg(long, value_name = "TIME", group = "moment", value_parser = time)]
    at_time: Option<String>,
    /// Say of each result that is kept outside of the events whether it is there.
    #[arg(long)]
    resolve: bool,
    #[command(flatten)]
    whose: Whose,
}

fn time(text: &str) -> Result<String, String> {
    let time: jiff::Timestamp = text
        .parse()
        .map_err(|_| format!("`{text}` is not a time: write for example 2026-03-01T12:00:00Z, with the time zone"))?;
    Ok(time.to_string())
}

impl Replay {
    pub async fn run(self, context: &Context) -> Outcome {
        let id = self.id.to_string();
        let (event, position) = (self.at_event.map(|id| id.to_string()), self.at_position.map(|at| at.to_string()));
        let query = [
            ("execution_id", Some(id.as_str())),
            ("as_of_event_id", event.as_deref()),
            ("as_of_position", position.as_deref()),
            ("as_of_time", self.at_time.as_deref()),
            ("resolve_payloads", self.resolve.then_some("true")),
            ("tenant_id", self.whose.tenant()),
        ];
        let answer = context.client()?.get("/api/replay/state", &query).await?;
        context.output.result(&answer, |paint| text(&answer, paint));
        Ok(())
    }
}

fn text(answer: &Value, paint: Paint) -> String {
    let execution = &answer["execution"];
    let mut lines = vec![match answer["event_count"].as_u64() {
        Some(0) | None => format!("execution {} had no events yet", cell(&answer["execution_id"])),
        Some(count) => format!(
            "execution {} of {} was {} after {count} events, the last {} {}",
            cell(&answer["execution_id"]),
            cell(&execution["path"]),
            paint.bold(printable(&cell(&execution["status"]).to_lowercase())),
            cell(&answer["last_event_id"]),
            cell(&answer["last_event_type"])
        ),
    }];
    let rows = SURFACES.iter().map(|name| {
        let rows = answer[*name].as_object().map_or(0, serde_json::Map::len);
        let rows = if *name == "execution" { String::new() } else { rows.to_string() };
        [(*name).to_owned(), rows, cell(&answer["projection_checksums"][*name])]
    });
    lines.push(table(["surface", "rows", "sha256"], rows));
    lines.push(format!("checksum {}", cell(&answer["checksum"])));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_is_told_by_its_checksums() {
        let answer = json!({
            "execution_id": "7", "event_count": 12, "last_event_id": "31", "last_event_type": "step.exit",
            "execution": {"path": "demo/a", "status": "RUNNING"}, "stages": {"a#1": {}, "b#1": {}}, "checksum": "ff",
            "projection_checksums": {"execution": "aa", "stages": "bb"},
        });
        let text = text(&answer, Paint::plain());
        assert!(
            text.starts_with("execution 7 of demo/a was running after 12 events, the last 31 step.exit\n"),
            "{text}"
        );
        let stages: Vec<_> =
            text.lines().find(|line| line.starts_with("stages")).expect("a line").split_whitespace().collect();
        assert_eq!(stages, ["stages", "2", "bb"]);
        assert!(text.ends_with("checksum ff"), "{text}");
    }

    #[test]
    fn a_time_is_one_or_is_refused() {
        assert_eq!(time("2026-03-01T13:00:00+01:00").expect("a time"), "2026-03-01T12:00:00Z");
        assert!(time("yesterday").expect_err("no time").contains("2026-03-01T12:00:00Z"));
    }
}
