//! `noetl plugin list`.

use clap::Args;
use serde_json::Value;

use super::show::{capability_names, entry};
use crate::args::Context;
use crate::failure::Outcome;
use crate::output::{cell, short_digest, size, table, time_cell};

#[derive(Debug, Args)]
pub struct List {
    /// Only paths that start with this.
    #[arg(long)]
    prefix: Option<String>,
    /// Every version instead of those a channel serves.
    #[arg(long)]
    all_versions: bool,
}

impl List {
    pub async fn run(self, context: &Context) -> Outcome {
        let query = [("prefix", self.prefix.as_deref())];
        let mut answer = context.client()?.get("/api/plugins", &query).await?;
        if !self.all_versions
            && let Some(rows) = answer["plugins"].as_array_mut()
        {
            rows.retain(|row| row["channels"].as_array().is_some_and(|channels| !channels.is_empty()));
        }
        let rows = answer["plugins"].as_array().cloned().unwrap_or_default();
        context.output.result(&answer, |_| {
            table(
                ["path", "version", "channels", "world", "ring", "capabilities", "size", "digest", "pushed", "by"],
                rows.iter().map(cells),
            )
        });
        Ok(())
    }
}

fn cells(row: &Value) -> [String; 10] {
    let version = entry(row);
    let pushed = match version["pushed_at_ms"].as_u64() {
        Some(0) | None => "built in".to_owned(),
        Some(_) => time_cell(&version["pushed_at_ms"]),
    };
    [
        cell(&version["path"]),
        cell(&version["version"]),
        cell(&row["channels"]),
        cell(&version["manifest"]["world"]),
        cell(&version["ring"]),
        cell(&Value::from(capability_names(row))),
        version["size"].as_u64().map_or_else(|| cell(&version["size"]), size),
        short_digest(&cell(&version["digest"])),
        pushed,
        cell(&version["pushed_by"]),
    ]
}
