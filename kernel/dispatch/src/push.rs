//! A push: from an upload to a version that serves.
//!
//! Everything that can be refused is refused before anything is kept: form, manifest, ownership, ring,
//! signatures, imports, contract, the grant, and the compiler's word. Until then the bytes are a stranger's: they are looked
//! at in a process of their own, and the server itself reads nothing but the manifest's text and, of a plugin that is
//! source text, the archive of its files. Only then are the bytes made durable and the catalog told, in that order, so
//! that a version that can be seen can be run. Until the catalog's event the old version serves; from it on, the new
//! one, whose module is ready. A module is found by its digest alone and has the grant of the ring it was made for, so
//! one whose push comes to nothing is let go: whoever pushes the same bytes to another ring must not find it. Its machine
//! code goes too, unless a version with these bytes is there.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use noetl_contract::inspect::Inspection;
use noetl_contract::manifest::{HostPattern, World};
use noetl_contract::{Capability, CapabilitySet, Digest, Manifest, PluginPath, Ring, Version};
use noetl_host::PrepareError;
use noetl_registry::signatures::{Envelope, PublicKey, about};
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
    /// What is said about the bytes, and by whom.
    pub attestations: Vec<Envelope>,
    /// Whether to look only: everything is checked and nothing is kept.
    pub dry_run: bool,
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
    /// Hosts that what served before could not reach.
    pub added_hosts: Vec<HostPattern>,
    pub previous: Option<Version>,
    /// False when this version with these bytes was there already.
    pub created: bool,
    /// Whose signatures of these bytes are known.
    pub signers: Vec<PublicKey>,
    /// True when nothing was kept, because the push was only to be tried.
    pub dry_run: bool,
    pub compile_ms: u64,
}

/// A module that was made for a push. Unless the push keeps it, it is let go, however the push ends.
struct Made<'a> {
    kernel: &'a Kernel,
    digest: Digest,
    kept: bool,
    hold: Option<switch::Hold>,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.kernel.host.retire(self.digest);
        }
        // The last of several pushes of the same bytes tidies up.
        drop(self.hold.take());
        if !self.kernel.held.is_held(&self.digest) && !self.kernel.code_in_use().contains(&self.digest) {
            self.kernel.host.forget_code(self.digest);
        }
    }
}

/// A manifest beside that of what serves.
struct Compared {
    added: CapabilitySet,
    removed: CapabilitySet,
    added_hosts: Vec<HostPattern>,
}

