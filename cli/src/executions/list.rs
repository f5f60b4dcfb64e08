//! `noetl executions`: the newest executions, as a table.

use clap::Args;
use noetl_dispatch::engine::ExecutionId;
use serde_json::Value;

use super::status::{duration, error};
use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{cell, one_line, table};
use crate::playbook::Whose;

const EXAMPLES: &str = "\
Examples:
  noetl executions
  noetl executions --status failed --path orders/import --limit 20
  noetl executions --status running --json | jq -r '.executions[].execution_id'";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct List {
    /// Only those of this playbook.
    #[arg(long)]
    path: Option<String>,
    /// Only those with this status.
    #[arg(long, value_parser = ["running", "completed", "failed", "cancelled"], ignore_case = true)]
    status: Option<String>,
    /// Only children of this execution.
    #[arg(long, value_name = "ID")]
    parent: Option<ExecutionId>,
    /// Most executions to show.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// Go on after an earlier page: the `next` of its JSON.
    #[arg(long)]
    cursor: Option<String>,
    #[command(flatten)]
    whose: Whose,
}

impl List {
    pub async fn run(self, context: &Context) -> Outcome {
        let (limit, status) = (self.limit.to_string(), self.status.map(|status| status.to_uppercase()));
        let parent = self.parent.map(|parent| parent.to_string());
        let query = [
            ("path", self.path.as_deref()),
            ("status", status.as_deref()),
            ("parent", parent.as_deref()),
            ("limit", Some(limit.as_str())),
            ("cursor", self.cursor.as_deref()),
            ("tenant", self.whose.tenant()),
            ("consistency", Some("strong")),
        ];
        let answer = context.client()?.get("/api/executions", &query).await?;
        let rows = answer["executions"].as_array().cloned().unwrap_or_default();
        context.output.result(&answer, |_| {
            table(["id", "playbook", "version", "status", "started", "took", "at"], rows.iter().map(cells))
        });
        if let (Some(next), false) = (answer["next"].as_str(), context.output.json) {
            context.output.say(format_args!("there are more: --cursor {} shows them", one_line(next, 200)));
        }
        Ok(())
    }
}

fn cells(row: &Value) -> [String; 7] {
    // Where it is, or what it died of.
    let place = error(row).map_or_else(|| cell(&row["current_step"]), |error| one_line(&error, 60));
    [
        cell(&row["execution_id"]),
        cell(&row["path"]),
        cell(&row["version"]),
        cell(&row["status"]).to_lowercase(),
        cell(&row["started_at"]),
        duration(row),
        place,
    ]
}
