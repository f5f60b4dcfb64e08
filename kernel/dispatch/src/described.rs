//! What tools say about themselves, as the catalog serves them to a tenant.
//!
//! A tool is asked through the version that would be called: a tenant that pinned or bound another one reads that one's
//! description. Asking may have to make a component ready, which can take a while; nobody waits longer than
//! [`PATIENCE`] for a word that only helps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use noetl_contract::description::Description;
use noetl_contract::manifest::World;
use noetl_contract::{PluginPath, Tenant};
use noetl_registry::{EntryFilter, ResolveError, Resolved, Selector};

use crate::Kernel;
use crate::error::ReadyError;

/// Where the catalog has tools.
const FOLDER: &str = "tools/";
/// Longest wait for what a tool says.
const PATIENCE: Duration = Duration::from_secs(20);

/// A kind of tool and what serves it.
#[derive(Debug, Clone)]
pub struct Tool {
    pub kind: String,
    /// What serves; nothing for a kind that the engine runs itself.
    pub served_by: Option<Resolved>,
    pub description: Option<Arc<Description>>,
    /// Why there is no description, if that is not for the tool's silence.
    pub problem: Option<String>,
}

/// Why there is no such tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("`{0}` cannot be a kind of tool: small letters, digits, `_` and `-` make one")]
    NotAKind(String),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
}

impl Kernel {
    /// The tool of a kind, for a tenant.
    pub async fn tool(&self, tenant: &Tenant, kind: &str) -> Result<Tool, ToolError> {
        if let Some(own) = self.own_kinds().await.remove(kind) {
            return Ok(of_the_engine(kind, own));
        }
        self.catalog_tool(tenant, kind).await
    }

    /// The same, of the tools that are components.
    pub(crate) async fn catalog_tool(&self, tenant: &Tenant, kind: &str) -> Result<Tool, ToolError> {
        let resolved = self.catalog.resolve(tenant, &path_of(kind)?, &Selector::default())?;
        Ok(self.ask(kind, resolved).await)
    }

    /// All kinds a tenant can use, by name.
    pub async fn tools(&self, tenant: &Tenant) -> Vec<Tool> {
        let own = self.own_kinds().await;
        let mut tools: BTreeMap<String, Tool> =
            own.into_iter().map(|(kind, own)| (kind.clone(), of_the_engine(&kind, own))).collect();
        let filter = EntryFilter { visible_to: Some(tenant.clone()), prefix: Some(FOLDER.to_owned()) };
        for listed in self.catalog.entries(&filter) {
            let path = listed.entry.path.as_str();
            let Some(kind) = path.strip_prefix(FOLDER).filter(|kind| !kind.contains('/')) else { continue };
            // What cannot serve this tenant is not a tool it has.
            let Ok(resolved) = self.catalog.resolve(tenant, &listed.entry.path, &Selector::default()) else { continue };
            let is_tool = matches!(resolved.entry.manifest.world, World::Tool | World::Transform);
            if is_tool && !tools.contains_key(kind) {
                tools.insert(kind.to_owned(), self.ask(kind, resolved).await);
            }
        }
        tools.into_values().collect()
    }

    async fn ask(&self, kind: &str, resolved: Resolved) -> Tool {
        let asked = async {
            let module = match self.host.ready(&resolved.entry.digest) {
                Some(module) => module,
                None => self.prepare(&resolved).await.map_err(|error: ReadyError| error.to_string())?,
            };
            self.host.describe(&module).await.map_err(|fault| fault.to_string())
        };
        let (description, problem) = match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok(description)) => (description, None),
            Ok(Err(problem)) => (None, Some(problem)),
            Err(_) => (None, Some("it is not ready yet: ask again in a moment".to_owned())),
        };
        Tool { kind: kind.to_owned(), served_by: Some(resolved), description, problem }
    }

    async fn own_kinds(&self) -> BTreeMap<String, Description> {
        match self.engine().own_kinds().await {
            Ok(kinds) => kinds,
            Err(error) => {
                tracing::warn!(%error, "the engine does not say which tools it runs itself");
                BTreeMap::new()
            }
        }
    }
}

fn of_the_engine(kind: &str, description: Description) -> Tool {
    let description = Some(Arc::new(description));
    Tool { kind: kind.to_owned(), served_by: None, description, problem: None }
}

fn path_of(kind: &str) -> Result<PluginPath, ToolError> {
    let path = PluginPath::new(format!("{FOLDER}{kind}")).ok().filter(|_| !kind.contains('/'));
    path.ok_or_else(|| ToolError::NotAKind(kind.to_owned()))
}
