//! How a value is closed: envelope encryption.
//!
//! Each record has a data key of its own, 256 random bits that seal one value once (AES-256-GCM); the data key is sealed by
//! the key-encryption key. So a rotation of the latter touches 32 bytes a record and never a value.
//!
//! Both seals are made over the identity of the record: tenant, alias, kind and revision. A value moved to another row, to
//! another tenant or back to an older revision does not open. The two have different labels, so that one is never taken for
//! the other.
//!
//! The form is JSON, `{v, alg, ct, dek: {p, kid, ct}}`: `ct` is base64 of nonce, ciphertext and tag; `p` says who wrapped the
//! data key and `kid` with which key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::keys::{KEY_BYTES, Kek, Keyring};

const VERSION: u8 = 1;
const ALGORITHM: &str = "A256GCM";
/// Keys that this process holds; a service that wraps keys itself would have another name.
const LOCAL: &str = "local";

/// Whose value it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity<'a> {
    pub tenant: &'a str,
    pub alias: &'a str,
    pub kind: &'a str,
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sealed {
    v: u8,
    alg: String,
    ct: String,
    dek: Wrapped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Wrapped {
    p: String,
    kid: String,
    ct: String,
}

/// Why a record stays closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    #[error(
        "it was sealed with the key `{kid}`, which this server was not given: add that key again, after the present one"
    )]
    NoKey { kid: String },
    #[error("it was changed outside of the server, or its key is not the one it was sealed with: make it again")]
    Broken,
    #[error("its form is not known ({0}): it was written by another version, or changed outside of the server")]
    Form(String),
    #[error("the system has no randomness to make a key from")]
    NoRandomness,
}

impl Identity<'_> {
    /// Each part with its length before it, so that no two identities read alike.
    fn bound_to(&self, label: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in [label, self.tenant, self.alias, self.kind] {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes.extend_from_slice(&self.revision.to_be_bytes());
        bytes
    }

    fn of_value(&self) -> Vec<u8> {
        self.bound_to("noetl wallet value 1")
    }

    fn of_key(&self) -> Vec<u8> {
        self.bound_to("noetl wallet key 1")
    }
}

pub(super) fn seal(kek: &Kek, whose: Identity<'_>, value: &[u8]) -> Result<Sealed, SealError> {
    let mut data_key = Zeroizing::new([0_u8; KEY_BYTES]);
    SystemRandom::new().fill(&mut data_key[..]).map_err(|_| SealError::NoRandomness)?;
    let ct = close(&data_key, &whose.of_value(), value)?;
    let dek = wrap(kek, whose, &data_key[..])?;
    Ok(Sealed { v: VERSION, alg: ALGORITHM.to_owned(), ct, dek })
}

pub(super) fn open(keys: &Keyring, whose: Identity<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let data_key = unwrap(keys, whose, sealed)?;
    let key = <&[u8; KEY_BYTES]>::try_from(&data_key[..]).map_err(|_| SealError::Broken)?;
    disclose(key, &whose.of_value(), &sealed.ct)
}

/// The same value under the key that seals now.
pub(super) fn rewrap(keys: &Keyring, whose: Identity<'_>, sealed: &Sealed) -> Result<Sealed, SealError> {
    let data_key = unwrap(keys, whose, sealed)?;
    Ok(Sealed { dek: wrap(keys.first(), whose, &data_key)?, ..sealed.clone() })
}

fn wrap(kek: &Kek, whose: Identity<'_>, data_key: &[u8]) -> Result<Wrapped, SealError> {
    let ct = close(kek.bytes(), &whose.of_key(), data_key)?;
    Ok(Wrapped { p: LOCAL.to_owned(), kid: kek.kid().to_owned(), ct })
}

fn unwrap(keys: &Keyring, whose: Identity<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, SealError> {
    if (sealed.v, sealed.alg.as_str(), sealed.dek.p.as_str()) != (VERSION, ALGORITHM, LOCAL) {
        return Err(SealError::Form(format!("version {}, {}, wrapped by {}", sealed.v, sealed.alg, sealed.dek.p)));
    }
    let kek = keys.get(&sealed.dek.kid).ok_or_else(|| SealError::NoKey { kid: sealed.dek.kid.clone() })?;
    disclose(kek.bytes(), &whose.of_key(), &sealed.dek.ct)
}

fn cipher(key: &[u8; KEY_BYTES]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("the key has the length of the algorithm"))
}

