//! The catalog's state as a pure fold of its events.
//!
//! The state is cloned for every change and published as a snapshot, so all that grows is behind `Arc`s:
//! a change copies the map of paths and what belongs to the one path it touches.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_contract::{Digest, Manifest, PluginPath, Ring, Tenant, Version};
use serde::Serialize;

use super::event::{CatalogEvent, What};
use crate::ledger::{Fold, FoldError, Recorded};
use crate::names::ChannelName;
use crate::signatures::{Envelope, Provenance, PublicKey, about};

/// One version of one plugin. Never changes, except that more can be attested about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    pub path: PluginPath,
    pub version: Version,
    pub digest: Digest,
    pub size: u64,
    pub ring: Ring,
    pub manifest: Arc<Manifest>,
    /// Full names of what the component imports.
    pub imports: Vec<String>,
    /// What the version was pushed with and is run by, when it is source text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<Digest>,
    /// 0 for a version compiled into the binary.
    pub pushed_at_ms: u64,
    pub pushed_by: String,
    pub reason: String,
    /// Whose signatures hold, worked out from the attestations whenever the state is folded.
    pub signers: Vec<PublicKey>,
    pub provenance: Option<Provenance>,
    /// What is said about the bytes, as it came.
    #[serde(skip)]
    pub attestations: Vec<Envelope>,
}

impl Entry {
    fn attest(&mut self, attestations: &[Envelope]) {
        (self.signers, self.provenance) = about(&self.digest, attestations);
        self.attestations = attestations.to_vec();
    }
}

/// One line of a plugin's history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Place in the log.
    pub position: u64,
    pub time_ms: u64,
    pub actor: String,
    pub what: String,
    pub reason: String,
}

/// What a version number of a plugin stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Slot {
    Live(Arc<Entry>),
    /// Deleted; the number stays taken by these bytes.
    Tombstone(Digest),
}

/// A channel: where it points, and where it can go back to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Channel {
    /// None: the version compiled into the binary.
    pub current: Option<Version>,
    /// Earlier targets, oldest first, each once and never the current one, so that walking back ends.
    pub back: Vec<Version>,
}

impl Channel {
    fn advance(&mut self, to: Option<Version>) {
        if self.current == to {
            return;
        }
        self.back.retain(|version| Some(version) != to.as_ref());
        self.back.extend(self.current.take());
        self.current = to;
    }

    /// What is left behind, and everything newer than the target, is not gone back to again.
    fn roll_back(&mut self, to: Option<Version>) {
        match &to {
            None => self.back.clear(),
            Some(target) => {
                if let Some(at) = self.back.iter().position(|version| version == target) {
                    self.back.truncate(at);
                }
            }
        }
        self.current = to;
    }
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Plugin {
    pub versions: BTreeMap<Version, Slot>,
    pub channels: BTreeMap<ChannelName, Channel>,
    pub history: Vec<Arc<Change>>,
}

impl Plugin {
    pub fn live(&self, version: &Version) -> Option<&Arc<Entry>> {
        match self.versions.get(version)? {
            Slot::Live(entry) => Some(entry),
            Slot::Tombstone(_) => None,
        }
    }

    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        self.versions.values().filter_map(|slot| match slot {
            Slot::Live(entry) => Some(entry),
            Slot::Tombstone(_) => None,
        })
    }
}

/// Everything the events say.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    pub plugins: BTreeMap<PluginPath, Arc<Plugin>>,
    pub pins: BTreeMap<(PluginPath, Tenant), Version>,
    pub bindings: BTreeMap<(PluginPath, Tenant), PluginPath>,
}

impl State {
    fn plugin_mut(&mut self, path: &PluginPath) -> &mut Plugin {
        Arc::make_mut(self.plugins.entry(path.clone()).or_default())
    }

    pub fn plugin(&self, path: &PluginPath) -> Option<&Plugin> {
        self.plugins.get(path).map(Arc::as_ref)
    }

    pub fn live(&self, path: &PluginPath, version: &Version) -> Option<&Arc<Entry>> {
        self.plugin(path)?.live(version)
    }

    pub fn pin(&self, tenant: &Tenant, path: &PluginPath) -> Option<&Version> {
        // Most catalogs have no pins at all, and then a call need not build the key.
        if self.pins.is_empty() {
            return None;
        }
        self.pins.get(&(path.clone(), tenant.clone()))
    }

