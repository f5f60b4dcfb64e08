//! The changes: each checks its conditions against the state that its event will directly follow.

use std::sync::Arc;

use noetl_contract::{Digest, Manifest, PluginPath, Ring, ServiceName, Tenant, Version};
use serde::Serialize;

use super::error::{CatalogError, ResolveError};
use super::event::{CatalogEvent, PushedVersion, What};
use super::resolve::{Resolved, Source, View};
use super::state::{Entry, Slot};
use super::{Catalog, must_own, must_speak_for};
use crate::names::{Actor, ChannelName};
use crate::signatures::{Envelope, join};

/// A version to be pushed. Its bytes are in the payload store already.
#[derive(Debug, Clone)]
pub struct NewVersion {
    pub manifest: Manifest,
    pub ring: Ring,
    pub digest: Digest,
    pub size: u64,
    pub imports: Vec<String>,
    /// What runs it, when it is source text; its bytes are in the payload store too.
    pub interpreter: Option<Digest>,
    /// Moved to the version by the push.
    pub channel: ChannelName,
    pub reason: String,
    /// Said about the bytes; verified before it is written, whoever has looked at it before.
    pub attestations: Vec<Envelope>,
}

#[derive(Debug, Clone)]
pub struct PushOutcome {
    pub entry: Arc<Entry>,
    /// What the channel served before, if it served anything.
    pub previous: Option<Version>,
    /// False when this version with these bytes was there already.
    pub created: bool,
}

/// What a channel served before and serves now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    pub from: Option<Version>,
    pub to: Version,
    /// `to` is the version compiled into the binary.
    pub embedded: bool,
}

/// A version a channel can point to.
pub(super) struct Target {
    pub version: Version,
    pub embedded: bool,
}

impl Target {
    fn recorded(&self) -> Option<Version> {
        (!self.embedded).then(|| self.version.clone())
    }
}

impl View<'_> {
    /// Where a rollback of the channel without a target goes.
    pub(super) fn before(&self, path: &PluginPath, channel: &ChannelName) -> Option<Target> {
        let channel = self.state.plugin(path)?.channels.get(channel)?;
        let left = channel.current.as_ref()?;
        if let Some(version) = channel.back.last() {
            return Some(Target { version: version.clone(), embedded: false });
        }
        let builtin = self.builtins.get(path).filter(|builtin| builtin.entry.version != *left)?;
        Some(Target { version: builtin.entry.version.clone(), embedded: true })
    }

    fn target(&self, path: &PluginPath, version: &Version) -> Result<Target, CatalogError> {
        let resolved = self.exactly(path, version, Source::Channel).ok_or_else(|| self.unknown(path, version))?;
        Ok(Target { version: version.clone(), embedded: resolved.source == Source::Embedded })
    }

    /// What the channel serves now.
    fn served(&self, path: &PluginPath, channel: &ChannelName) -> Option<Version> {
        self.by_channel(path, Some(channel)).ok().map(|resolved| resolved.entry.version.clone())
    }

    fn unknown(&self, path: &PluginPath, version: &Version) -> CatalogError {
        match self.known_versions(path) {
            known if known.is_empty() => CatalogError::NoPlugin(path.clone()),
            known => CatalogError::NoVersion { path: path.clone(), version: version.clone(), known },
        }
    }

    /// What a path serves to whoever has neither pin nor binding.
    fn current(&self, path: &PluginPath) -> Result<Resolved, CatalogError> {
        self.by_channel(path, None).map_err(|error| match error {
            ResolveError::NotFound(path) => CatalogError::NoPlugin(path),
            _ => CatalogError::NotServing(path.clone()),
        })
    }

    /// The digest a version number stands for, and whether the version was deleted.
    fn taken(&self, path: &PluginPath, version: &Version) -> Option<(Digest, bool)> {
        match self.state.plugin(path).and_then(|plugin| plugin.versions.get(version)) {
            Some(Slot::Live(entry)) => Some((entry.digest, false)),
            Some(Slot::Tombstone(digest)) => Some((*digest, true)),
            None => {
                let builtin = self.builtins.get(path).filter(|builtin| builtin.entry.version == *version)?;
                Some((builtin.entry.digest, false))
            }
        }
    }

    /// A version whose source text the bytes of this one interpret.
    fn runs_on(&self, interpreter: &Entry) -> Option<&Arc<Entry>> {
        let entries = self.state.plugins.values().flat_map(|plugin| plugin.versions.values());
        let mut live = entries.filter_map(|slot| match slot {
            Slot::Live(entry) => Some(entry),
            Slot::Tombstone(_) => None,
        });
        live.find(|entry| entry.interpreter == Some(interpreter.digest))
    }

    /// What of the catalog points to a version.
    fn user_of(&self, path: &PluginPath, version: &Version) -> Option<String> {
        let plugin = self.state.plugin(path)?;
        let channel = plugin.channels.iter().find(|(_, channel)| channel.current.as_ref() == Some(version));
        if let Some((name, _)) = channel {
            return Some(format!("channel `{name}`"));
        }
        let pin = self.state.pins.iter().find(|((pinned, _), to)| pinned == path && *to == version);
        if let Some(((_, tenant), _)) = pin {
            return Some(format!("the pin of tenant `{tenant}`"));
        }
        if let Some(runs) = self.runs_on(plugin.live(version)?) {
            return Some(format!("`{} {}`, which was pushed with it and runs on it", runs.path, runs.version));
        }
        let bound = self.state.bindings.iter().find(|(_, to)| *to == path);
        match bound {
            Some(((service, tenant), _)) if self.known_versions(path).len() == 1 => {
                Some(format!("the binding of `{service}` for tenant `{tenant}`, as the only version"))
            }
            _ => None,
        }
    }
}

