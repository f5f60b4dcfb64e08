//! The changes: each checks its conditions against the state that its event will directly follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::{Digest, Tenant};
use serde_json::Value;

use super::error::PlaybookError;
use super::event::{NewVersion, PlaybookEvent, What};
use super::names::{CatalogId, Owner, PlaybookPath};
use super::state::{PlaybookEntry, State};
use super::{MOST_BYTES, Playbooks};
use crate::names::Actor;

/// What is known of a playbook beside its text.
#[derive(Debug, Clone, PartialEq)]
pub struct PlaybookInfo {
    pub kind: String,
    pub description: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The `schedule:` block of the text, if it has one.
    pub schedule: Option<Value>,
}

impl Default for PlaybookInfo {
    fn default() -> Self {
        Self { kind: "Playbook".to_owned(), description: None, labels: BTreeMap::new(), schedule: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Registered {
    pub entry: Arc<PlaybookEntry>,
    /// False when the path means this text already.
    pub created: bool,
}

impl Registered {
    pub fn id(&self) -> CatalogId {
        self.entry.id()
    }
}

impl Playbooks {
    /// Makes a text the newest version of its path. The text that the path means already is left as it is.
    pub async fn register(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PlaybookPath,
        content: Bytes,
        info: PlaybookInfo,
    ) -> Result<Registered, PlaybookError> {
        may_change(actor, tenant, path)?;
        let size = content.len() as u64;
        if size > MOST_BYTES {
            return Err(PlaybookError::TooLarge(size));
        }
        let digest = Digest::of(&content);
        if !self.payloads.contains(&digest) {
            self.payloads.put_bytes(content).await.map_err(noetl_store::payloads::PayloadError::from)?;
        }
        let owner = Owner::of(tenant, path);
        let changed = self
            .ledger
            .change(|state| {
                let playbook = state.playbook(owner.as_str(), path);
                if let Some(same) = playbook.and_then(|known| known.newest()).filter(|entry| entry.digest == digest) {
                    return Ok::<_, PlaybookError>((None, (same.version, false)));
                }
                let version = playbook.map_or(1, |playbook| playbook.next());
                let PlaybookInfo { kind, description, labels, schedule } = info.clone();
                let new = NewVersion { version, digest, size, kind, description, labels, schedule };
                let event = event(actor, &owner, path, What::Registered(Box::new(new)));
                Ok((Some(event), (version, true)))
            })
            .await?;
        let (version, created) = changed.value;
        let entry = changed.state.playbook(owner.as_str(), path).and_then(|playbook| playbook.version(version));
        let entry = entry.cloned().ok_or_else(|| PlaybookError::NoPlaybook(path.clone()))?;
        Ok(Registered { entry, created })
    }

    /// Takes versions, or all, out of what the path alone means. Answers those that were not archived before.
    pub async fn archive(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PlaybookPath,
        version: Option<u32>,
    ) -> Result<Vec<CatalogId>, PlaybookError> {
        let affected = |entry: &PlaybookEntry| !entry.archived;
        self.change_versions(actor, tenant, path, version, affected, |versions| What::Archived { versions }).await
    }

    /// The opposite of [`Playbooks::archive`]. Answers those that were archived.
    pub async fn restore(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PlaybookPath,
        version: Option<u32>,
    ) -> Result<Vec<CatalogId>, PlaybookError> {
        let affected = |entry: &PlaybookEntry| entry.archived;
        self.change_versions(actor, tenant, path, version, affected, |versions| What::Restored { versions }).await
    }

    /// Removes a version, or all, for good. Their numbers are not given again.
    pub async fn delete(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PlaybookPath,
        version: Option<u32>,
    ) -> Result<Vec<CatalogId>, PlaybookError> {
        self.change_versions(actor, tenant, path, version, |_| true, |versions| What::Deleted { versions }).await
    }

    async fn change_versions(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PlaybookPath,
        version: Option<u32>,
        affected: impl Fn(&PlaybookEntry) -> bool,
        what: impl Fn(Vec<u32>) -> What,
    ) -> Result<Vec<CatalogId>, PlaybookError> {
        may_change(actor, tenant, path)?;
        let owner = Owner::of(tenant, path);
        let changed = self
            .ledger
            .change(|state| {
                let chosen = chosen(state, &owner, path, version)?;
                let versions: Vec<u32> =
                    chosen.iter().filter(|entry| affected(entry)).map(|entry| entry.version).collect();
                let event = (!versions.is_empty()).then(|| event(actor, &owner, path, what(versions.clone())));
                Ok::<_, PlaybookError>((event, versions))
            })
            .await?;
        Ok(changed.value.into_iter().map(|version| CatalogId { path: path.clone(), version }).collect())
    }
}

/// The version named, or all there are.
fn chosen(
    state: &State,
    owner: &Owner,
    path: &PlaybookPath,
    version: Option<u32>,
) -> Result<Vec<Arc<PlaybookEntry>>, PlaybookError> {
    let playbook = state.playbook(owner.as_str(), path);
    let entries: Vec<_> = playbook.into_iter().flat_map(|playbook| playbook.versions().cloned()).collect();
    let newest = entries.last().ok_or_else(|| PlaybookError::NoPlaybook(path.clone()))?.version;
    let Some(version) = version else { return Ok(entries) };
    let one = entries.into_iter().find(|entry| entry.version == version);
    one.map(|entry| vec![entry]).ok_or_else(|| PlaybookError::NoVersion { path: path.clone(), version, newest })
}

fn event(actor: &Actor, owner: &Owner, path: &PlaybookPath, what: What) -> PlaybookEvent {
    PlaybookEvent {
        what,
        tenant: owner.clone(),
        path: path.clone(),
        by: actor.name.clone(),
        by_tenant: actor.tenant.clone(),
    }
}

/// Refuses an actor of another tenant, and any tenant's on what is everybody's.
fn may_change(actor: &Actor, tenant: &Tenant, path: &PlaybookPath) -> Result<(), PlaybookError> {
    match &actor.tenant {
        Some(own) if path.is_shared() || own != tenant => Err(PlaybookError::Forbidden {
            actor: actor.name.clone(),
            tenant: own.clone(),
            what: if path.is_shared() { path.to_string() } else { format!("{path} of tenant {tenant}") },
        }),
        _ => Ok(()),
    }
}
