//! Who is told of secret values, so that text that leaves the server can be masked.

/// Told of every value the wallet seals or opens.
pub trait Learns: Send + Sync {
    fn learn(&self, value: &str);
}
