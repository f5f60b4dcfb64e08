//! A credential with some of its fields changed, and everything else as it was.
//!
//! Whoever changes a password does not have the other secrets, and need not: they are put together here, and none is handed
//! out. That makes an address the way to them: who may say where a secret goes that others have kept can have it sent to
//! himself. So what is proposed says whether a secret that stays would go further than before, and whoever asks for it has
//! to show that he may see it. Two who change one credential at once do not undo each other: the second is told.

use noetl_contract::Tenant;
use serde_json::{Map, Value};

use super::{Change, NewRecord, Record, Vault, VaultError, tables};
use crate::wallet::kinds::{self, Fields, Invalid};
use crate::wallet::{Binding, Credential};

/// An address says where and as whom, so nothing of that stays when another one is given.
const ADDRESS: &str = "url";
const OF_ADDRESS: [&str; 7] = ["url", "host", "port", "user", "password", "token", "database"];

/// Fields that say where secrets go, and how they are kept from others on the way.
const DESTINATION: [&str; 9] =
    ["url", "host", "port", "endpoint", "region", "token_url", "token_query", "sslmode", "sslrootcert"];

/// What changes; all else stays.
#[derive(Default)]
pub struct Changes {
    /// By the names of the type, in any spelling. `null` takes a field away.
    pub data: Map<String, Value>,
    pub hosts: Option<Vec<Binding>>,
    pub tags: Option<Vec<String>>,
    pub description: Option<String>,
}

/// A credential as it would be.
pub struct Proposal {
    new: NewRecord,
    /// The revision it was made of.
    over: u64,
    changed: Vec<String>,
    goes_further: bool,
}

impl Proposal {
    /// Fields that are not as they were, with their values.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.new.fields.iter().filter(|(name, _)| self.changed.iter().any(|changed| changed == name))
    }

    /// Whether a secret that nobody gave anew could go where it could not go before.
    pub fn goes_further(&self) -> bool {
        self.goes_further
    }
}

impl Vault {
    /// What a credential would be with these changes. Nothing has happened yet.
    pub fn propose(&self, tenant: &Tenant, alias: &str, changes: Changes) -> Result<Proposal, VaultError> {
        let found = tables::get(&self.records.lock(), tenant, alias)?;
        let (record, sealed) = found.ok_or_else(|| VaultError::Unknown { alias: alias.to_owned() })?;
        let inside = self.disclose(&record, &sealed).or_else(|error| self.disclose_again(&record, error));
        let inside = inside.map_err(|source| VaultError::Closed { alias: alias.to_owned(), source })?;
        let kind = kinds::kind(&record.kind)?;
        let mut given = Map::new();
        for (name, value) in changes.data {
            let known = kind.field(&name).map_or(name.as_str(), |field| field.name).to_owned();
            if given.insert(known.clone(), value.clone()).is_some_and(|other| other != value) {
                let message = format!("field `{name}`: says something else than another spelling of `{known}`");
                return Err(Invalid::new(&format!("data.{name}"), message).into());
            }
        }
        let stays =
            |name: &str| !(given.contains_key(name) || given.contains_key(ADDRESS) && OF_ADDRESS.contains(&name));
        let kept = || inside.fields.iter().filter(|(name, _)| stays(name));
        let keeps_secret = kept().any(|(name, value)| !Credential::is_public(name) && !value.is_empty());
        let mut data: Map<String, Value> =
            kept().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let before =
            kind.check(&inside.fields.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect());
        let was_own = before.and_then(|before| kind.own_hosts(&before)).is_ok_and(|own| own == inside.hosts);
        data.extend(given);
        let fields = kind.check(&data)?;
        let hosts = match changes.hosts {
            Some(hosts) => hosts,
            // It went to the place that it named, and goes to the one that it names now.
            None if was_own => kind.own_hosts(&fields)?,
            None => inside.hosts.clone(),
        };
        let is_as_it_was = |name: &str| inside.fields.get(name).map(String::as_str) == fields.get(name);
        let changed = fields.iter().map(|(name, _)| name).filter(|name| !is_as_it_was(name)).map(str::to_owned);
        let goes_elsewhere =
            DESTINATION.iter().any(|name| !is_as_it_was(name)) || hosts.iter().any(|host| !inside.hosts.contains(host));
        Ok(Proposal {
            changed: changed.collect(),
            goes_further: keeps_secret && goes_elsewhere,
            over: record.revision,
            new: NewRecord {
                tenant: record.tenant.clone(),
                alias: record.alias.clone(),
                kind,
                fields,
                hosts: Some(hosts),
                tags: changes.tags.unwrap_or(record.tags),
                description: changes.description.unwrap_or(record.description),
            },
        })
    }

    /// Keeps what was proposed, unless the credential has changed since. The fields are for whoever masks them.
    pub fn accept(&self, proposal: Proposal, change: &Change) -> Result<(Record, Fields), VaultError> {
        let fields = proposal.new.fields.clone();
        self.put_over(proposal.new, Some(proposal.over), change).map(|record| (record, fields))
    }
}
