//! Ed25519 keys, as text and as the files that other tools read too.
//!
//! A public key is `ed25519:` and 64 hexadecimal digits, in the manner of digests. A private key is a PKCS#8 file as
//! `openssl genpkey -algorithm ed25519` writes it: it can be made elsewhere and taken along.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

/// What comes before the 32 bytes of a private key in its standard form (PKCS#8, RFC 8410).
const PRIVATE_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
/// The same for a public one (SubjectPublicKeyInfo).
const PUBLIC_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

const PREFIX: &str = "ed25519:";
const PRIVATE: &str = "PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("`{0}` is not a public key: use `ed25519:` and 64 hexadecimal digits, as `noetl key list` shows them")]
    NotPublic(String),
    /// Says nothing of what is there: it may be a secret.
    #[error("this is not a private ed25519 key in PEM form (PKCS#8)")]
    NotPrivate,
    #[error("the system gave no randomness")]
    NoRandomness,
}

/// Whose signature something is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// The form that other tools read.
    pub fn pem(&self) -> String {
        pem(PUBLIC, &[&PUBLIC_HEAD[..], &self.0].concat())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", hex::encode(self.0))
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut raw = [0; 32];
        let digits = text.strip_prefix(PREFIX).and_then(|digits| hex::decode_to_slice(digits, &mut raw).ok());
        digits.map(|()| Self(raw)).ok_or_else(|| KeyError::NotPublic(text.chars().take(100).collect()))
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> String {
        key.to_string()
    }
}

/// The half that signs.
pub struct SecretKey(Ed25519KeyPair);

impl SecretKey {
    /// A new key, and the text of the file to keep it in.
    pub fn generate() -> Result<(Self, String), KeyError> {
        let mut der = [0; 48];
        let (head, seed) = der.split_at_mut(PRIVATE_HEAD.len());
        head.copy_from_slice(&PRIVATE_HEAD);
        SystemRandom::new().fill(seed).map_err(|_| KeyError::NoRandomness)?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| KeyError::NotPrivate)?;
        Ok((Self(pair), pem(PRIVATE, &der)))
    }

    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = from_pem(PRIVATE, text).ok_or(KeyError::NotPrivate)?;
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map(Self).map_err(|_| KeyError::NotPrivate)
    }

    pub fn public(&self) -> PublicKey {
        let mut raw = [0; 32];
        raw.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(raw)
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn from_pem(label: &str, text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    STANDARD.decode(body.split_ascii_whitespace().collect::<String>()).ok()
}
