//! What one call may use. Every field is enforced by the host; none is advisory.

use serde::{Deserialize, Serialize};

/// Bounds of one call. Defaults suit a small transform; a manifest raises them, the operator caps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limits {
    /// Time the guest itself computes.
    pub cpu_ms: u64,
    /// Time from start to end, host calls included.
    pub wall_ms: u64,
    /// Sum over all linear memories and tables of the instance.
    pub memory_bytes: u64,
    /// Bytes the guest may answer with.
    pub output_bytes: u64,
    /// Calls into the host.
    pub host_calls: u64,
    /// Bytes that cross into the host in arguments, summed over the call.
    pub host_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cpu_ms: 1_000,
            wall_ms: 10_000,
            memory_bytes: 64 << 20,
            output_bytes: 16 << 20,
            host_calls: 10_000,
            host_bytes: 64 << 20,
        }
    }
}

impl Limits {
    /// Each bound cut to that of `cap`.
    pub fn capped(self, cap: &Limits) -> Self {
        Self {
            cpu_ms: self.cpu_ms.min(cap.cpu_ms),
            wall_ms: self.wall_ms.min(cap.wall_ms),
            memory_bytes: self.memory_bytes.min(cap.memory_bytes),
            output_bytes: self.output_bytes.min(cap.output_bytes),
            host_calls: self.host_calls.min(cap.host_calls),
            host_bytes: self.host_bytes.min(cap.host_bytes),
        }
    }
}
