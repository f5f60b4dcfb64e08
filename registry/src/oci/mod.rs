//! Plugins in OCI registries and in air-gapped bundles.
//!
//! An artefact is the component and nothing else: one layer `application/wasm` under the config of the Wasm artefact
//! layout, which other tools push and pull too. The layer's digest is the digest of the catalog. Config and manifest
//! follow from the component's bytes alone, so pushing what was pulled gives the same manifest digest.
//!
//! Attestations lie beside it under the tag `sha256-<manifest digest>.att`, a layer an envelope: registries that know
//! nothing of referrers keep them, and it is where signing tools of the field look. A bundle is an OCI image layout in
//! a tar file with the same manifests and blobs, so whatever reads `oci-archive:` reads it.
//!
//! Invariants:
//! 1. No byte of a component is believed before its digest was computed here.
//! 2. What a registry or a bundle says is bounded before it is held in memory.
//! 3. Attestations carried along prove nothing by themselves: the server verifies them. Those that do not hold or are
//!    about other things are left out when a component is taken, and left alone when one is put.
//!
//! On a crash or a lost connection a push leaves blobs that no tag names, and a tag that is moved last.

mod artefact;
mod bundle;
mod credentials;
mod error;
mod reference;
mod remote;
#[cfg(test)]
mod tests;

pub use artefact::Artefact;
pub use bundle::{Bundle, BundleWriter, Bundled, BundledVersion};
pub use credentials::Credentials;
pub use error::OciError;
pub use reference::OciReference;
pub use remote::{Published, Remote};

/// The largest component that is taken from a registry or a bundle.
pub const MAX_COMPONENT_BYTES: u64 = 1 << 30;
