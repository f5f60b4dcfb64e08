//! What the placeholders of all tenants are written with.
//!
//! Placeholders are in events, and executions outlive the server's process, so the key must too. It lies in the wallet's file
//! as it is, not sealed: who can read that file can read the log beside it, which has placeholders with good tags. And so a
//! rotation of the wallet's keys does not touch it.

use std::fmt;

use noetl_contract::Tenant;
use noetl_contract::placeholder::Seal;
use zeroize::Zeroizing;

use super::keys::KEY_BYTES;

/// The key of all tenants' seals.
#[derive(Clone)]
pub struct Seals(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for Seals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seals")
    }
}

impl Seals {
    pub fn new(key: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(key))
    }

    pub fn of(&self, tenant: &Tenant) -> Seal {
        Seal::of(&self.0[..], tenant.as_str())
    }
}
