//! Who is told of secret values, so that text that leaves the server can be masked.

use noetl_contract::Tenant;

/// Told of every value the wallet seals or opens.
pub trait Learns: Send + Sync {
    fn learn(&self, tenant: &Tenant, value: &str);
}
