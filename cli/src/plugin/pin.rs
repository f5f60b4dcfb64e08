//! `noetl plugin pin`: a tenant stays on a version, whatever the channels do.

use clap::Args;
use noetl_contract::{PluginPath, Tenant, Version};
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["version", "none"])))]
pub struct Pin {
    path: PluginPath,
    version: Option<Version>,
    /// End the pin.
    #[arg(long)]
    none: bool,
    /// The tenant that is pinned [default: the token's own].
    #[arg(long)]
    tenant: Option<Tenant>,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Pin {
    pub async fn run(self, context: &Context) -> Outcome {
        let body = json!({ "tenant": self.tenant, "version": self.version, "reason": self.reason });
        let answer = context.client()?.post(&super::verb(&self.path, "pin"), &body).await?;
        context.output.result(&answer, |_| match &self.version {
            Some(version) => format!("{} is pinned to {version}", self.path),
            None => format!("{} follows its channel again", self.path),
        });
        Ok(())
    }
}