/// Nonces are random: a data key seals once, and a key-encryption key far fewer records than make two of them likely to meet.
fn close(key: &[u8; KEY_BYTES], bound_to: &[u8], plain: &[u8]) -> Result<String, SealError> {
    let mut nonce = [0; NONCE_LEN];
    SystemRandom::new().fill(&mut nonce).map_err(|_| SealError::NoRandomness)?;
    // Encrypted where it lies, so that no copy of the value is left behind in memory.
    let mut bytes = Zeroizing::new(plain.to_vec());
    let sealing = cipher(key).seal_in_place_separate_tag(
        Nonce::assume_unique_for_key(nonce),
        Aad::from(bound_to),
        bytes.as_mut_slice(),
    );
    let tag = sealing.map_err(|_| SealError::Form("the value is too large".to_owned()))?;
    Ok(STANDARD.encode([&nonce, bytes.as_slice(), tag.as_ref()].concat()))
}

fn disclose(key: &[u8; KEY_BYTES], bound_to: &[u8], text: &str) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let bytes = STANDARD.decode(text).map_err(|_| SealError::Form("it is not base64".to_owned()))?;
    let (nonce, closed) = bytes.split_at_checked(NONCE_LEN).ok_or(SealError::Broken)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Broken)?;
    let mut closed = Zeroizing::new(closed.to_vec());
    let length =
        cipher(key).open_in_place(nonce, Aad::from(bound_to), &mut closed).map_err(|_| SealError::Broken)?.len();
    closed.truncate(length);
    Ok(closed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PG: Identity<'static> = Identity { tenant: "acme", alias: "pg", kind: "postgres", revision: 7 };

    fn ring(count: usize) -> Keyring {
        (1..count).fold(Keyring::generate().expect("randomness"), |keys, _| keys.with_new().expect("randomness"))
    }

    #[test]
    fn a_value_opens_for_its_own_record_alone() {
        let keys = ring(1);
        let sealed = seal(keys.first(), PG, b"hunter2").expect("sealed");
        assert_eq!(open(&keys, PG, &sealed).expect("its own").as_slice(), b"hunter2");
        for other in [
            Identity { tenant: "other", ..PG },
            Identity { alias: "pg2", ..PG },
            Identity { kind: "basic", ..PG },
            Identity { revision: 8, ..PG },
            // The same letters in other places.
            Identity { tenant: "acmep", alias: "g", ..PG },
        ] {
            assert_eq!(open(&keys, other, &sealed).map(drop), Err(SealError::Broken), "{other:?}");
        }
    }

    #[test]
    fn a_value_without_its_key_stays_closed_and_names_the_key() {
        let (keys, others) = (ring(1), ring(1));
        let sealed = seal(keys.first(), PG, b"hunter2").expect("sealed");
        let kid = keys.first().kid().to_owned();
        assert_eq!(open(&others, PG, &sealed).map(drop), Err(SealError::NoKey { kid }));
        let mut forged = sealed.clone();
        forged.dek.kid = others.first().kid().to_owned();
        assert_eq!(open(&others, PG, &forged).map(drop), Err(SealError::Broken));
    }

    #[test]
    fn a_new_key_leaves_the_sealed_value_as_it_is() {
        let old = ring(1);
        let sealed = seal(old.first(), PG, b"hunter2").expect("sealed");
        let both = old.with_new().expect("randomness");
        let again = rewrap(&both, PG, &sealed).expect("wrapped again");
        assert_eq!((&again.ct, again.dek.kid.as_str()), (&sealed.ct, both.first().kid()));
        assert_eq!(open(&both.only_first(), PG, &again).expect("opens").as_slice(), b"hunter2");
        assert!(open(&old, PG, &again).is_err());
    }

    #[test]
    fn two_values_sealed_alike_share_nothing() {
        let keys = ring(1);
        let (one, two) = (seal(keys.first(), PG, b"same"), seal(keys.first(), PG, b"same"));
        assert_ne!(one.expect("sealed").ct, two.expect("sealed").ct);
    }

    proptest! {
        #[test]
        fn every_value_comes_back_and_no_changed_byte_goes_unseen(
            value in proptest::collection::vec(any::<u8>(), 0..300), alias in "[a-z]{1,8}", revision: u64, at: usize, bit in 0..8u8,
        ) {
            let keys = ring(2);
            let whose = Identity { alias: &alias, revision, ..PG };
            let sealed = seal(keys.first(), whose, &value).expect("sealed");
            let opened = open(&keys, whose, &sealed).expect("opens");
            prop_assert_eq!(opened.as_slice(), value.as_slice());
            for in_the_key in [false, true] {
                let mut changed = sealed.clone();
                let text = if in_the_key { &mut changed.dek.ct } else { &mut changed.ct };
                let mut bytes = STANDARD.decode(&*text).expect("base64");
                let at = at % bytes.len();
                bytes[at] ^= 1 << bit;
                *text = STANDARD.encode(bytes);
                prop_assert_eq!(open(&keys, whose, &changed).map(drop), Err(SealError::Broken));
            }
        }
    }
}
