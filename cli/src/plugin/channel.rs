//! `noetl plugin channel`: a channel moves to a version.

use clap::Args;
use noetl_contract::{PluginPath, Version};
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;

#[derive(Debug, Args)]
pub struct Channel {
    path: PluginPath,
    /// Such as `stable` or `canary`; made when it is not there.
    channel: String,
    version: Version,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Channel {
    pub async fn run(self, context: &Context) -> Outcome {
        let body = json!({ "channel": self.channel, "version": self.version, "reason": self.reason });
        let answer = context.client()?.post(&super::verb(&self.path, "channel"), &body).await?;
        context.output.result(&answer, |_| format!("{}: {} is {} now", self.path, self.channel, self.version));
        Ok(())
    }
}