impl Catalog {
    /// Refuses at once what a push of these bytes would be refused for in the end, before anybody compiles them.
    pub fn check_new(&self, path: &PluginPath, version: &Version, digest: Digest) -> Result<(), CatalogError> {
        match self.ledger.with(|state| self.view(state).taken(path, version)) {
            Some((existing, deleted)) if existing != digest => {
                Err(CatalogError::VersionTaken { path: path.clone(), version: version.clone(), existing, deleted })
            }
            _ => Ok(()),
        }
    }

    /// Makes a version known and moves its channel to it. Pushing the same bytes again is no error.
    pub async fn push(&self, actor: &Actor, mut new: NewVersion) -> Result<PushOutcome, CatalogError> {
        let (path, version) = (new.manifest.path.clone(), new.manifest.version.clone());
        must_own(actor, &path)?;
        if !self.payloads.contains(&new.digest) {
            return Err(CatalogError::BytesMissing { path, version, digest: new.digest });
        }
        new.attestations = join(&new.digest, &[], &new.attestations)?;
        let changed = self
            .ledger
            .change(|state| {
                let view = self.view(state);
                let previous = view.served(&path, &new.channel);
                if let Some((existing, deleted)) = view.taken(&path, &version)
                    && existing != new.digest
                {
                    let (path, version) = (path.clone(), version.clone());
                    return Err(CatalogError::VersionTaken { path, version, existing, deleted });
                }
                let Some(entry) = view.state.live(&path, &version) else {
                    let event = self.event(actor, &new.reason, What::VersionPushed(Box::new(pushed(&new))));
                    return Ok((Some(event), (previous, true)));
                };
                if entry.ring != new.ring {
                    let (path, version) = (path.clone(), version.clone());
                    return Err(CatalogError::RingTaken { path, version, existing: entry.ring, asked: new.ring });
                }
                let points_here = previous.as_ref() == Some(&version);
                let moved = (!points_here).then(|| {
                    let what = What::ChannelMoved {
                        path: path.clone(),
                        channel: new.channel.clone(),
                        to: Some(version.clone()),
                    };
                    self.event(actor, &new.reason, what)
                });
                Ok((moved, (previous, false)))
            })
            .await?;
        let (previous, created) = changed.value;
        let entry = changed.state.live(&path, &version).cloned();
        let entry = entry.ok_or_else(|| CatalogError::NoPlugin(path.clone()))?;
        Ok(PushOutcome { entry, previous, created })
    }

