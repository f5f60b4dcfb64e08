//! Changing what serves: channel moves, rollbacks, pins and bindings.
//!
//! Each makes the module it leads to ready first and switches second, so that no caller meets a version
//! whose machine code is not there. A task follows the catalog: it prepares what other writers made
//! active and lets go of modules that nothing points to any more.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use noetl_contract::inspect::Import;
use noetl_contract::manifest::World;
use noetl_contract::{Digest, Manifest, PluginPath, Ring, ServiceName, Tenant, Version};
use noetl_host::{Module, PrepareError, SourceSpec, Spec};
use noetl_registry::{Actor, BytesAt, CatalogError, ChannelName, Entry, EntryFilter, Moved, Resolved, Selector};

use parking_lot::Mutex;

use crate::Kernel;
use crate::error::{ReadyError, SwitchError};
use crate::health::Trial;

/// What the host has to know of a version.
pub(crate) fn spec_of(
    manifest: &Manifest,
    digest: Digest,
    ring: Ring,
    imports: Vec<Import>,
    interpreter: Option<Digest>,
) -> Spec {
    let entry = manifest.source.as_ref().map(|source| source.entry.clone());
    Spec {
        digest,
        path: manifest.path.clone(),
        version: manifest.version.clone(),
        world: manifest.world,
        ring,
        capabilities: manifest.capabilities,
        limits: manifest.limits,
        instance: manifest.instance,
        http: Arc::new(manifest.http.clone()),
        imports,
        source: interpreter.zip(entry).map(|(interpreter, entry)| SourceSpec { interpreter, entry }),
    }
}

/// Versions somebody is about to switch to. They are ready but not active yet, and must not be retired.
#[derive(Debug, Clone, Default)]
pub(crate) struct Held(Arc<Mutex<HashMap<Digest, usize>>>);

/// One such intention; ends when dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    held: Held,
    digest: Digest,
}

impl Held {
    pub(crate) fn hold(&self, digest: Digest) -> Hold {
        *self.0.lock().entry(digest).or_default() += 1;
        Hold { held: self.clone(), digest }
    }

    pub(crate) fn is_held(&self, digest: &Digest) -> bool {
        self.0.lock().contains_key(digest)
    }

    fn digests(&self) -> HashSet<Digest> {
        self.0.lock().keys().copied().collect()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.held.0.lock();
        if let Some(count) = held.get_mut(&self.digest) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.digest);
            }
        }
    }
}

impl Kernel {
    /// The module of a resolved version, compiled if need be. Its signatures are verified each time: a module that is
    /// ready was signed as the operator wants it now, whatever was wanted when it was pushed.
    pub(crate) async fn prepare(&self, resolved: &Resolved) -> Result<Arc<Module>, ReadyError> {
        let entry = &resolved.entry;
        self.must_be_signed(resolved)?;
        if entry.manifest.world == World::Interpreter {
            let said = "an interpreter runs plugins; it cannot be called itself".to_owned();
            return Err(PrepareError::Rejected(said).into());
        }
        let imports = entry.imports.iter().map(Import::new).collect();
        let spec = spec_of(&entry.manifest, entry.digest, entry.ring, imports, entry.interpreter);
        let read = async || self.bytes_at(resolved.bytes, entry.digest).await;
        match (&entry.manifest.source, entry.interpreter) {
            (Some(source), Some(interpreter)) => {
                let interpreter = self.interpreter(&source.language, interpreter).await?;
                Ok(self.host.prepare_program(spec, interpreter, read).await?)
            }
            _ => Ok(self.host.prepare(spec, read).await?),
        }
    }

    /// Components that a version of the catalog is, or runs in.
    pub(crate) fn code_in_use(&self) -> HashSet<Digest> {
        let versions = self.catalog.entries(&EntryFilter::default());
        versions.iter().flat_map(|listed| [Some(listed.entry.digest), listed.entry.interpreter]).flatten().collect()
    }

