//! The contract as data: what the WIT packages, `rings.toml` and `plugin.toml` say, in types that every
//! other crate shares.
//!
//! Nothing here does I/O or knows how a component is run. The invariants:
//! 1. An id that exists is valid: the only way to a [`Tenant`], [`PluginPath`] or [`Digest`] is a checked
//!    constructor, so no other crate re-checks one.
//! 2. The ring of a component follows from its path and the pusher's privilege ([`rings::Ring::of`]); a
//!    manifest cannot name one.
//! 3. The WIT text compiled in here is the text guests are built from; `wit.lock` freezes released packages.

pub mod description;
pub mod ids;
pub mod inspect;
pub mod limits;
pub mod manifest;
pub mod packages;
pub mod placeholder;
pub mod rings;
pub mod skew;
pub mod source;

pub use ids::{Digest, PluginPath, ServiceName, Tenant, Version};
pub use limits::Limits;
pub use manifest::Manifest;
pub use rings::{Capability, CapabilitySet, Ring};