    /// Adds what is said about a version to what is known; what is known already changes nothing. Each envelope must
    /// be about the version's bytes, its signatures must hold, and nothing that counted may be lost.
    pub async fn attest(
        &self,
        actor: &Actor,
        path: &PluginPath,
        version: &Version,
        attestations: &[Envelope],
        reason: &str,
    ) -> Result<Arc<Entry>, CatalogError> {
        must_own(actor, path)?;
        let changed = self.ledger.change(|state| {
            let view = self.view(state);
            let Some(entry) = state.live(path, version) else {
                let (path, version) = (path.clone(), version.clone());
                return Err(match view.exactly(&path, &version, Source::Channel) {
                    Some(_) => CatalogError::CompiledIn { path, version },
                    None => view.unknown(&path, &version),
                });
            };
            let merged = join(&entry.digest, &entry.attestations, attestations)?;
            let event = (merged != entry.attestations).then(|| {
                let (path, version) = (path.clone(), version.clone());
                self.event(actor, reason, What::VersionAttested { path, version, attestations: merged })
            });
            Ok((event, ()))
        });
        let changed = changed.await?;
        changed.state.live(path, version).cloned().ok_or_else(|| CatalogError::NoPlugin(path.clone()))
    }

    /// A version that was pushed, wherever channels point.
    pub fn entry(&self, path: &PluginPath, version: &Version) -> Option<Arc<Entry>> {
        self.ledger.with(|state| state.live(path, version).cloned())
    }

    /// Points a channel to a version. The channel is made if it is not there.
    pub async fn move_channel(
        &self,
        actor: &Actor,
        path: &PluginPath,
        channel: &ChannelName,
        version: &Version,
        reason: &str,
    ) -> Result<Moved, CatalogError> {
        must_own(actor, path)?;
        let changed = self.ledger.change(|state| {
            let view = self.view(state);
            let target = view.target(path, version)?;
            let from = view.served(path, channel);
            let event = (from.as_ref() != Some(version)).then(|| {
                let what = What::ChannelMoved { path: path.clone(), channel: channel.clone(), to: target.recorded() };
                self.event(actor, reason, what)
            });
            Ok::<_, CatalogError>((event, Moved { from, to: target.version, embedded: target.embedded }))
        });
        Ok(changed.await?.value)
    }

    /// Takes a channel back: to `to`, or to what it served before, or to what is compiled in.
    pub async fn rollback(
        &self,
        actor: &Actor,
        path: &PluginPath,
        channel: &ChannelName,
        to: Option<&Version>,
        reason: &str,
    ) -> Result<Moved, CatalogError> {
        must_own(actor, path)?;
        let changed = self.ledger.change(|state| {
            let view = self.view(state);
            if view.known_versions(path).is_empty() {
                return Err(CatalogError::NoPlugin(path.clone()));
            }
            let target = match to {
                Some(version) => view.target(path, version)?,
                None => view
                    .before(path, channel)
                    .ok_or_else(|| CatalogError::NothingBefore { path: path.clone(), channel: channel.clone() })?,
            };
            let from = view.served(path, channel);
            if from.is_none() {
                return Err(CatalogError::NothingBefore { path: path.clone(), channel: channel.clone() });
            }
            let event = (from.as_ref() != Some(&target.version)).then(|| {
                let what = What::RolledBack { path: path.clone(), channel: channel.clone(), to: target.recorded() };
                self.event(actor, reason, what)
            });
            Ok((event, Moved { from, to: target.version, embedded: target.embedded }))
        });
        Ok(changed.await?.value)
    }

    /// Fixes a plugin's version for one tenant, whatever its channels do; none removes the pin.
    pub async fn pin(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PluginPath,
        version: Option<&Version>,
        reason: &str,
    ) -> Result<(), CatalogError> {
        must_speak_for(actor, tenant)?;
        must_be_visible(tenant, path)?;
        let changed = self.ledger.change(|state| {
            let view = self.view(state);
            let (tenant, path) = (tenant.clone(), path.clone());
            let existing = state.pin(&tenant, &path);
            let what = match version {
                Some(version) if view.exactly(&path, version, Source::Pin).is_none() => {
                    return Err(view.unknown(&path, version));
                }
                _ if existing == version => None,
                Some(version) => Some(What::Pinned { tenant, path, version: version.clone() }),
                None => Some(What::Unpinned { tenant, path }),
            };
            Ok((what.map(|what| self.event(actor, reason, what)), ()))
        });
        changed.await.map(|_| ())
    }