    pub fn binding(&self, tenant: &Tenant, service: &PluginPath) -> Option<&PluginPath> {
        if self.bindings.is_empty() {
            return None;
        }
        self.bindings.get(&(service.clone(), tenant.clone()))
    }

    fn push(
        &mut self,
        recorded: &Recorded<CatalogEvent>,
        pushed: &super::event::PushedVersion,
    ) -> Result<(), FoldError> {
        let (path, version) = (&pushed.manifest.path, &pushed.manifest.version);
        let plugin = self.plugin_mut(path);
        let existing = match plugin.versions.get(version) {
            Some(Slot::Live(entry)) => Some(entry.digest),
            Some(Slot::Tombstone(digest)) => Some(*digest),
            None => None,
        };
        if existing.is_some_and(|digest| digest != pushed.digest) {
            let problem = format!("{path} {version} has another digest already");
            return Err(FoldError::Contradiction { version: recorded.version, problem });
        }
        let mut entry = Entry {
            path: path.clone(),
            version: version.clone(),
            digest: pushed.digest,
            size: pushed.size,
            ring: pushed.ring,
            manifest: Arc::new(pushed.manifest.clone()),
            imports: pushed.imports.clone(),
            interpreter: pushed.interpreter,
            pushed_at_ms: recorded.time_ms,
            pushed_by: recorded.event.by.clone(),
            reason: recorded.event.reason.clone(),
            signers: Vec::new(),
            provenance: None,
            attestations: Vec::new(),
        };
        entry.attest(&pushed.attestations);
        plugin.versions.insert(version.clone(), Slot::Live(Arc::new(entry)));
        plugin.channels.entry(pushed.channel.clone()).or_default().advance(Some(version.clone()));
        Ok(())
    }

    /// Fails when an event speaks of a version that is not there.
    fn must_exist(&self, at: u64, path: &PluginPath, version: Option<&Version>) -> Result<(), FoldError> {
        match version {
            Some(version) if self.live(path, version).is_none() => {
                Err(FoldError::Contradiction { version: at, problem: format!("{path} has no version {version}") })
            }
            _ => Ok(()),
        }
    }
}

impl Fold for State {
    type Event = CatalogEvent;

    fn apply(&mut self, recorded: &Recorded<CatalogEvent>) -> Result<(), FoldError> {
        let at = recorded.version;
        match &recorded.event.what {
            What::VersionPushed(pushed) => self.push(recorded, pushed)?,
            What::ChannelMoved { path, channel, to } => {
                self.must_exist(at, path, to.as_ref())?;
                self.plugin_mut(path).channels.entry(channel.clone()).or_default().advance(to.clone());
            }
            What::RolledBack { path, channel, to } => {
                self.must_exist(at, path, to.as_ref())?;
                self.plugin_mut(path).channels.entry(channel.clone()).or_default().roll_back(to.clone());
            }
            // A pin can name a version that only the binary has, which the events know nothing of.
            What::Pinned { tenant, path, version } => {
                self.pins.insert((path.clone(), tenant.clone()), version.clone());
            }
            What::Unpinned { tenant, path } => {
                self.pins.remove(&(path.clone(), tenant.clone()));
            }
            What::Bound { tenant, service, to } => {
                self.bindings.insert((service.clone(), tenant.clone()), to.clone());
            }
            What::Unbound { tenant, service } => {
                self.bindings.remove(&(service.clone(), tenant.clone()));
            }
            What::VersionDeleted { path, version } => {
                self.must_exist(at, path, Some(version))?;
                let plugin = self.plugin_mut(path);
                if let Some(digest) = plugin.live(version).map(|entry| entry.digest) {
                    plugin.versions.insert(version.clone(), Slot::Tombstone(digest));
                }
                plugin.channels.values_mut().for_each(|channel| channel.back.retain(|earlier| earlier != version));
            }
            What::VersionAttested { path, version, attestations } => {
                self.must_exist(at, path, Some(version))?;
                if let Some(Slot::Live(entry)) = self.plugin_mut(path).versions.get_mut(version) {
                    Arc::make_mut(entry).attest(attestations);
                }
            }
        }
        let change = Arc::new(Change {
            position: recorded.position,
            time_ms: recorded.time_ms,
            actor: recorded.event.by.clone(),
            what: recorded.event.what.describe(),
            reason: recorded.event.reason.clone(),
        });
        for path in recorded.event.what.paths() {
            self.plugin_mut(path).history.push(change.clone());
        }
        Ok(())
    }
}
