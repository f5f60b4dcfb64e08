//! Which connections leave this machine: one policy for every driver that opens one.
//!
//! A driver never connects to a name. It asks [`Resolver::resolve`] and connects to what that answers, so the
//! address that was checked is the address that is used: a name cannot lead to one place for the check and to
//! another for the connection. An address written as digits meets no resolver and is checked by
//! [`Addresses::check`].
//!
//! A lookup runs on a thread of its own until the system's resolver gives up, long after whoever asked has. So lookups
//! are bounded and shared like everything else tenants queue for: names of a domain that never answers keep their owner
//! waiting, and nobody else.
//!
//! Invariant: an address where clouds hand out a machine's credentials is out of reach even where the operator
//! opens the private network; no plugin has business there.

use std::io;
use std::net::{IpAddr, SocketAddr};

use noetl_contract::Tenant;

use crate::fair::Budget;

mod address;

pub use address::{Place, place};

/// Lookups at once, of all tenants; far fewer than the threads that block.
const MOST_LOOKUPS: usize = 32;

/// What the operator permits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Addresses {
    /// Loopback and private networks too.
    pub private: bool,
}

/// An address that is out of reach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreachable {
    #[error("{0} is not a public address; an operator can allow it with `policy.http_private_addresses`")]
    Private(IpAddr),
    #[error("{0} is link-local or serves a machine's credentials; no plugin can reach it")]
    Metadata(IpAddr),
    /// Which address it is, is the operator's to know.
    #[error(
        "`{name}` resolves to an address that is out of reach; where it is one of a private network, an operator can \
         allow it with `policy.http_private_addresses`"
    )]
    Name { name: String },
}

impl Addresses {
    pub fn check(self, address: IpAddr) -> Result<(), Unreachable> {
        match place(address) {
            Place::Public => Ok(()),
            Place::Private if self.private => Ok(()),
            Place::Private => Err(Unreachable::Private(address)),
            Place::Metadata => Err(Unreachable::Metadata(address)),
        }
    }

    /// Checks what a name was found to mean. One address out of reach among good ones is enough to refuse: which
    /// of them is used is not ours to choose.
    pub fn check_all(self, name: &str, found: &[SocketAddr]) -> Result<(), Unreachable> {
        let named = |refused: Unreachable| {
            // Who writes an address knows it.
            if name.parse::<IpAddr>().is_ok() {
                return refused;
            }
            tracing::info!(name, %refused, "a plugin was kept from an address");
            Unreachable::Name { name: name.to_owned() }
        };
        found.iter().try_for_each(|socket| self.check(socket.ip())).map_err(named)
    }
}

/// Names to addresses. Cheap to clone; all clones share their bound.
#[derive(Clone)]
pub struct Resolver {
    addresses: Addresses,
    lookups: Budget,
}

impl Resolver {
    pub fn new(addresses: Addresses) -> Self {
        Self { addresses, lookups: Budget::new(0, 0, MOST_LOOKUPS) }
    }

    /// The addresses to connect to.
    pub async fn resolve(&self, whose: &Tenant, name: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
        let asked = name.to_owned();
        let lookup = async move {
            let found = tokio::net::lookup_host((asked.as_str(), port)).await;
            found.map(|sockets| sockets.collect::<Vec<_>>())
        };
        let found = self.bounded(whose, lookup).await?;
        self.addresses.check_all(name, &found)?;
        Ok(found)
    }

    /// Runs a lookup in its turn. Its slot is its own until it has really ended, whoever has gone meanwhile.
    async fn bounded<T: Send + 'static>(
        &self,
        whose: &Tenant,
        lookup: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        let slot = self.lookups.reserve(whose, 0, 1, false).await;
        let running = tokio::spawn(async move {
            let found = lookup.await;
            drop(slot);
            found
        });
        running.await.map_err(io::Error::other)?
    }
}

/// Why a name gave no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error("the name cannot be resolved: {0}")]
    Lookup(#[from] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn sockets(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 80)).collect()
    }

    #[test]
    fn one_private_address_among_public_ones_is_enough_to_refuse() {
        let policy = Addresses { private: false };
        assert_eq!(policy.check_all("good.example", &sockets(&["1.1.1.1", "2606:4700::1111"])), Ok(()));
        let refused = policy.check_all("bad.example", &sockets(&["1.1.1.1", "::ffff:10.0.0.1"])).expect_err("refused");
        let refused = refused.to_string();
        assert!(refused.contains("bad.example") && !refused.contains("10.0.0.1"), "{refused}");
    }

    #[test]
    fn credentials_stay_out_of_reach_where_the_private_network_is_open() {
        let policy = Addresses { private: true };
        assert_eq!(policy.check_all("intern", &sockets(&["127.0.0.1", "10.0.0.1"])), Ok(()));
        assert!(policy.check_all("metadata", &sockets(&["169.254.169.254"])).is_err());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_by_what_it_resolves_to() {
        let resolve = async |private| {
            let resolver = Resolver::new(Addresses { private });
            resolver.resolve(&Tenant::main(), "localhost", 80).await
        };
        let refused = resolve(false).await.expect_err("loopback");
        assert!(matches!(refused, ResolveError::Unreachable(Unreachable::Name { .. })), "{refused}");
        assert!(resolve(true).await.is_ok());
    }

    #[tokio::test]
    async fn a_lookup_keeps_its_slot_when_nobody_waits_for_it_any_more() {
        let resolver = Resolver { addresses: Addresses::default(), lookups: Budget::new(0, 0, 1) };
        let tenant = Tenant::main();
        let (answer, stalled) = tokio::sync::oneshot::channel::<()>();
        let lookup = async move { stalled.await.map_err(io::Error::other) };
        let mut first = Box::pin(resolver.bounded(&tenant, lookup));
        assert!((&mut first).now_or_never().is_none());
        drop(first);
        let mut second = Box::pin(resolver.bounded(&tenant, async { Ok(()) }));
        for _ in 0..10 {
            tokio::task::yield_now().await;
            assert!((&mut second).now_or_never().is_none(), "the first still takes the only slot");
        }
        answer.send(()).expect("the lookup goes on without its caller");
        second.await.expect("its turn");
    }
}
