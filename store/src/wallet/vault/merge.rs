//! A credential with some of its fields changed, and everything else as it was.
//!
//! Whoever changes a password does not have the other secrets, and need not: they are put together here, and none is handed
//! out. Two who change one credential at once do not undo each other: the second is told.

use noetl_contract::Tenant;
use serde_json::{Map, Value};

use super::{Change, NewRecord, Record, Vault, VaultError, tables};
use crate::wallet::Binding;
use crate::wallet::kinds::{self, Fields};

/// An address says where and as whom, so nothing of that stays when another one is given.
const ADDRESS: &str = "url";
const OF_ADDRESS: [&str; 7] = ["url", "host", "port", "user", "password", "token", "database"];

/// What changes; all else stays.
#[derive(Default)]
pub struct Changes {
    /// By the names of the type, in any spelling. `null` takes a field away.
    pub data: Map<String, Value>,
    pub hosts: Option<Vec<Binding>>,
    pub tags: Option<Vec<String>>,
    pub description: Option<String>,
}

impl Vault {
    /// The fields are for whoever masks them.
    pub fn merge(
        &self,
        tenant: &Tenant,
        alias: &str,
        changes: Changes,
        change: &Change,
    ) -> Result<(Record, Fields), VaultError> {
        let found = tables::get(&self.records.lock(), tenant, alias)?;
        let (record, sealed) = found.ok_or_else(|| VaultError::Unknown { alias: alias.to_owned() })?;
        let inside = self.disclose(&record, &sealed).or_else(|error| self.disclose_again(&record, error));
        let inside = inside.map_err(|source| VaultError::Closed { alias: alias.to_owned(), source })?;
        let kind = kinds::kind(&record.kind)?;
        let name_of = |name: &String| kind.field(name).map_or(name.as_str(), |field| field.name).to_owned();
        let given: Map<String, Value> =
            changes.data.iter().map(|(name, value)| (name_of(name), value.clone())).collect();
        let stays =
            |name: &str| !(given.contains_key(name) || given.contains_key(ADDRESS) && OF_ADDRESS.contains(&name));
        let kept = inside.fields.iter().filter(|(name, _)| stays(name));
        let mut data: Map<String, Value> =
            kept.map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        data.extend(given);
        let fields = kind.check(&data)?;
        let new = NewRecord {
            tenant: record.tenant.clone(),
            alias: record.alias.clone(),
            kind,
            fields: fields.clone(),
            hosts: Some(changes.hosts.unwrap_or_else(|| inside.hosts.clone())),
            tags: changes.tags.unwrap_or(record.tags),
            description: changes.description.unwrap_or(record.description),
        };
        self.put_over(new, Some(record.revision), change).map(|record| (record, fields))
    }
}
