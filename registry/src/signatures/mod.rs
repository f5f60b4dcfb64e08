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
//! 4. What is recorded can be opened: nothing that is added makes a signature that counted count no more.
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
pub use statement::{Build, Source, Statement};

use noetl_contract::Digest;
use serde::Serialize;

/// How something was made, and who says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    #[serde(flatten)]
    pub build: Build,
    /// Who signed this very statement; whoever only stands by the bytes is not among them. Empty: nobody vouches for it.
    pub signed_by: Vec<PublicKey>,
}

/// What envelopes say about a digest: those whose signatures hold and that are about it; the others say nothing.
pub fn about(digest: &Digest, envelopes: &[Envelope]) -> (Vec<PublicKey>, Option<Provenance>) {
    let opened: Vec<Attestation> = envelopes.iter().filter_map(|envelope| envelope.open_for(digest).ok()).collect();
    let signers = sorted(opened.iter().flat_map(|attestation| attestation.signers.iter().cloned()).collect());
    // A signed word about the origin goes before an unsigned one.
    let signed = opened.iter().filter(|attestation| !attestation.signers.is_empty());
    let unsigned = opened.iter().filter(|attestation| attestation.signers.is_empty());
    let provenance = signed.chain(unsigned).find_map(|attestation| {
        let build = attestation.statement.provenance.clone()?;
        Some(Provenance { build, signed_by: sorted(attestation.signers.clone()) })
    });
    (signers, provenance)
}

fn sorted(mut keys: Vec<PublicKey>) -> Vec<PublicKey> {
    keys.sort();
    keys.dedup();
    keys
}

/// Both: equal envelopes once, and signatures of a statement joined in one envelope. Of envelopes that nobody has signed
/// the first stays: they prove nothing, and any number of them would take the place of those that do.
pub fn merge(known: &[Envelope], new: &[Envelope]) -> Vec<Envelope> {
    let mut all: Vec<Envelope> = Vec::new();
    for envelope in known.iter().chain(new) {
        match all.iter_mut().find(|there| there.is_about_the_same(envelope)) {
            Some(there) => there.add_signatures(envelope),
            None => all.push(envelope.clone()),
        }
    }
    let mut has_unsigned = false;
    all.retain(|envelope| !envelope.is_unsigned() || !std::mem::replace(&mut has_unsigned, true));
    all
}

/// What is to be kept about a digest when `new` comes to `known`. Each of `new` must be about it and hold, and so must
/// what they become together: an envelope with more signatures than are read would make none of them count, so it is
/// refused before anything is written.
pub fn join(digest: &Digest, known: &[Envelope], new: &[Envelope]) -> Result<Vec<Envelope>, AttestationError> {
    for envelope in new {
        envelope.open_for(digest)?;
    }
    let all = merge(known, new);
    if all.len() > MAX_ENVELOPES {
        return Err(AttestationError::TooMany);
    }
    for envelope in all.iter().filter(|envelope| !known.contains(envelope)) {
        envelope.open_for(digest)?;
        // Elsewhere it is read as JSON, with the same bound.
        if envelope.to_json().len() > MAX_ENVELOPE_BYTES {
            return Err(AttestationError::TooLarge);
        }
    }
    Ok(all)
}