    /// The bytes of a version, wherever they are.
    pub(crate) async fn bytes_at(&self, bytes: BytesAt, digest: Digest) -> Result<Bytes, PrepareError> {
        match bytes {
            BytesAt::Embedded(bytes) => Ok(Bytes::from_static(bytes)),
            BytesAt::Payload => self.payloads.read(&digest).await.map_err(|error| PrepareError::Io {
                doing: format!("read the component {digest}"),
                source: std::io::Error::other(error),
            }),
        }
    }

    /// Points a channel to a version.
    pub async fn move_channel(
        &self,
        actor: &Actor,
        path: &PluginPath,
        channel: &ChannelName,
        version: &Version,
        reason: &str,
    ) -> Result<Moved, SwitchError> {
        let _held = self.ready_version(path, version).await?;
        let moved = self.catalog.move_channel(actor, path, channel, version, reason).await?;
        let to = self.entry_of(path, version);
        if let (Some(entry), Some(from)) = (to, moved.from.clone().filter(|from| from != version)) {
            self.begin_trial(&entry, channel, from);
        }
        Ok(moved)
    }

    /// Counts the first calls of a version that has just begun to serve, unless its manifest says not to.
    pub(crate) fn begin_trial(&self, entry: &Entry, channel: &ChannelName, previous: Version) {
        if !entry.manifest.failure.rollback {
            return;
        }
        let (path, version) = (entry.path.clone(), entry.version.clone());
        let trial = Trial { path, channel: channel.clone(), version, previous };
        self.health.begin_trial(entry.digest, trial, &self.rollback, Instant::now());
    }

    /// Trials live in memory; after a restart those whose time is not over begin anew.
    pub(crate) fn resume_trials(&self) {
        let since =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(self.rollback.window);
        let recent = |path: &PluginPath| {
            self.catalog.history(path).last().is_some_and(|change| u128::from(change.time_ms) >= since.as_millis())
        };
        for listed in self.catalog.entries(&EntryFilter::default()) {
            for channel in listed.channels.iter().filter(|_| !listed.embedded && recent(&listed.entry.path)) {
                if let Some(previous) = self.catalog.previous_of(&listed.entry.path, channel) {
                    self.begin_trial(&listed.entry, channel, previous);
                }
            }
        }
    }

    fn entry_of(&self, path: &PluginPath, version: &Version) -> Option<Arc<Entry>> {
        let owner = path.owner().unwrap_or_else(Tenant::main);
        let selector = Selector { channel: None, version: Some(version.clone()) };
        self.catalog.resolve(&owner, path, &selector).ok().map(|resolved| resolved.entry)
    }

    /// Takes a channel back.
    pub async fn switch_back(
        &self,
        actor: &Actor,
        path: &PluginPath,
        channel: &ChannelName,
        to: Option<&Version>,
        reason: &str,
    ) -> Result<Moved, SwitchError> {
        let target = to.cloned().or_else(|| self.catalog.previous_of(path, channel));
        let _held = match &target {
            Some(version) => self.ready_version(path, version).await?,
            None => None,
        };
        Ok(self.catalog.rollback(actor, path, channel, to, reason).await?)
    }

    /// Fixes a version for one tenant, or frees it.
    pub async fn pin(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        path: &PluginPath,
        version: Option<&Version>,
        reason: &str,
    ) -> Result<(), SwitchError> {
        let _held = match version {
            Some(version) => self.ready_version(path, version).await?,
            None => None,
        };
        Ok(self.catalog.pin(actor, tenant, path, version, reason).await?)
    }

    /// Lets a tenant's plugin serve in a service's place, or ends that.
    pub async fn bind(
        &self,
        actor: &Actor,
        tenant: &Tenant,
        service: &ServiceName,
        to: Option<&PluginPath>,
        reason: &str,
    ) -> Result<(), SwitchError> {
        let target = to.and_then(|to| self.catalog.resolve(tenant, to, &Selector::default()).ok());
        let _held = match &target {
            Some(resolved) => Some(self.make_ready(resolved).await?),
            None => None,
        };
        Ok(self.catalog.bind(actor, tenant, service, to, reason).await?)
    }

