//! What can go wrong with a playbook in the catalog. Each has a stable code for programs.

use noetl_contract::Tenant;
use noetl_store::payloads::PayloadError;

use super::MOST_BYTES;
use super::names::PlaybookPath;
use crate::ledger::LedgerError;

#[derive(Debug, thiserror::Error)]
pub enum PlaybookError {
    #[error("the playbook has {0} bytes, {MOST_BYTES} are allowed: move data out of it, for example into the payload")]
    TooLarge(u64),
    #[error("`{actor}` acts for tenant `{tenant}` and cannot change `{what}`")]
    Forbidden { actor: String, tenant: Tenant, what: String },
    #[error("there is no playbook `{0}`")]
    NoPlaybook(PlaybookPath),
    #[error("{path} has no version {version}: the newest is {newest}")]
    NoVersion { path: PlaybookPath, version: u32, newest: u32 },
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl PlaybookError {
    pub fn code(&self) -> &'static str {
        match self {
            PlaybookError::TooLarge(_) => "playbook_too_large",
            PlaybookError::Forbidden { .. } => "forbidden",
            PlaybookError::NoPlaybook(_) => "playbook_not_found",
            PlaybookError::NoVersion { .. } => "version_not_found",
            PlaybookError::Payload(_) | PlaybookError::Ledger(_) => "store_unavailable",
        }
    }
}
