//! `noetl plugin bind`: a tenant's own plugin serves in place of a service, for that tenant alone.

use clap::Args;
use noetl_contract::{PluginPath, Tenant};
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["to", "none"])))]
pub struct Bind {
    /// The service to override, such as `system/auth`; its manifest must say `overridable`.
    service: PluginPath,
    /// The plugin that serves instead.
    #[arg(long, value_name = "PATH")]
    to: Option<PluginPath>,
    /// End the override.
    #[arg(long)]
    none: bool,
    /// The tenant it is for [default: the token's own].
    #[arg(long)]
    tenant: Option<Tenant>,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Bind {
    pub async fn run(self, context: &Context) -> Outcome {
        let body = json!({ "tenant": self.tenant, "to": self.to, "reason": self.reason });
        let answer = context.client()?.post(&super::verb(&self.service, "bind"), &body).await?;
        context.output.result(&answer, |_| match &self.to {
            Some(to) => format!("{} is served by {to}", self.service),
            None => format!("{} is served by itself again", self.service),
        });
        Ok(())
    }
}
