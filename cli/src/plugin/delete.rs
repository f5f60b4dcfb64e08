//! `noetl plugin delete`: removes a version that no channel, pin or binding uses.

use clap::Args;
use noetl_contract::{PluginPath, Version};
use serde_json::json;

use crate::args::Context;
use crate::failure::Outcome;

#[derive(Debug, Args)]
pub struct Delete {
    path: PluginPath,
    /// The version to delete.
    #[arg(long)]
    version: Version,
    /// Why, for the history.
    #[arg(long, default_value = "")]
    reason: String,
}

impl Delete {
    pub async fn run(self, context: &Context) -> Outcome {
        let version = self.version.to_string();
        let query = [("version", Some(version.as_str())), ("reason", Some(self.reason.as_str()))];
        context.client()?.delete(&super::at(&self.path), &query).await?;
        let value = json!({ "path": self.path, "version": version, "deleted": true });
        context.output.result(&value, |_| format!("{} {version} is deleted", self.path));
        Ok(())
    }
}
