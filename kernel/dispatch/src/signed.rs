//! Signatures on the way in and on the way to a call.
//!
//! A push must bring, or find, the signatures its path wants. They are asked for again whenever a module is made ready:
//! after a restart, after a change of the operator's policy, after a module was let go. A version that is ready needs
//! no further look, since the policy of a running server does not change.
//!
//! What is compiled into the binary is trusted as the binary is. So where a platform's own path gets locked, a version
//! that lacks its signature stops serving, and for the engine's services the one compiled in takes over.

use noetl_contract::{Digest, Manifest};
use noetl_registry::signatures::{Envelope, Unsigned, join};
use noetl_registry::{BytesAt, Entry, Resolved};

use crate::Kernel;
use crate::error::PushError;

impl Kernel {
    /// Everything that is said about the bytes of a push: what came with it must be about them and verify.
    pub(crate) fn check_signed(
        &self,
        manifest: &Manifest,
        digest: &Digest,
        given: &[Envelope],
    ) -> Result<Vec<Envelope>, PushError> {
        let (path, version) = (&manifest.path, &manifest.version);
        let known = self.catalog.entry(path, version);
        let there = known.is_some();
        let known = known.map(|entry| entry.attestations.clone()).unwrap_or_default();
        let all = join(digest, &known, given)?;
        self.signers.check(path, version, digest, &all).map_err(|unsigned| told(unsigned, there))?;
        Ok(all)
    }

    pub(crate) fn must_be_signed(&self, resolved: &Resolved) -> Result<(), Box<Unsigned>> {
        match resolved.bytes {
            BytesAt::Embedded(_) => Ok(()),
            BytesAt::Payload => self.lacks_signature(&resolved.entry).map_or(Ok(()), Err),
        }
    }

    /// Why a pushed version is not served under this server's policy, if it is not.
    pub fn lacks_signature(&self, entry: &Entry) -> Option<Box<Unsigned>> {
        let checked = self.signers.check(&entry.path, &entry.version, &entry.digest, &entry.attestations);
        checked.err().map(|unsigned| told(unsigned, true))
    }
}

/// A refusal advises to sign a version where it is only if it is there.
fn told(mut unsigned: Box<Unsigned>, there: bool) -> Box<Unsigned> {
    unsigned.there = there;
    unsigned
}
