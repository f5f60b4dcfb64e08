//! A push: from an upload to a version that serves.
//!
//! Everything that can be refused is refused before anything is kept: form, manifest, ownership, ring,
//! imports, contract, the grant, and the compiler's word. Only then are the bytes made durable and the
//! catalog told, in that order, so that a version that can be seen can be run. Until the catalog's event
//! the old version serves; from it on, the new one, whose module is ready.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noetl_contract::inspect::{self, Inspection};
use noetl_contract::{CapabilitySet, Digest, Manifest, PluginPath, Ring, Version};
use noetl_registry::{Actor, ChannelName, NewVersion, Selector};
use noetl_store::payloads::SealedPayload;
use serde::Serialize;

use crate::error::PushError;
use crate::{Kernel, switch};

/// An upload and what its sender wants.
pub struct Push {
    pub component: SealedPayload,
    /// `stable` when absent.
    pub channel: Option<ChannelName>,
    /// What the token may give at most.
    pub privilege: Ring,
    /// A lower ring than path and token allow.
    pub ring: Option<Ring>,
    /// Capabilities the sender explicitly allows beyond those of the running version.
    pub grant: CapabilitySet,
    pub reason: String,
}

/// What became of it.
#[derive(Debug, Clone, Serialize)]
pub struct Pushed {
    pub path: PluginPath,
    pub version: Version,
    pub digest: Digest,
    pub size: u64,
    pub ring: Ring,
    pub channel: ChannelName,
    pub capabilities: CapabilitySet,
    /// Compared with what served before.
    pub added: CapabilitySet,
    pub removed: CapabilitySet,
    pub previous: Option<Version>,
    /// False when this version with these bytes was there already.
    pub created: bool,
    pub compile_ms: u64,
}

impl Kernel {
    pub async fn push(&self, actor: &Actor, push: Push) -> Result<Pushed, PushError> {
        let bytes = read(&push.component).await?;
        let (manifest, inspection) = inspect(&bytes)?;
        let ring = ring_of(actor, &manifest.path, &push)?;
        if !inspection.skew.is_empty() {
            return Err(PushError::Skew(inspection.skew));
        }
        self.catalog.check_new(&manifest.path, &manifest.version, push.component.digest())?;
        let channel = push.channel.clone().unwrap_or_default();
        let (added, removed) = self.check_grant(&manifest, &channel, push.grant)?;
        let imports: Vec<String> = inspection.imports.iter().map(|import| import.name.clone()).collect();
        let digest = push.component.digest();
        let spec = switch::spec_of(&manifest, digest, ring, inspection.imports);
        spec.check(self.host.denied()).map_err(PushError::Denied)?;
        let _held = self.held.hold(digest);
        let started = Instant::now();
        self.host.prepare(spec, async || Ok(bytes)).await.map_err(PushError::Compile)?;
        let compile_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let kept = push.component.keep().await?;
        let capabilities = manifest.capabilities;
        let reason = push.reason.clone();
        let new = NewVersion { manifest, ring, digest, size: kept.size, imports, channel: channel.clone(), reason };
        let outcome = self.catalog.push(actor, new).await?;
        let entry = outcome.entry;
        let switched = outcome.previous.as_ref().is_some_and(|previous| *previous != entry.version);
        if let Some(previous) = outcome.previous.clone().filter(|_| switched) {
            self.begin_trial(&entry, &channel, previous);
        }
        Ok(Pushed {
            path: entry.path.clone(),
            version: entry.version.clone(),
            digest,
            size: entry.size,
            ring: entry.ring,
            channel,
            capabilities,
            added,
            removed,
            previous: outcome.previous,
            created: outcome.created,
            compile_ms,
        })
    }

    /// A version that asks for more than the running one needs somebody's explicit word.
    fn check_grant(
        &self,
        manifest: &Manifest,
        channel: &ChannelName,
        granted: CapabilitySet,
    ) -> Result<(CapabilitySet, CapabilitySet), PushError> {
        let running = self.running(&manifest.path, channel);
        let Some(running) = running else { return Ok((manifest.capabilities, CapabilitySet::EMPTY)) };
        let added = manifest.capabilities.minus(running.manifest.capabilities);
        let removed = running.manifest.capabilities.minus(manifest.capabilities);
        let missing = added.minus(granted);
        if missing.is_empty() || running.version == manifest.version {
            return Ok((added, removed));
        }
        let (path, version) = (manifest.path.clone(), manifest.version.clone());
        Err(PushError::NeedsGrant { path, version, running: running.version.clone(), added: missing })
    }

    /// What the channel serves; where the channel is new, what `stable` serves.
    fn running(&self, path: &PluginPath, channel: &ChannelName) -> Option<std::sync::Arc<noetl_registry::Entry>> {
        let owner = path.owner().unwrap_or_else(noetl_contract::Tenant::main);
        let on = |channel: &ChannelName| {
            let selector = Selector { channel: Some(channel.clone()), version: None };
            self.catalog.resolve(&owner, path, &selector).ok().map(|resolved| resolved.entry)
        };
        on(channel).or_else(|| on(&ChannelName::stable())).filter(|entry| entry.path == *path)
    }
}

async fn read(component: &SealedPayload) -> Result<Bytes, PushError> {
    const STEP: u64 = 4 << 20;
    let mut bytes = BytesMut::with_capacity(usize::try_from(component.size()).unwrap_or(0));
    let mut offset = 0;
    while offset < component.size() {
        let part = component.read_range(offset, STEP).await?;
        offset += part.len() as u64;
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

/// Everything that can be learned without running or compiling.
fn inspect(bytes: &[u8]) -> Result<(Manifest, Inspection), PushError> {
    let inspection = inspect::inspect(bytes).map_err(|error| PushError::NotAComponent(error.to_string()))?;
    let text = inspection.manifest_text.as_deref().ok_or(PushError::NoManifest)?;
    let manifest = Manifest::parse(text).map_err(PushError::Manifest)?;
    Ok((manifest, inspection))
}

fn ring_of(actor: &Actor, path: &PluginPath, push: &Push) -> Result<Ring, PushError> {
    if path.is_reserved() && (actor.tenant.is_some() || push.privilege < Ring::System) {
        return Err(PushError::Reserved { path: path.clone() });
    }
    if !actor.owns(path) {
        return Err(PushError::Foreign { path: path.clone() });
    }
    let allowed = Ring::of(path, push.privilege);
    match push.ring {
        Some(asked) if asked > allowed => Err(PushError::RingTooHigh { asked, allowed }),
        Some(asked) => Ok(asked),
        None => Ok(allowed),
    }
}
