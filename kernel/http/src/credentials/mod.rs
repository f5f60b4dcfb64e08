//! The routes about credentials: keep, list, show, delete, who used them; and the key they are sealed with.
//!
//! A value comes in and does not go out: answers have the fields that are no secrets and a mask where a secret is. The one
//! exception (`include_data`) needs a right that no privilege includes, and is a line of the audit before it is an answer.
//! To a tenant a credential of another one is not there.

use std::collections::BTreeMap;

use noetl_store::wallet::{Change, Record, VaultError};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::Cx;
use crate::problem::Problem;

pub mod change;
pub mod key;
pub mod read;

/// A credential, without its value.
#[derive(Serialize, ToSchema)]
pub struct CredentialView {
    name: String,
    tenant: String,
    /// `bearer`, `basic`, `api_key`, `postgres`, `nats`, `s3`, `hmac` or `oauth2`.
    r#type: String,
    /// Where it may go; nowhere when empty.
    hosts: Vec<String>,
    tags: Vec<String>,
    description: String,
    /// Changes with every change of the value, and is never used again.
    revision: u64,
    created_at_ms: u64,
    changed_at_ms: u64,
    changed_by: String,
    /// Fields; `[REDACTED]` where one is a secret.
    data: BTreeMap<String, String>,
}

impl From<Record> for CredentialView {
    fn from(record: Record) -> Self {
        let mask = || noetl_scrub::PLACEHOLDER.to_owned();
        Self {
            name: record.alias,
            tenant: record.tenant.to_string(),
            r#type: record.kind,
            hosts: record.hosts.iter().map(ToString::to_string).collect(),
            tags: record.tags,
            description: record.description,
            revision: record.revision,
            created_at_ms: record.created_at_ms,
            changed_at_ms: record.changed_at_ms,
            changed_by: record.changed_by,
            data: record.shown.into_iter().map(|(name, value)| (name, value.unwrap_or_else(mask))).collect(),
        }
    }
}

impl From<VaultError> for Problem {
    fn from(error: VaultError) -> Self {
        let text = error.to_string();
        match error {
            VaultError::Unknown { .. } => {
                let detail = format!("{text} among those of this tenant; `GET /api/credentials` lists them");
                Problem::of(404, "credential_not_found", detail)
            }
            VaultError::Changed { .. } => Problem::of(409, "conflict", text),
            VaultError::Invalid(invalid) => {
                Problem::invalid_field("invalid_credential", &invalid.field, invalid.message)
            }
            VaultError::Closed { .. } | VaultError::NotForThere { .. } => Problem::of(503, "credential_closed", text),
            VaultError::Key(_) | VaultError::KeyMissing { .. } | VaultError::WrongKey { .. } => {
                Problem::of(503, "wallet_key", text)
            }
            VaultError::Database(_) | VaultError::Io(_) | VaultError::Newer(_) => Problem::internal(text),
        }
    }
}

/// Who changes something, as the audit has it.
fn change_of(cx: &Cx) -> Result<Change, Problem> {
    Ok(Change { by: cx.caller()?.actor().name, call: cx.request_id.clone() })
}