    /// Ends a quarantine; `false` when there was none.
    pub fn release(&self, path: &PluginPath) -> Result<bool, SwitchError> {
        let plugin = self.catalog.plugin(path).ok_or_else(|| CatalogError::NoPlugin(path.clone()))?;
        let released: Vec<bool> =
            plugin.versions.iter().map(|listed| self.health.release(&listed.entry.digest)).collect();
        Ok(released.contains(&true))
    }

    /// Time until a version is called again, when it is set aside.
    pub fn quarantined(&self, digest: &Digest) -> Option<std::time::Duration> {
        self.health.quarantined(digest, Instant::now())
    }

    async fn ready_version(&self, path: &PluginPath, version: &Version) -> Result<Option<Hold>, SwitchError> {
        let owner = path.owner().unwrap_or_else(Tenant::main);
        let selector = Selector { channel: None, version: Some(version.clone()) };
        match self.catalog.resolve(&owner, path, &selector) {
            Ok(resolved) => self.make_ready(&resolved).await.map(Some),
            // The catalog says it better, and to whom it may be said.
            Err(_) => Ok(None),
        }
    }

    async fn make_ready(&self, resolved: &Resolved) -> Result<Hold, SwitchError> {
        let entry = &resolved.entry;
        let hold = self.held.hold(entry.digest);
        let ready = match entry.manifest.world {
            World::Interpreter => self.load_interpreter(resolved).await.map(drop),
            _ => self.prepare(resolved).await.map(drop),
        };
        match ready {
            Ok(()) => Ok(hold),
            Err(ReadyError::Unsigned(unsigned)) => Err(SwitchError::Unsigned(unsigned)),
            Err(ReadyError::Host(error)) => Err(SwitchError::NotReady {
                path: entry.path.clone(),
                version: entry.version.clone(),
                reason: error.into_fault().message,
            }),
        }
    }

    /// Prepares what is active and retires what is not.
    async fn settle(&self) {
        for resolved in self.catalog.active() {
            let entry = &resolved.entry;
            // An interpreter is loaded with the first plugin it runs; so that a server without any need not have one, the
            // source text of the binary's own is made ready by the first call of it.
            let waits = entry.manifest.source.is_some() && matches!(resolved.bytes, BytesAt::Embedded(_));
            if entry.manifest.world != World::Interpreter
                && !waits
                && self.host.ready(&entry.digest).is_none()
                && let Err(error) = self.prepare(&resolved).await
            {
                let reason = match error {
                    ReadyError::Unsigned(unsigned) => unsigned.to_string(),
                    ReadyError::Host(error) => error.into_fault().message,
                };
                tracing::error!(plugin = %entry.path, version = %entry.version, %reason, "cannot be made ready");
            }
        }
        // Whoever is about to switch to a version holds it; read before the catalog, so that a version whose
        // switch ends in between is seen in one of the two.
        let held = self.held.digests();
        let active: HashSet<Digest> = self.catalog.active().iter().map(|resolved| resolved.entry.digest).collect();
        for digest in self.host.loaded() {
            if !active.contains(&digest) && !held.contains(&digest) && self.host.ready(&digest).is_some() {
                self.host.retire(digest);
                self.health.forget(&digest);
            }
        }
        self.retire_interpreters();
    }
}

/// Runs as long as the kernel.
pub(crate) async fn follow_catalog(kernel: Weak<Kernel>) {
    let Some(mut revision) = kernel.upgrade().map(|kernel| kernel.catalog.revision()) else { return };
    loop {
        let Some(kernel) = kernel.upgrade() else { return };
        revision.mark_unchanged();
        kernel.settle().await;
        if let Some(engine) = kernel.engine.get() {
            engine.refresh().await;
        }
        kernel.warm.store(true, Ordering::Release);
        drop(kernel);
        if revision.changed().await.is_err() {
            return;
        }
    }
}
