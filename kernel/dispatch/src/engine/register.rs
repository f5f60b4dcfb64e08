//! Playbooks into the catalog: checked by the orchestrator that will run them, then kept.

use bytes::Bytes;
use noetl_contract::Tenant;
use noetl_registry::Actor;
use noetl_registry::playbooks::{PlaybookError, PlaybookInfo, PlaybookPath};
use serde::Deserialize;
use serde_json::Value;

use super::Engine;
use super::api::EngineError;
use super::services::Role;

/// A playbook that is in the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    pub path: String,
    pub version: u32,
    /// The sha256 of its text.
    pub digest: String,
    /// False when the path meant this text already.
    pub created: bool,
    /// A JSON list.
    pub warnings: String,
}

/// What the catalog is told of a playbook, as the orchestrator read it.
#[derive(Deserialize, Default)]
struct Described {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    schedule: Option<Value>,
}

#[derive(Deserialize)]
struct Checked {
    problems: Vec<Value>,
    #[serde(default)]
    playbook: Option<Described>,
}

impl Engine {
    /// Everything that is wrong with a text: a JSON list of problems.
    pub async fn validate(&self, text: &str, strict: bool) -> Result<String, EngineError> {
        let checked = self.check(text, strict).await?;
        Ok(Value::Array(checked.problems).to_string())
    }

    async fn check(&self, text: &str, strict: bool) -> Result<Checked, EngineError> {
        let text = text.to_owned();
        let answer = self
            .background
            .ask(Role::Orchestrator, move |residents, service| residents.validate(&service.module, &text, strict));
        serde_json::from_str(&answer.await?).map_err(|error| EngineError::Service {
            service: Role::Orchestrator.path().to_string(),
            reason: format!("its list of problems cannot be read: {error}"),
        })
    }

    /// Makes a text the newest version of the path it names.
    pub async fn register(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        text: &str,
        strict: bool,
    ) -> Result<Registered, EngineError> {
        let checked = self.check(text, strict).await?;
        let is_error = |problem: &Value| problem["severity"] == "error";
        let described = match checked.playbook {
            Some(described) if !checked.problems.iter().any(is_error) => described,
            _ => return Err(EngineError::Invalid { problems: Value::Array(checked.problems).to_string() }),
        };
        let path = described.path.unwrap_or_default();
        let path = PlaybookPath::new(&path).map_err(|error| EngineError::InvalidRequest(error.to_string()))?;
        if path.is_shared() && actor.tenant.is_some() {
            let message = format!("`{}` is one of the platform's own paths: it needs an administrator", path.as_str());
            return Err(EngineError::Refused(message));
        }
        let info = PlaybookInfo {
            kind: "Playbook".to_owned(),
            description: described.description,
            labels: described.labels,
            schedule: described.schedule,
        };
        let content = Bytes::copy_from_slice(text.as_bytes());
        let registered = self.shared.playbooks.register(actor, tenant, &path, content, info).await;
        let registered = registered.map_err(refused)?;
        Ok(Registered {
            path: registered.entry.path.as_str().to_owned(),
            version: registered.entry.version,
            digest: registered.entry.digest.hex(),
            created: registered.created,
            warnings: Value::Array(checked.problems).to_string(),
        })
    }
}

fn refused(error: PlaybookError) -> EngineError {
    EngineError::Store(error.to_string())
}
