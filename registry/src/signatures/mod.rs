//! Who vouches for which bytes: ed25519 keys, signed statements, and which signers a namespace wants.
//!
//! What is signed is an in-toto statement about one digest, in a DSSE envelope: the forms that the field's own tools
//! read. The digest of a component covers its manifest and with it path and version, so a signature of the digest
//! covers what is pushed, where, and as what. The statement adds how it was made (SLSA provenance). It has no time
//! in it: the same sources, compiler and key give the same envelope, so pushing twice records once.
//!
//! Invariants:
//! 1. A signature counts only if it verifies over the exact bytes of the statement and the statement names the
//!    digest in question. What was recorded is verified again whenever it is used; no verdict is stored.
//! 2. The private half of a key has no `Debug`, no `Display` and no serialised form but the file it is kept in.
//! 3. A policy only adds demands: of several entries that match a path, each has to be met.
//!
//! Bad input: envelopes come from registries, bundles and whoever pushes; sizes and numbers are bounded before
//! anything is parsed.

mod envelope;
mod key;
mod policy;
mod statement;
#[cfg(test)]
mod tests;

pub use envelope::{Attestation, AttestationError, Envelope, MAX_ENVELOPE_BYTES, MAX_ENVELOPES};
pub use key::{KeyError, PublicKey, SecretKey};
pub use policy::{Requirement, SignerPolicy, Unsigned};
pub use statement::{Provenance, Source, Statement};

use noetl_contract::Digest;

/// What envelopes say about a digest: those whose signatures hold and that are about it; the others say nothing.
pub fn about(digest: &Digest, envelopes: &[Envelope]) -> (Vec<PublicKey>, Option<Provenance>) {
    let opened: Vec<Attestation> = envelopes
        .iter()
        .filter_map(|envelope| envelope.open().ok())
        .filter(|it| it.statement.digest == *digest)
        .collect();
    let mut signers: Vec<PublicKey> =
        opened.iter().flat_map(|attestation| attestation.signers.iter().cloned()).collect();
    signers.sort();
    signers.dedup();
    // A signed word about the origin goes before an unsigned one.
    let signed = opened.iter().filter(|attestation| !attestation.signers.is_empty());
    let unsigned = opened.iter().filter(|attestation| attestation.signers.is_empty());
    let provenance = signed.chain(unsigned).find_map(|attestation| attestation.statement.provenance.clone());
    (signers, provenance)
}

/// Those of `new` that are not in `known`: equal envelopes once, and signatures of a statement joined in one envelope.
pub fn merge(known: &[Envelope], new: &[Envelope]) -> Vec<Envelope> {
    let mut all: Vec<Envelope> = Vec::new();
    for envelope in known.iter().chain(new) {
        match all.iter_mut().find(|there| there.is_about_the_same(envelope)) {
            Some(there) => there.add_signatures(envelope),
            None => all.push(envelope.clone()),
        }
    }
    all
}
