//! Who is told of secret values, so that they can be found in text that leaves the server and in data that comes in.

use noetl_contract::Tenant;

/// A secret value, and what it is.
#[derive(Clone, Copy)]
pub struct Secret<'s> {
    pub alias: &'s str,
    pub field: &'s str,
    pub value: &'s str,
    /// Of its credential.
    pub revision: u64,
    pub state: State,
}

/// Whether a value is used, and where it is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is in the wallet.
    Kept,
    /// It was fetched for what is in the wallet.
    Fetched,
    /// It was one of the two before.
    Former,
}

/// Told of every value that the wallet has sealed or opened.
pub trait Learns: Send + Sync {
    fn learn(&self, tenant: &Tenant, secret: Secret<'_>);

    /// What a credential had is former from now on: it was deleted, or has other values.
    fn retire(&self, tenant: &Tenant, alias: &str);
}
