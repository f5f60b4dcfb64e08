//! The platform's own components, compiled into the binary.
//!
//! They make an empty catalog work, and they are what serves when every pushed version of a system plugin is broken.
//! Each carries its manifest inside, like any component; the build script only lists bytes.

use noetl_contract::{Manifest, Ring, manifest};
use noetl_registry::Embedded;

use crate::failure::{Failure, Outcome};

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Every embedded component, read. A broken one is a broken build, so the server does not start with it.
pub fn all() -> Outcome<Vec<Embedded>> {
    EMBEDDED.iter().map(|(name, digest, bytes)| read(name, digest, bytes)).collect()
}

fn read(name: &str, digest: &str, bytes: &'static [u8]) -> Outcome<Embedded> {
    let broken = |why: String| {
        Failure::failed(format!("the component `{name}` in this binary is broken: {why}"))
            .next("build the binary again with `cargo xtask build`")
    };
    let text = manifest::extract(bytes)
        .map_err(|error| broken(error.to_string()))?
        .ok_or_else(|| broken("it has no manifest".to_owned()))?;
    let manifest = Manifest::parse(&text).map_err(|errors| broken(errors.to_string()))?;
    let digest = format!("sha256:{digest}").parse().map_err(|error| broken(format!("{error}")))?;
    let ring = Ring::of(&manifest.path, Ring::System);
    Ok(Embedded { manifest, ring, digest, bytes })
}

#[cfg(test)]
mod tests {
    use noetl_contract::Digest;

    use super::*;

    #[test]
    fn every_embedded_component_has_a_valid_manifest_under_a_reserved_path() {
        for embedded in all().expect("all are whole") {
            assert!(embedded.manifest.path.is_reserved(), "{}", embedded.manifest.path);
            assert_eq!(embedded.ring, Ring::System);
            assert_eq!(embedded.digest, Digest::of(embedded.bytes));
        }
    }
}
