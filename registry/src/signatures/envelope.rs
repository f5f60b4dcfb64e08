//! A statement and who signed it, in a DSSE envelope.
//!
//! What is signed is DSSE's pre-authentication encoding: a fixed word, the type of the payload and the payload, each
//! with its length. So a signature made here is never one of anything else, and the statement is verified as the
//! bytes it came in: nothing has to be written in one canonical way by two programs.
//!
//! An envelope without signatures is allowed: it says where something comes from, and nobody vouches for it.
//!
//! Whoever signs should know what is said. An envelope remembers whether its statement was written here or was read:
//! the second is somebody else's word, which may be verified and carried on, but is not for the taking.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_contract::Digest;
use serde::{Deserialize, Serialize};

use super::key::{PublicKey, SecretKey};
use super::statement::Statement;

/// Type of the payload: an in-toto statement.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Largest envelope as JSON; a statement has a few hundred bytes.
pub const MAX_ENVELOPE_BYTES: usize = 16 << 10;
/// Most envelopes of a version.
pub const MAX_ENVELOPES: usize = 16;
/// Most signatures of a statement.
const MAX_SIGNATURES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttestationError {
    #[error("an attestation has more than {MAX_ENVELOPE_BYTES} bytes")]
    TooLarge,
    #[error("a version has at most {MAX_ENVELOPES} attestations, and this would be more")]
    TooMany,
    #[error("a statement has at most {MAX_SIGNATURES} signatures, and this would be more: nothing was taken")]
    TooManySignatures,
    #[error("an attestation cannot be read: {0}")]
    Malformed(String),
    #[error("an attestation is signed by `{0}`, which is no key this server can check: only `ed25519:` keys are known")]
    UnknownKey(String),
    #[error("the signature of {0} does not fit the statement it stands under: one of the two was changed")]
    BadSignature(PublicKey),
    #[error("an attestation is about {said}, but these bytes are {actual}")]
    OtherDigest { said: Digest, actual: Digest },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    payload_type: String,
    /// The statement in base64.
    payload: String,
    signatures: Vec<Signature>,
    /// The statement was written by this program and not read from anywhere.
    #[serde(skip)]
    is_own: bool,
}

/// Where the statement was written is no part of what is said.
impl PartialEq for Envelope {
    fn eq(&self, other: &Self) -> bool {
        self.is_about_the_same(other) && self.signatures == other.signatures
    }
}

impl Eq for Envelope {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Signature {
    keyid: String,
    /// In base64.
    sig: String,
}

/// An envelope that was read and whose signatures all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Attestation {
    pub statement: Statement,
    pub signers: Vec<PublicKey>,
}

impl Envelope {
    /// The statement, signed by nobody.
    pub fn unsigned(statement: &Statement) -> Self {
        let payload = STANDARD.encode(statement.to_json());
        Self { payload_type: PAYLOAD_TYPE.to_owned(), payload, signatures: Vec::new(), is_own: true }
    }

    /// From JSON, with its bounds checked.
    pub fn parse(json: &[u8]) -> Result<Self, AttestationError> {
        if json.len() > MAX_ENVELOPE_BYTES {
            return Err(AttestationError::TooLarge);
        }
        serde_json::from_slice(json).map_err(|error| AttestationError::Malformed(error.to_string()))
    }

    /// As JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text and lists of text")
    }

    /// Adds a signature; signing twice with a key changes nothing, since ed25519 has no randomness in it.
    pub fn sign(&mut self, key: &SecretKey) -> Result<(), AttestationError> {
        self.must_hold_a_statement()?;
        let message = encoding(&self.payload_type, &self.statement_bytes()?);
        let signature = Signature { keyid: key.public().to_string(), sig: STANDARD.encode(key.sign(&message)) };
        if self.signatures.contains(&signature) {
            return Ok(());
        }
        if self.signatures.len() >= MAX_SIGNATURES {
            return Err(AttestationError::TooManySignatures);
        }
        self.signatures.push(signature);
        Ok(())
    }

    /// Reads the statement and verifies every signature: one that does not hold spoils the whole.
    pub fn open(&self) -> Result<Attestation, AttestationError> {
        self.must_hold_a_statement()?;
        if self.payload.len() > MAX_ENVELOPE_BYTES {
            return Err(AttestationError::TooLarge);
        }
        if self.signatures.len() > MAX_SIGNATURES {
            return Err(AttestationError::TooManySignatures);
        }
        let bytes = self.statement_bytes()?;
        let message = encoding(&self.payload_type, &bytes);
        let mut signers = Vec::new();
        for signature in &self.signatures {
            let key = signature.keyid.parse::<PublicKey>();
            let key = key.map_err(|_| AttestationError::UnknownKey(signature.keyid.chars().take(100).collect()))?;
            let holds = STANDARD.decode(&signature.sig).is_ok_and(|raw| key.verifies(&message, &raw));
            if !holds {
                return Err(AttestationError::BadSignature(key));
            }
            signers.push(key);
        }
        Ok(Attestation { statement: Statement::parse(&bytes).map_err(AttestationError::Malformed)?, signers })
    }

    /// The same, and about these bytes.
    pub fn open_for(&self, digest: &Digest) -> Result<Attestation, AttestationError> {
        let attestation = self.open()?;
        let said = attestation.statement.digest;
        if said != *digest {
            return Err(AttestationError::OtherDigest { said, actual: *digest });
        }
        Ok(attestation)
    }

    /// Whether the statement was written by this program: a build's word about itself, for example.
    pub fn is_own(&self) -> bool {
        self.is_own
    }

    pub(super) fn is_unsigned(&self) -> bool {
        self.signatures.is_empty()
    }

    pub(super) fn is_about_the_same(&self, other: &Envelope) -> bool {
        self.payload_type == other.payload_type && self.payload == other.payload
    }

    /// One signature a key: a second one of the same says nothing more.
    pub(super) fn add_signatures(&mut self, other: &Envelope) {
        for signature in &other.signatures {
            if !self.signatures.iter().any(|there| there.keyid.eq_ignore_ascii_case(&signature.keyid)) {
                self.signatures.push(signature.clone());
            }
        }
    }

    /// A signature of another kind of payload would mean something that nobody here has looked at.
    fn must_hold_a_statement(&self) -> Result<(), AttestationError> {
        if self.payload_type == PAYLOAD_TYPE {
            return Ok(());
        }
        Err(AttestationError::Malformed("it holds no in-toto statement".to_owned()))
    }

    fn statement_bytes(&self) -> Result<Vec<u8>, AttestationError> {
        STANDARD.decode(&self.payload).map_err(|error| AttestationError::Malformed(error.to_string()))
    }
}

/// DSSE's pre-authentication encoding.
fn encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut message = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    message.extend_from_slice(payload);
    message
}
