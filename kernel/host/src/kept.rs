//! Sandboxes of interpreted plugins that are kept from call to call, for plugins that ask for it.
//!
//! Starting an interpreter costs far more than most calls. A plugin that is a pure function (it holds nothing but what
//! the ring `pure` has) may say `instance = "resident"`: its sandbox is then used again, by the same tenant and with the
//! same grant only. A call that is recorded or played neither takes nor leaves one. Dropping one is always safe. It happens after any fault, when it has grown above half of its
//! limit, when its module goes, when there are too many, and whenever somebody waits for memory: a kept sandbox holds
//! its place in the budget, and a call never waits for a place that is only kept.

use std::sync::Arc;

use noetl_contract::{Digest, Tenant};
use parking_lot::Mutex;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::fair::Reservation;
use crate::grant::Grant;
use crate::metrics::LiveInstance;
use crate::state::CallState;

/// An instance with its program loaded.
pub(crate) struct Sandbox {
    pub(crate) store: Store<CallState>,
    pub(crate) instance: Instance,
    pub(crate) live: LiveInstance,
}

/// Whose sandbox it is: nobody else gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) module: Digest,
    pub(crate) grant: Grant,
    pub(crate) tenant: Tenant,
}

struct Idle {
    owner: Owner,
    sandbox: Sandbox,
    room: Reservation,
}

/// Sandboxes that wait for their next call, the longest waiting first.
#[derive(Clone)]
pub(crate) struct Kept {
    idle: Arc<Mutex<Vec<Idle>>>,
    most: usize,
}

impl Kept {
    pub(crate) fn new(most: usize) -> Self {
        Self { idle: Arc::default(), most }
    }

    /// The one used last: its pages are the warmest.
    pub(crate) fn take(&self, owner: &Owner) -> Option<(Sandbox, Reservation)> {
        let mut idle = self.idle.lock();
        let at = idle.iter().rposition(|idle| idle.owner == *owner)?;
        let Idle { sandbox, room, .. } = idle.remove(at);
        Some((sandbox, room))
    }

    pub(crate) fn put(&self, owner: Owner, sandbox: Sandbox, room: Reservation) {
        let mut idle = self.idle.lock();
        idle.push(Idle { owner, sandbox, room });
        let too_many = idle.len().saturating_sub(self.most);
        let dropped: Vec<Idle> = idle.drain(..too_many).collect();
        // Freeing a memory takes longer than anybody should wait for the lock.
        drop(idle);
        drop(dropped);
    }

    pub(crate) fn forget(&self, module: Digest) {
        let dropped: Vec<Idle> = self.idle.lock().extract_if(.., |idle| idle.owner.module == module).collect();
        drop(dropped);
    }

    /// Drop all, so that others have the memory.
    pub(crate) fn clear(&self) {
        let dropped = std::mem::take(&mut *self.idle.lock());
        drop(dropped);
    }
}
