//! What a component may hold in one call, and the refusal when its imports ask for more.
//!
//! A grant is an intersection; nothing in it ever adds. Its two fields are the whole key of a linker, so
//! two calls with the same grant share one, and no call can reach a linker with more than its own.

use noetl_contract::inspect::{Import, ImportKind};
use noetl_contract::{Capability, CapabilitySet, Ring};

use crate::error::Denied;

/// The exact set of host functions an instance is linked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    pub(crate) capabilities: CapabilitySet,
    pub(crate) wasi: bool,
}

/// The sets that are intersected.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub manifest: CapabilitySet,
    pub ring: Ring,
    /// The step's own list; absent when the caller does not narrow.
    pub call: Option<CapabilitySet>,
    /// What the operator denies.
    pub denied: CapabilitySet,
}

impl Terms {
    pub fn grant(&self) -> Grant {
        let held = self.manifest.intersect(self.ring.capabilities()).minus(self.denied);
        Grant { capabilities: self.call.map_or(held, |call| held.intersect(call)), wasi: self.ring.has_wasi() }
    }

    /// Refuse the first import that the grant does not cover, saying which of the sets lacks it.
    pub fn check(&self, imports: &[Import]) -> Result<Grant, Denied> {
        let grant = self.grant();
        for import in imports {
            let name = || import.name.clone();
            match import.kind {
                ImportKind::Base => {}
                ImportKind::Capability(capability) if grant.capabilities.contains(capability) => {}
                ImportKind::Capability(capability) => return Err(self.why_not(name(), capability)),
                ImportKind::Wasi if import.refused_wasi() => {
                    return Err(Denied::Refused { import: name(), instead: "use the capability `http-client`" });
                }
                ImportKind::Wasi if grant.wasi => {}
                ImportKind::Wasi => return Err(Denied::Wasi { import: name() }),
                ImportKind::Unknown => return Err(Denied::Unknown { import: name() }),
            }
        }
        Ok(grant)
    }

    pub(crate) fn why_not(&self, import: String, capability: Capability) -> Denied {
        if !self.manifest.contains(capability) {
            Denied::NotListed { import, capability }
        } else if !self.ring.capabilities().contains(capability) {
            Denied::NotInRing { import, capability, ring: self.ring, allowed: capability.rings() }
        } else if self.denied.contains(capability) {
            Denied::Policy { import, capability }
        } else {
            let granted = self.call.unwrap_or_default().to_string();
            Denied::NotInCall { import, capability, granted }
        }
    }
}
