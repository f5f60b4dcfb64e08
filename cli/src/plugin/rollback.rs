//! `noetl plugin rollback`: a channel moves back; the next call takes the other version.

use clap::Args;
use noetl_contract::{PluginPath, Version};
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;
use crate::output::cell;

#[derive(Debug, Args)]
pub struct Rollback {
    path: PluginPath,
    /// The version to go back to [default: the one the channel had before].
    #[arg(long, value_name = "VERSION")]
    to: Option<Version>,
    /// The channel to move [default: stable].
    #[arg(long)]
    channel: Option<String>,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Rollback {
    pub async fn run(self, context: &Context) -> Outcome {
        let body = json!({ "to": self.to, "channel": self.channel, "reason": self.reason });
        let answer = context.client()?.post(&super::verb(&self.path, "rollback"), &body).await?;
        context.output.result(&answer, |_| {
            format!(
                "{}: {} went from {} to {}",
                self.path,
                channel(&answer),
                cell(&answer["from"]),
                cell(&answer["to"])
            )
        });
        Ok(())
    }
}

fn channel(answer: &serde_json::Value) -> &str {
    answer["channel"].as_str().unwrap_or("the channel")
}
