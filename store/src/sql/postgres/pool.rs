//! Connections that are kept: one pool a tenant, credential and revision of it.
//!
//! Invariants:
//! 1. A connection that is given out has the state of a new one: what a script set, locked or left is discarded before the
//!    connection is kept (`DISCARD ALL`), and a connection that cannot be cleaned is closed.
//! 2. Whoever gets a kept connection sends a harmless command first; a connection that does not answer it is dropped and
//!    another one taken. So a server that was restarted is not noticed.
//! 3. A lease that is dropped instead of given back was given up in the middle: what runs is cancelled in the server and the
//!    connection closed.
//! 4. A new revision of a credential has a pool of its own; the one before is forgotten, and its connections close as
//!    they come back.
//! 5. Connections that nobody uses are bounded for a tenant and in all ([`kept`](super::kept)).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_contract::Tenant;
use parking_lot::Mutex;
use postgres_protocol::Oid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::SqlError;
use super::kept::{Place, Places};
use super::types::Type;
use super::wire::Connection;

/// How long a connection is kept that nobody uses.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// How long cleaning and cancelling may take.
const TIDYING: Duration = Duration::from_secs(10);

/// Whose connections they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    pub tenant: Tenant,
    pub alias: String,
    /// Of the credential.
    pub revision: u64,
}

/// All pools of a server.
pub struct Pools {
    /// Connections of one pool.
    most: usize,
    pools: Mutex<HashMap<Owner, Arc<Pool>>>,
    places: Places,
}

pub(super) struct Pool {
    tenant: Tenant,
    places: Places,
    slots: Arc<Semaphore>,
    idle: Mutex<Idle>,
    pub(super) types: Mutex<HashMap<Oid, Arc<Type>>>,
}

#[derive(Default)]
struct Idle {
    connections: Vec<(Connection, Instant, Place)>,
    /// Nothing is kept any more.
    closed: bool,
}

/// A connection in use.
pub(super) struct Lease {
    pub(super) pool: Arc<Pool>,
    connection: Option<Connection>,
    slot: Option<OwnedSemaphorePermit>,
}

impl Pools {
    /// At most so many connections for one credential.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), pools: Mutex::default(), places: Places::default() }
    }

    pub(super) fn of(&self, owner: &Owner) -> Arc<Pool> {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(owner) {
            return pool.clone();
        }
        pools.retain(|other, pool| {
            let outdated = other.tenant == owner.tenant && other.alias == owner.alias;
            if outdated {
                pool.close();
            }
            // A pool that nobody has used for a while has nothing in it.
            !outdated && (Arc::strong_count(pool) > 1 || !pool.idle.lock().connections.is_empty())
        });
        let pool = Arc::new(Pool {
            tenant: owner.tenant.clone(),
            places: self.places.clone(),
            slots: Arc::new(Semaphore::new(self.most)),
            idle: Mutex::default(),
            types: Mutex::default(),
        });
        pools.insert(owner.clone(), pool.clone());
        pool
    }
}

impl Pool {
    /// A slot, and a kept connection if there is one.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, SqlError> {
        let slot = self.slots.clone().acquire_owned().await;
        let slot = slot.map_err(|_| SqlError::Connect("the server stops".to_owned()))?;
        Ok(Lease { pool: self.clone(), connection: self.kept(), slot: Some(slot) })
    }

    fn kept(&self) -> Option<Connection> {
        self.forget_old();
        self.idle.lock().connections.pop().map(|(connection, ..)| connection)
    }

    fn forget_old(&self) {
        let old: Vec<_> = {
            let mut idle = self.idle.lock();
            let fresh = idle.connections.partition_point(|(_, since, _)| since.elapsed() >= KEPT_FOR);
            idle.connections.drain(..fresh).collect()
        };
        old.into_iter().for_each(|(connection, ..)| tidy(connection.close()));
    }

    fn close(&self) {
        let all = {
            let mut idle = self.idle.lock();
            idle.closed = true;
            std::mem::take(&mut idle.connections)
        };
        all.into_iter().for_each(|(connection, ..)| tidy(connection.close()));
    }

    fn keep(self: &Arc<Self>, connection: Connection) {
        let mut idle = self.idle.lock();
        let place = if idle.closed { None } else { self.places.take(&self.tenant) };
        let Some(place) = place else {
            drop(idle);
            return tidy(connection.close());
        };
        idle.connections.push((connection, Instant::now(), place));
        drop(idle);
        let pool = Arc::downgrade(self);
        spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            if let Some(pool) = pool.upgrade() {
                pool.forget_old();
            }
        });
    }
}

impl Lease {
    pub(super) fn is_empty(&self) -> bool {
        self.connection.is_none()
    }

    pub(super) fn fill(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    /// Another kept connection in the place of one that does not answer.
    pub(super) fn replace(&mut self) {
        self.connection = self.pool.kept();
    }

    pub(super) fn connection(&mut self) -> Result<&mut Connection, SqlError> {
        self.connection.as_mut().ok_or_else(|| SqlError::Connect("the connection is gone".to_owned()))
    }

    /// Cleans the connection and keeps it; nobody waits for that. `open` says that a transaction is to be ended first.
    pub(super) fn give_back(mut self, open: bool) {
        let (Some(mut connection), slot, pool) = (self.connection.take(), self.slot.take(), self.pool.clone()) else {
            return;
        };
        tidy(async move {
            // Two commands, because the second is refused inside a transaction, which a pair of commands is.
            let ended = if open { connection.command("ROLLBACK").await.is_ok() } else { true };
            match ended && connection.command("DISCARD ALL").await == Ok(b'I') {
                true => pool.keep(connection),
                false => connection.close().await,
            }
            drop(slot);
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let slot = self.slot.take();
        tidy(async move {
            if let Some(canceller) = connection.canceller() {
                // A server that cannot be reached any more has nothing to stop.
                let _ = canceller.cancel().await;
            }
            connection.close().await;
            drop(slot);
        });
    }
}

/// Runs beside everything else, and not for ever.
fn tidy(work: impl Future<Output = ()> + Send + 'static) {
    spawn(async move {
        let _ = tokio::time::timeout(TIDYING, work).await;
    });
}

/// A process that ends has no runtime any more, and closes its connections by ending.
fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(work);
    }
}
