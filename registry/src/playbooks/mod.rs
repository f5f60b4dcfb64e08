//! The catalog of playbooks: which text is which version of which path, and whose it is.
//!
//! Registering gives the next version of the path. A version's text is in the payload store before its event is
//! written, so a version that can be seen can be run. Texts of deleted versions stay there: executions that
//! run them refer to them by their digest.
//!
//! Invariants:
//! 1. (owner, path, version) means one text for ever; a version's number is never given again.
//! 2. After a text was registered, its path resolves to it until the next change of the path.
//! 3. Resolution takes no lock: it reads one immutable snapshot.
//!
//! After a crash the catalog is what the log says: an unacknowledged change is there completely or not at all. Bad
//! input is refused before anything is written; an event this program does not know stops the opening.

use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::{Digest, Tenant};
use noetl_store::log::{Log, StreamId};
use noetl_store::payloads::Payloads;
use tokio::sync::watch;

use crate::ledger::{Ledger, LedgerError};

mod changes;
mod error;
mod event;
mod listing;
mod names;
mod state;

pub use changes::{PlaybookInfo, Registered};
pub use error::PlaybookError;
pub use listing::{PlaybookFilter, PlaybookPage};
pub use names::{CatalogId, Owner, PlaybookPath, SHARED};
pub use state::PlaybookEntry;

use state::State;

/// Stream of the log that playbooks are folded from.
pub const STREAM: &str = "playbooks";

/// Bytes of a playbook's text at most.
pub const MOST_BYTES: u64 = 4 * 1024 * 1024;

pub struct Playbooks {
    ledger: Arc<Ledger<State>>,
    payloads: Payloads,
}

impl Playbooks {
    /// Folds the stream. The log must outlive this and is the only thing it is read from.
    pub fn open(log: Arc<dyn Log>, payloads: Payloads) -> Result<Arc<Self>, LedgerError> {
        Ok(Arc::new(Self { ledger: Ledger::open(log, StreamId::new(STREAM))?, payloads }))
    }

    /// What a tenant means by a path: the version it names, archived or not, or else the newest that is not
    /// archived. Paths under `system/` mean the same to every tenant.
    pub fn resolve(&self, tenant: &Tenant, path: &PlaybookPath, version: Option<u32>) -> Option<Arc<PlaybookEntry>> {
        self.ledger.with(|state| {
            let owner = if path.is_shared() { SHARED } else { tenant.as_str() };
            let playbook = state.playbook(owner, path)?;
            match version {
                Some(version) => playbook.version(version).cloned(),
                None => playbook.newest().cloned(),
            }
        })
    }

    /// The text of a version, checked against its digest.
    pub async fn content(&self, digest: &Digest) -> Result<Bytes, PlaybookError> {
        Ok(self.payloads.read_at_most(digest, MOST_BYTES).await?)
    }

    /// Number of changes so far; each change wakes the receiver, after it can be seen.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.ledger.revision()
    }
}

#[cfg(test)]
mod tests;
