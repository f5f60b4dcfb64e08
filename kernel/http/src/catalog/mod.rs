//! The routes about playbooks in the catalog: register and check a text, list and read, archive and bring back.
//!
//! A path means something only together with a tenant. A tenant's token sees its own paths and the platform's under
//! `system/`; an administrator names a tenant, or means `main`. Another tenant's path is simply not there.

use std::collections::BTreeMap;

use noetl_registry::playbooks::PlaybookEntry;
use serde::Serialize;
use utoipa::ToSchema;

use crate::values::rfc3339;

pub mod change;
pub mod read;
pub mod register;

/// One version of a playbook.
#[derive(Serialize, ToSchema)]
pub struct EntryView {
    /// `<path>@<version>`.
    catalog_id: String,
    path: String,
    version: u32,
    /// Whose it is; `system` is everybody's.
    tenant: String,
    kind: String,
    description: Option<String>,
    labels: BTreeMap<String, String>,
    /// Sha256 of the text.
    digest: String,
    size: u64,
    created_at: String,
    created_by: String,
    /// Archived versions are found by their number only.
    archived: bool,
}

impl From<&PlaybookEntry> for EntryView {
    fn from(entry: &PlaybookEntry) -> Self {
        Self {
            catalog_id: entry.id().to_string(),
            path: entry.path.to_string(),
            version: entry.version,
            tenant: entry.tenant.to_string(),
            kind: entry.kind.clone(),
            description: entry.description.clone(),
            labels: entry.labels.clone(),
            digest: entry.digest.to_string(),
            size: entry.size,
            created_at: rfc3339(entry.registered_ms),
            created_by: entry.by.clone(),
            archived: entry.archived,
        }
    }
}
