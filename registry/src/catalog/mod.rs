//! The catalog of plugins: opened from the log, asked without a lock, changed by events.
//!
//! A version's bytes are in the payload store before its event is written, so a version that can be seen
//! can be run. Bytes of a deleted version stay in the store: it is addressed by content, and an object of
//! some tenant may be made of the very same bytes; removing what nobody refers to is retention's work.
//!
//! After a crash the catalog is what the log says: an unacknowledged change is there completely or not at
//! all.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_contract::{Digest, Manifest, PluginPath, Ring, ServiceName, Tenant, Version};
use noetl_store::log::{Log, StreamId};
use noetl_store::payloads::Payloads;
use tokio::sync::watch;

use crate::ledger::Ledger;
use crate::names::{Actor, ChannelName};

mod changes;
mod error;
mod event;
mod listing;
mod resolve;
mod state;

pub use changes::{Moved, NewVersion, PushOutcome};
pub use error::{CatalogError, OpenError, ResolveError};
pub use listing::{EntryFilter, Listed, PluginView};
pub use resolve::{BytesAt, Resolved, Selector, Source};
pub use state::{Change, Entry};

use resolve::{Builtin, View};
use state::{Slot, State};

/// Stream of the log that the catalog is folded from.
pub const STREAM: &str = "catalog";

/// A component compiled into the binary: it serves where the catalog has nothing, so that an empty or
/// broken catalog still has its system services.
#[derive(Debug, Clone)]
pub struct Embedded {
    pub manifest: Manifest,
    pub ring: Ring,
    pub digest: Digest,
    pub bytes: &'static [u8],
}

pub struct Catalog {
    ledger: Arc<Ledger<State>>,
    payloads: Payloads,
    builtins: BTreeMap<PluginPath, Builtin>,
}

impl Catalog {
    /// Folds the catalog's stream. The log must outlive the catalog and is the only thing it is read from.
    pub fn open(log: Arc<dyn Log>, payloads: Payloads, embedded: Vec<Embedded>) -> Result<Arc<Self>, OpenError> {
        let digests: BTreeMap<PluginPath, Digest> =
            embedded.iter().map(|component| (component.manifest.path.clone(), component.digest)).collect();
        let mut builtins = BTreeMap::new();
        for component in embedded {
            let path = component.manifest.path.clone();
            let bytes = component.bytes;
            // What is source text runs on the interpreter it was built with, which is in the same binary.
            let source = component.manifest.source.as_ref();
            let interpreter = source.and_then(|source| digests.get(&source.language.interpreter()).copied());
            let entry = Arc::new(embedded_entry(component, interpreter));
            if builtins.insert(path.clone(), Builtin { entry, bytes }).is_some() {
                return Err(OpenError::EmbeddedTwice(path));
            }
        }
        let ledger = Ledger::open(log, StreamId::new(STREAM))?;
        Ok(Arc::new(Self { ledger, payloads, builtins }))
    }

    /// Finds what serves a call of `tenant` to `service`.
    pub fn resolve(
        &self,
        tenant: &Tenant,
        service: &ServiceName,
        selector: &Selector,
    ) -> Result<Resolved, ResolveError> {
        self.ledger.with(|state| self.view(state).resolve(tenant, service, selector))
    }

    /// The version a rollback of the channel without a target would go to.
    pub fn previous_of(&self, path: &PluginPath, channel: &ChannelName) -> Option<Version> {
        self.ledger.with(|state| self.view(state).before(path, channel)).map(|target| target.version)
    }

    /// The bytes compiled into the binary for a path, if they are those of the digest.
    pub fn embedded_bytes(&self, path: &PluginPath, digest: &Digest) -> Option<&'static [u8]> {
        self.builtins.get(path).filter(|builtin| builtin.entry.digest == *digest).map(|builtin| builtin.bytes)
    }

    /// Whether bytes of this digest were pushed to a path as a version that is deleted now, and are no other version of it.
    pub fn was_deleted(&self, path: &PluginPath, digest: &Digest) -> bool {
        self.ledger.with(|state| {
            let slots = || state.plugin(path).into_iter().flat_map(|plugin| plugin.versions.values());
            let live = slots().any(|slot| matches!(slot, Slot::Live(entry) if entry.digest == *digest));
            !live && slots().any(|slot| matches!(slot, Slot::Tombstone(gone) if gone == digest))
        })
    }

    /// Number of changes so far; each change wakes the receiver, after it can be seen.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.ledger.revision()
    }

    fn view<'a>(&'a self, state: &'a State) -> View<'a> {
        View { state, builtins: &self.builtins }
    }
}

fn embedded_entry(component: Embedded, interpreter: Option<Digest>) -> Entry {
    Entry {
        path: component.manifest.path.clone(),
        version: component.manifest.version.clone(),
        digest: component.digest,
        size: component.bytes.len() as u64,
        ring: component.ring,
        imports: noetl_contract::inspect::import_names(component.bytes).unwrap_or_default(),
        interpreter,
        manifest: Arc::new(component.manifest),
        pushed_at_ms: 0,
        pushed_by: "binary".to_owned(),
        reason: "compiled into the binary".to_owned(),
        signers: Vec::new(),
        provenance: None,
        attestations: Vec::new(),
    }
}

/// Refuses an actor of a tenant that does not own a path.
fn must_own(actor: &Actor, path: &PluginPath) -> Result<(), CatalogError> {
    match &actor.tenant {
        Some(tenant) if !actor.owns(path) => {
            Err(CatalogError::Forbidden { actor: actor.name.clone(), tenant: tenant.clone(), what: path.to_string() })
        }
        _ => Ok(()),
    }
}

/// Refuses an actor of another tenant.
fn must_speak_for(actor: &Actor, tenant: &Tenant) -> Result<(), CatalogError> {
    match &actor.tenant {
        Some(own) if !actor.speaks_for(tenant) => Err(CatalogError::Forbidden {
            actor: actor.name.clone(),
            tenant: own.clone(),
            what: format!("tenant {tenant}"),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
