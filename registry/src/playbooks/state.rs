//! The playbooks as a pure fold of their events.
//!
//! The state is cloned for every change and published as a snapshot: a change copies the map of owners, the map of
//! paths of one of them, and what belongs to the one path it touches.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_contract::Digest;
use serde::Serialize;
use serde_json::Value;

use super::event::{NewVersion, PlaybookEvent, What};
use super::names::{CatalogId, Owner, PlaybookPath};
use crate::ledger::{Fold, FoldError, Recorded};

/// One version of one playbook. Only `archived` ever changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookEntry {
    pub tenant: Owner,
    pub path: PlaybookPath,
    /// From 1.
    pub version: u32,
    /// Of the text, which is in the payload store under it.
    pub digest: Digest,
    pub size: u64,
    pub kind: String,
    pub description: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// The playbook's own `schedule:` block.
    pub schedule: Option<Value>,
    pub registered_ms: u64,
    /// Name or id of the token that registered it.
    pub by: String,
    pub archived: bool,
}

impl PlaybookEntry {
    pub fn id(&self) -> CatalogId {
        CatalogId { path: self.path.clone(), version: self.version }
    }
}

/// All versions of one path.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Playbook {
    versions: BTreeMap<u32, Arc<PlaybookEntry>>,
    /// The highest number ever given.
    last: u32,
}

impl Playbook {
    pub fn version(&self, version: u32) -> Option<&Arc<PlaybookEntry>> {
        self.versions.get(&version)
    }

    /// Oldest first.
    pub fn versions(&self) -> impl DoubleEndedIterator<Item = &Arc<PlaybookEntry>> {
        self.versions.values()
    }

    /// What the path alone means.
    pub fn newest(&self) -> Option<&Arc<PlaybookEntry>> {
        self.versions().rev().find(|entry| !entry.archived)
    }

    pub fn next(&self) -> u32 {
        self.last + 1
    }
}

type Paths = BTreeMap<PlaybookPath, Arc<Playbook>>;

/// Everything the events say: playbooks by the text of their owner, and by path.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    owners: BTreeMap<Arc<str>, Arc<Paths>>,
}

impl State {
    pub fn paths(&self, owner: &str) -> Option<&Paths> {
        self.owners.get(owner).map(Arc::as_ref)
    }

    pub fn playbook(&self, owner: &str, path: &PlaybookPath) -> Option<&Playbook> {
        self.paths(owner)?.get(path).map(Arc::as_ref)
    }

    pub fn playbooks(&self) -> impl Iterator<Item = &Playbook> {
        self.owners.values().flat_map(|paths| paths.values()).map(Arc::as_ref)
    }
}

impl Playbook {
    fn register(&mut self, recorded: &Recorded<PlaybookEvent>, new: &NewVersion) -> Result<(), FoldError> {
        let PlaybookEvent { tenant, path, by, .. } = &recorded.event;
        if new.version <= self.last {
            return Err(contradiction(recorded, format!("version {} of {path} was given before", new.version)));
        }
        self.last = new.version;
        let entry = PlaybookEntry {
            tenant: tenant.clone(),
            path: path.clone(),
            version: new.version,
            digest: new.digest,
            size: new.size,
            kind: new.kind.clone(),
            description: new.description.clone(),
            labels: new.labels.clone(),
            schedule: new.schedule.clone(),
            registered_ms: recorded.time_ms,
            by: by.clone(),
            archived: false,
        };
        self.versions.insert(new.version, Arc::new(entry));
        Ok(())
    }

    /// Fails when the event speaks of a version that is not there.
    fn change(
        &mut self,
        recorded: &Recorded<PlaybookEvent>,
        versions: &[u32],
        with: impl Fn(&mut PlaybookEntry),
    ) -> Result<(), FoldError> {
        for version in versions {
            let Some(entry) = self.versions.get_mut(version) else {
                return Err(contradiction(recorded, format!("{} has no version {version}", recorded.event.path)));
            };
            with(Arc::make_mut(entry));
        }
        Ok(())
    }
}

fn contradiction(recorded: &Recorded<PlaybookEvent>, problem: String) -> FoldError {
    FoldError::Contradiction { version: recorded.version, problem }
}

impl Fold for State {
    type Event = PlaybookEvent;

    fn apply(&mut self, recorded: &Recorded<PlaybookEvent>) -> Result<(), FoldError> {
        let PlaybookEvent { what, tenant, path, .. } = &recorded.event;
        let paths = Arc::make_mut(self.owners.entry(tenant.as_str().into()).or_default());
        let playbook = Arc::make_mut(paths.entry(path.clone()).or_default());
        match what {
            What::Registered(new) => playbook.register(recorded, new),
            What::Archived { versions } => playbook.change(recorded, versions, |entry| entry.archived = true),
            What::Restored { versions } => playbook.change(recorded, versions, |entry| entry.archived = false),
            What::Deleted { versions } => {
                playbook.change(recorded, versions, |_| ())?;
                playbook.versions.retain(|version, _| !versions.contains(version));
                Ok(())
            }
        }
    }
}