    /// Lets a plugin of the tenant serve in the place of `service` for that tenant; none removes the binding.
    pub async fn bind(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        service: &ServiceName,
        to: Option<&PluginPath>,
        reason: &str,
    ) -> Result<(), CatalogError> {
        must_speak_for(actor, tenant)?;
        must_be_visible(tenant, service)?;
        let changed = self.ledger.change(|state| {
            if let Some(to) = to {
                may_override(&self.view(state), tenant, service, to)?;
            }
            let existing = state.binding(tenant, service);
            let (tenant, service) = (tenant.clone(), service.clone());
            let what = match to {
                _ if existing == to => None,
                Some(to) => Some(What::Bound { tenant, service, to: to.clone() }),
                None => Some(What::Unbound { tenant, service }),
            };
            Ok::<_, CatalogError>((what.map(|what| self.event(actor, reason, what)), ()))
        });
        changed.await.map(|_| ())
    }

    /// Removes a version nothing points to. Its number stays taken.
    pub async fn delete_version(
        &self,
        actor: &Actor,
        path: &PluginPath,
        version: &Version,
        reason: &str,
    ) -> Result<(), CatalogError> {
        must_own(actor, path)?;
        let changed = self.ledger.change(|state| {
            let view = self.view(state);
            let (path, version) = (path.clone(), version.clone());
            if state.live(&path, &version).is_none() {
                return Err(match view.exactly(&path, &version, Source::Channel) {
                    Some(_) => CatalogError::CompiledIn { path, version },
                    None => view.unknown(&path, &version),
                });
            }
            if let Some(by) = view.user_of(&path, &version) {
                return Err(CatalogError::InUse { path, version, by });
            }
            Ok((Some(self.event(actor, reason, What::VersionDeleted { path, version })), ()))
        });
        changed.await.map(|_| ())
    }

    fn event(&self, actor: &Actor, reason: &str, what: What) -> CatalogEvent {
        CatalogEvent { what, by: actor.name.clone(), by_tenant: actor.tenant.clone(), reason: reason.to_owned() }
    }
}

fn pushed(new: &NewVersion) -> PushedVersion {
    PushedVersion {
        manifest: new.manifest.clone(),
        digest: new.digest,
        size: new.size,
        ring: new.ring,
        imports: new.imports.clone(),
        channel: new.channel.clone(),
        interpreter: new.interpreter,
        attestations: new.attestations.clone(),
    }
}

/// A tenant sees its own paths and the platform's.
fn must_be_visible(tenant: &Tenant, path: &PluginPath) -> Result<(), CatalogError> {
    match path.owner() {
        Some(owner) if owner != *tenant => Err(CatalogError::Foreign { path: path.clone(), tenant: tenant.clone() }),
        _ => Ok(()),
    }
}

fn may_override(view: &View<'_>, tenant: &Tenant, service: &ServiceName, to: &PluginPath) -> Result<(), CatalogError> {
    if service == to {
        return Err(CatalogError::BoundToItself { service: service.clone() });
    }
    if to.owner().as_ref() != Some(tenant) {
        return Err(CatalogError::Foreign { path: to.clone(), tenant: tenant.clone() });
    }
    let replaced = view.current(service)?.entry;
    if !replaced.manifest.overridable {
        return Err(CatalogError::NotOverridable { service: service.clone() });
    }
    let serving = view.current(to)?.entry;
    if serving.ring > Ring::Tenant {
        return Err(CatalogError::RingTooHigh { to: to.clone(), ring: serving.ring });
    }
    if serving.manifest.world != replaced.manifest.world {
        return Err(CatalogError::OtherWorld {
            service: service.clone(),
            service_world: replaced.manifest.world,
            to: to.clone(),
            to_world: serving.manifest.world,
        });
    }
    Ok(())
}
