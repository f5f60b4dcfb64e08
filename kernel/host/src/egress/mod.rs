//! Which connections leave this machine: one policy for every driver that opens one.
//!
//! A driver never connects to a name. It asks [`Addresses::resolve`] and connects to what that answers, so the
//! address that was checked is the address that is used: a name cannot lead to one place for the check and to
//! another for the connection. An address written as digits meets no resolver and is checked by
//! [`Addresses::check`].
//!
//! Invariant: an address where clouds hand out a machine's credentials is out of reach even where the operator
//! opens the private network; no plugin has business there.

use std::net::{IpAddr, SocketAddr};

mod address;

pub use address::{Place, place};

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
    #[error("`{name}` resolves to an address out of reach: {address}")]
    Name { name: String, address: Box<Unreachable> },
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
        let named = |address| Unreachable::Name { name: name.to_owned(), address: Box::new(address) };
        found.iter().try_for_each(|socket| self.check(socket.ip())).map_err(named)
    }

    /// The addresses to connect to.
    pub async fn resolve(self, name: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name, port)).await?.collect();
        self.check_all(name, &found)?;
        Ok(found)
    }
}

/// Why a name gave no address to connect to.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error("the name cannot be resolved: {0}")]
    Lookup(#[from] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 80)).collect()
    }

    #[test]
    fn one_private_address_among_public_ones_is_enough_to_refuse() {
        let policy = Addresses { private: false };
        assert_eq!(policy.check_all("good.example", &sockets(&["1.1.1.1", "2606:4700::1111"])), Ok(()));
        let refused = policy.check_all("bad.example", &sockets(&["1.1.1.1", "::ffff:10.0.0.1"])).expect_err("refused");
        assert!(refused.to_string().contains("bad.example"), "{refused}");
    }

    #[test]
    fn credentials_stay_out_of_reach_where_the_private_network_is_open() {
        let policy = Addresses { private: true };
        assert_eq!(policy.check_all("intern", &sockets(&["127.0.0.1", "10.0.0.1"])), Ok(()));
        assert!(policy.check_all("metadata", &sockets(&["169.254.169.254"])).is_err());
    }

    #[tokio::test]
    async fn a_name_of_this_machine_is_refused_by_what_it_resolves_to() {
        let refused = Addresses::default().resolve("localhost", 80).await.expect_err("loopback");
        assert!(matches!(refused, ResolveError::Unreachable(Unreachable::Name { .. })), "{refused}");
        assert!(Addresses { private: true }.resolve("localhost", 80).await.is_ok());
    }
}
