//! `noetl plugin release`: ends a quarantine before its time.

use clap::Args;
use noetl_contract::PluginPath;
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;

#[derive(Debug, Args)]
pub struct Release {
    path: PluginPath,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Release {
    pub async fn run(self, context: &Context) -> Outcome {
        let answer =
            context.client()?.post(&super::verb(&self.path, "release"), &json!({ "reason": self.reason })).await?;
        context.output.result(&answer, |_| format!("{} may be called again", self.path));
        Ok(())
    }
}
