//! Playbooks into the catalog: checked by the orchestrator that will run them, then kept.
//!
//! The orchestrator knows the language and no tool. It lists where the playbook calls which, and that list is held against
//! what the tools of this tenant say about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::Tenant;
use noetl_contract::description::Description;
use noetl_contract::description::uses::{self, NamedCredential, Use, problems};
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
    labels: BTreeMap<String, String>,
    #[serde(default)]
    schedule: Option<Value>,
}

#[derive(Deserialize)]
struct Checked {
    problems: Vec<Value>,
    #[serde(default)]
    playbook: Option<Described>,
    /// Where it calls which tool. Another version may say it in another way, which is then not understood and no more.
    #[serde(default)]
    uses: Vec<Value>,
    /// Where it names which credential, likewise.
    #[serde(default)]
    credentials: Vec<Value>,
    /// Tools that the engine runs itself, as they describe themselves.
    #[serde(default)]
    kinds: BTreeMap<String, Value>,
}

impl Checked {
    fn uses(&self) -> Vec<Use> {
        self.uses.iter().filter_map(|one| Use::deserialize(one).ok()).collect()
    }

    fn credentials(&self) -> Vec<NamedCredential> {
        self.credentials.iter().filter_map(|one| NamedCredential::deserialize(one).ok()).collect()
    }

    fn kinds(&self) -> BTreeMap<String, Description> {
        let read = |(kind, text): (&String, &Value)| Some((kind.clone(), Description::deserialize(text).ok()?));
        self.kinds.iter().filter_map(read).collect()
    }
}

impl Engine {
    /// Everything that is wrong with a text: a JSON list of problems.
    pub async fn validate(&self, tenant: &Tenant, text: &str, strict: bool) -> Result<String, EngineError> {
        let checked = self.check(tenant, text, strict).await?;
        Ok(Value::Array(checked.problems).to_string())
    }

    /// Kinds of tools that the engine runs itself, as the orchestrator that serves has them.
    pub(crate) async fn own_kinds(&self) -> Result<BTreeMap<String, Description>, EngineError> {
        Ok(self.read("", false).await?.kinds())
    }

    async fn check(&self, tenant: &Tenant, text: &str, strict: bool) -> Result<Checked, EngineError> {
        let mut checked = self.read(text, strict).await?;
        let mut told = self.tool_problems(tenant, &checked, strict).await;
        told.extend(self.missing_credentials(tenant, &checked).await);
        checked.problems.extend(told.iter().filter_map(|problem| serde_json::to_value(problem).ok()));
        let place = |problem: &Value| (problem["line"].as_u64(), problem["column"].as_u64());
        // What is about the document as a whole stays behind; the sort keeps the order of equals.
        checked.problems.sort_by_key(|problem| (place(problem).0 == Some(0), place(problem)));
        Ok(checked)
    }

    /// What the tools of the tenant say about how they are used.
    async fn tool_problems(&self, tenant: &Tenant, checked: &Checked, strict: bool) -> Vec<uses::Problem> {
        let Some(kernel) = self.kernel.upgrade() else { return Vec::new() };
        let (all, kinds) = (checked.uses(), checked.kinds());
        let mut known: BTreeMap<&str, Option<Arc<Description>>> = BTreeMap::new();
        let mut found = Vec::new();
        for used in &all {
            if let Some(own) = kinds.get(&used.kind) {
                found.extend(problems(used, own, strict));
                continue;
            }
            if !known.contains_key(used.kind.as_str()) {
                match kernel.catalog_tool(tenant, &used.kind).await {
                    Ok(tool) => known.insert(&used.kind, tool.description),
                    Err(_) => {
                        found.push(uses::absent(used));
                        known.insert(&used.kind, None)
                    }
                };
            }
            if let Some(Some(tool)) = known.get(used.kind.as_str()) {
                found.extend(problems(used, tool, strict));
            }
        }
        found.truncate(uses::MOST);
        found
    }

    /// Credentials that the playbook names and the tenant does not have; each is told where it is named first.
    async fn missing_credentials(&self, tenant: &Tenant, checked: &Checked) -> Vec<uses::Problem> {
        let all = checked.credentials();
        let Some(kernel) = self.kernel.upgrade().filter(|_| !all.is_empty()) else { return Vec::new() };
        // A wallet that cannot be read says so when it is used.
        let Ok(kept) = kernel.wallet().list(Some(tenant.clone())).await else { return Vec::new() };
        let mut known: BTreeSet<&str> = kept.iter().map(|record| record.alias.as_str()).collect();
        let missing = all.iter().filter(|named| known.insert(&named.name));
        missing.take(uses::MOST).map(uses::no_credential).collect()
    }

    async fn read(&self, text: &str, strict: bool) -> Result<Checked, EngineError> {
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
        let checked = self.check(tenant, text, strict).await?;
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