impl Kernel {
    pub async fn push(&self, actor: &Actor, push: Push) -> Result<Pushed, PushError> {
        let whose = actor.tenant.clone().unwrap_or_else(noetl_contract::Tenant::main);
        let inspection = self.host.inspect(&whose, async || read(&push.component).await).await;
        let inspection = inspection.map_err(PushError::Inspect)?;
        let manifest = manifest_of(&inspection)?;
        let ring = ring_of(actor, &manifest.path, &push)?;
        if !inspection.skew.is_empty() {
            return Err(PushError::Skew(inspection.skew));
        }
        self.catalog.check_new(&manifest.path, &manifest.version, push.component.digest())?;
        let attestations = self.check_signed(&manifest, &push.component.digest(), &push.attestations)?;
        let channel = push.channel.clone().unwrap_or_default();
        let Compared { added, removed, added_hosts } = self.check_grant(&manifest, &channel, push.grant)?;
        let imports: Vec<String> = inspection.imports.iter().map(|import| import.name.clone()).collect();
        let digest = push.component.digest();
        let known = self.catalog.entry(&manifest.path, &manifest.version);
        // A version that is there keeps the interpreter it was pushed with, as it keeps its bytes.
        let interpreter = if known.is_some() { None } else { self.interpreter_for(&manifest)? };
        let interpreter_digest = match &known {
            Some(known) => known.interpreter,
            None => interpreter.as_ref().map(|resolved| resolved.entry.digest),
        };
        let spec = switch::spec_of(&manifest, digest, ring, inspection.imports, interpreter_digest);
        if manifest.world == World::Interpreter {
            must_be_of_the_platform(&manifest.path, ring)?;
        } else {
            spec.check(self.host.denied()).map_err(PushError::Denied)?;
        }
        let hold = Some(self.held.hold(digest));
        // A module that is there already is that of a version that serves.
        let mut made = Made { kernel: self, digest, kept: self.host.ready(&digest).is_some(), hold };
        let started = Instant::now();
        let bytes = async || read(&push.component).await;
        let module = match (&manifest.source, interpreter_digest) {
            (Some(source), Some(digest)) => {
                let ready = self.interpreter(&source.language, digest).await?;
                let module = self.host.prepare_program(spec, ready, bytes).await.map_err(PushError::Compile)?;
                if known.is_none() {
                    self.must_load(&module, &manifest).await?;
                }
                Some(module)
            }
            _ if manifest.world == World::Interpreter => {
                self.host.interpreter(digest, bytes).await.map_err(PushError::Compile)?;
                None
            }
            _ => Some(self.host.prepare(spec, bytes).await.map_err(PushError::Compile)?),
        };
        if let Some(module) = module {
            self.check_description(&module).await?;
        }
        let compile_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let capabilities = manifest.capabilities;
        if push.dry_run {
            let previous = self.running(&manifest.path, &channel).map(|running| running.version.clone());
            return Ok(Pushed {
                created: self.catalog.entry(&manifest.path, &manifest.version).is_none(),
                path: manifest.path,
                version: manifest.version,
                digest,
                size: push.component.size(),
                ring,
                channel,
                capabilities,
                added,
                removed,
                added_hosts,
                previous,
                signers: about(&digest, &attestations).0,
                dry_run: true,
                compile_ms,
            });
        }
        if let Some(interpreter) = &interpreter {
            self.keep_interpreter(interpreter).await?;
        }
        let kept = push.component.keep().await?;
        let reason = push.reason.clone();
        if self.catalog.entry(&manifest.path, &manifest.version).is_some() {
            // Before a channel moves to it: what serves is signed as it must be, after a crash too.
            let (path, version) = (&manifest.path, &manifest.version);
            self.catalog.attest(actor, path, version, &attestations, &reason).await?;
        }
        let new = NewVersion {
            manifest,
            ring,
            digest,
            size: kept.size,
            imports,
            interpreter: interpreter_digest,
            channel: channel.clone(),
            reason,
            attestations,
        };
        let outcome = self.catalog.push(actor, new).await?;
        let entry = outcome.entry;
        // A version that was there already keeps its ring, whatever was asked for this time.
        made.kept |= entry.ring == ring;
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
            added_hosts,
            previous: outcome.previous,
            created: outcome.created,
            signers: entry.signers.clone(),
            dry_run: false,
            compile_ms,
        })
    }

    /// A plugin that says what it does has to say it in a form that can be read. One that cannot speak without what it is
    /// granted says nothing, which it may.
    async fn check_description(&self, module: &std::sync::Arc<noetl_host::Module>) -> Result<(), PushError> {
        match self.host.describe(module).await {
            Err(fault) if fault.class == noetl_host::FaultClass::Skew => Err(PushError::Skew(vec![fault.message])),
            Err(fault) => {
                tracing::debug!(plugin = %module.spec().path, %fault, "does not say what it does");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// A version that asks for more than the running one needs somebody's explicit word. New hosts count as more of
    /// `http-client`: whoever grants that grants them.
    fn check_grant(
        &self,
        manifest: &Manifest,
        channel: &ChannelName,
        granted: CapabilitySet,
    ) -> Result<Compared, PushError> {
        let running = self.running(&manifest.path, channel);
        let Some(running) = running else {
            let added_hosts = manifest.http.allow.clone();
            return Ok(Compared { added: manifest.capabilities, removed: CapabilitySet::EMPTY, added_hosts });
        };
        let added = manifest.capabilities.minus(running.manifest.capabilities);
        let removed = running.manifest.capabilities.minus(manifest.capabilities);
        let added_hosts = manifest.http.beyond(&running.manifest.http);
        let wanted: CapabilitySet =
            added.iter().chain((!added_hosts.is_empty()).then_some(Capability::HttpClient)).collect();
        let missing = wanted.minus(granted);
        if missing.is_empty() || running.version == manifest.version {
            return Ok(Compared { added, removed, added_hosts });
        }
        let (path, version) = (manifest.path.clone(), manifest.version.clone());
        let hosts = if missing.contains(Capability::HttpClient) { added_hosts } else { Vec::new() };
        Err(PushError::NeedsGrant { path, version, running: Box::new(running.version.clone()), added: missing, hosts })
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

async fn read(component: &SealedPayload) -> Result<Bytes, PrepareError> {
    const STEP: u64 = 4 << 20;
    let mut bytes = BytesMut::with_capacity(usize::try_from(component.size()).unwrap_or(0));
    let mut offset = 0;
    while offset < component.size() {
        let part = component.read_range(offset, STEP).await;
        let part = part.map_err(|source| PrepareError::Io { doing: "read the component".to_owned(), source })?;
        offset += part.len() as u64;
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

fn manifest_of(inspection: &Inspection) -> Result<Manifest, PushError> {
    let text = inspection.manifest_text.as_deref().ok_or(PushError::NoManifest)?;
    Manifest::parse(text).map_err(PushError::Manifest)
}

/// An interpreter sees the text and the calls of every plugin it runs, and is compiled without the usual bounds.
fn must_be_of_the_platform(path: &PluginPath, ring: Ring) -> Result<(), PushError> {
    match ring {
        Ring::System => Ok(()),
        _ => Err(PushError::InterpreterPath { path: path.clone() }),
    }
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
