//! The wallet's file: records of all tenants, sealed, and the audit.
//!
//! Unlike the index and the projections this file is the truth: nothing can make it again, so it is synced with every change
//! of a record, and a damaged one stops the start instead of being replaced. What was deleted or replaced is overwritten in
//! the file (`secure_delete`).
//!
//! Invariants:
//! 1. A value is in the file sealed and in no other form. Lists and descriptions are made of columns that are public, and
//!    open nothing.
//! 2. Whatever opens a value has written a line of the audit before the value is handed out; when the line cannot be
//!    written, nothing is handed out. What masks values in text is told all of them ([`Vault::tell_all`]) and hands out none.
//! 3. The hosts of a credential are inside of its seal. Those in the column are for people.
//! 4. Revisions are numbered over all records and never used twice, not even after a deletion.
//! 5. At every moment each record's key is among the keys that are held: a new key is held before the first record is
//!    wrapped with it, and an old one until no record needs it.
//! 6. What a credential had before it was changed stays sealed for a while ([`former`]), for those who mask it and for
//!    nobody else. What was deleted is gone.
//!
//! Crash: a record is there as it was before or after a change. In the middle of a rotation records are under two keys, both
//! held; the next rotation goes on where this one ended. Lines of the audit are not synced one by one: a power cut can take
//! the newest, the end of the process takes none. Missing or wrong key: nothing starts, and the error says which key is asked
//! for.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use noetl_contract::Tenant;
use parking_lot::Mutex;
use ring::rand::{SecureRandom as _, SystemRandom};
use rusqlite::{Connection, TransactionBehavior};
use serde::{Deserialize, Serialize};
use url::Url;
use zeroize::{Zeroize as _, Zeroizing};

use super::keys::{KEY_BYTES, KeyError, KeySource, Keyring};
use super::kinds::{Fields, Kind};
use super::seal::{self, Identity, SealError, Sealed};
use super::{Binding, Credential, Seals, Secret, State, Use, Way};

mod audit;
mod former;
mod merge;
mod rotate;
mod tables;

#[cfg(test)]
mod tests;

use audit::Audit;
pub use audit::{Audited, Event, Retention};
pub use merge::{Changes, Proposal};
pub use rotate::{KeyUse, Rotated, Status};

/// Tags, and how long each may be: they are for people.
const MOST_TAGS: usize = 20;
const LONGEST_TAG: usize = 100;
const LONGEST_DESCRIPTION: usize = 1000;
const MOST_HOSTS: usize = 50;

#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    #[error("the wallet could not be read or written: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the wallet's file could not be made: {0}")]
    Io(#[from] std::io::Error),
    #[error("the wallet is of a newer version ({0}) than this program: start the newer one")]
    Newer(i64),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(
        "the key of the wallet is missing: {place} is not there, and {records} credentials were sealed with the key {}; \
         put the file back, or give that key with NOETL_ENCRYPTION_KEY or `wallet.key_command`. Without it the credentials \
         cannot be opened by anybody: remove wallet.sqlite from the data folder to begin without them",
        .kids.join(", ")
    )]
    KeyMissing { place: String, records: u64, kids: Vec<String> },
    #[error(
        "the key of the wallet is another one: {records} credentials were sealed with the key {}, and {place} has {}; \
         give the right key. To change keys, give the new one and after it the old one, and then run \
         `noetl credential rotate --kek`",
        .missing.join(", "), .given.join(", ")
    )]
    WrongKey { place: String, records: u64, missing: Vec<String>, given: Vec<String> },
    #[error("no credential is called `{alias}`")]
    Unknown { alias: String },
    #[error("the credential `{alias}` was changed or deleted by somebody else meanwhile; try again")]
    Changed { alias: String },
    #[error("the credential `{alias}` may not go to `{target}`; its hosts are set with `noetl credential add --host`")]
    NotForThere { alias: String, target: String },
    #[error("the credential `{alias}` cannot be opened: {source}")]
    Closed { alias: String, source: SealError },
    #[error(transparent)]
    Invalid(#[from] super::kinds::Invalid),
}

/// What people may know of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub tenant: Tenant,
    pub alias: String,
    pub kind: String,
    /// Where it may go; nowhere when empty.
    pub hosts: Vec<Binding>,
    pub tags: Vec<String>,
    pub description: String,
    pub revision: u64,
    /// Fields that are no secrets, and the names of those that are.
    pub shown: BTreeMap<String, Option<String>>,
    pub created_at_ms: u64,
    pub changed_at_ms: u64,
    pub changed_by: String,
}

/// A credential to be kept.
pub struct NewRecord {
    pub tenant: Tenant,
    pub alias: String,
    pub kind: &'static Kind,
    pub fields: Fields,
    /// Those of the kind itself when left out.
    pub hosts: Option<Vec<Binding>>,
    pub tags: Vec<String>,
    pub description: String,
}

/// Who changes a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub by: String,
    /// The request.
    pub call: String,
}

/// What is inside of a seal.
#[derive(Serialize, Deserialize)]
struct Inside {
    fields: BTreeMap<String, String>,
    hosts: Vec<Binding>,
}

impl Inside {
    fn of_token(token: &str) -> Self {
        Self { fields: BTreeMap::from([("token".to_owned(), token.to_owned())]), hosts: Vec::new() }
    }

    fn written(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(serde_json::to_vec(self).expect("texts are plain data"))
    }

    /// Of a place that is no host and port nobody says anything here.
    fn may_go_to(&self, kind: &str, target: &str) -> bool {
        let (place, open) = target.strip_prefix("http://").map_or((target, false), |place| (place, true));
        let way = usual_port(kind).map_or(if open { Way::Http } else { Way::Https }, Way::Own);
        let place = place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        place.is_none_or(|(host, port)| {
            let host = host.trim_matches(['[', ']']);
            self.hosts.iter().any(|binding| binding.covers(host, port, way))
        })
    }
}

/// Of what is not spoken to by HTTP.
fn usual_port(kind: &str) -> Option<u16> {
    match kind {
        "postgres" => Some(5432),
        "nats" => Some(4222),
        _ => None,
    }
}

/// The server that a credential itself names, which is where it goes when whoever uses it names none.
fn own_place(record: &Record, inside: &Inside) -> String {
    let field = |name: &str| inside.fields.get(name).map(String::as_str);
    let usual = usual_port(&record.kind).unwrap_or(443);
    if let Some(host) = field("host") {
        let port = field("port").and_then(|port| port.trim().parse().ok()).unwrap_or(usual);
        return format!("{}:{port}", host.to_ascii_lowercase());
    }
    let url = field("url").and_then(|url| Url::parse(url).ok());
    let place =
        url.and_then(|url| Some(format!("{}:{}", url.host_str()?.to_ascii_lowercase(), url.port().unwrap_or(usual))));
    place.unwrap_or_else(|| "its own server".to_owned())
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.fields.values_mut().for_each(|value| value.zeroize());
    }
}

/// A key of the wrong size is made anew: placeholders of before stand for nothing then, and no secret goes anywhere.
fn seals(records: &Connection) -> Result<Seals, VaultError> {
    let mut made = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut made).map_err(|_| KeyError::NoRandomness)?;
    let key = tables::placeholder_key(records, &made)?;
    Ok(Seals::new(key.try_into().unwrap_or(made)))
}

pub struct Vault {
    records: Mutex<Connection>,
    audit: Audit,
    /// Changed while `records` is held, so that nothing is sealed with a key that is on its way out.
    keys: Mutex<Arc<Keyring>>,
    source: KeySource,
    rotating: tokio::sync::Mutex<()>,
    seals: Seals,
    former_days: u64,
}

impl Vault {
    /// Opens the file, or makes it, with the keys of the source. A key is made only where no record needs another one.
    pub async fn open(file: &Path, source: KeySource, retention: Retention) -> Result<Arc<Self>, VaultError> {
        // Before the database makes it: by itself it would let others read.
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(file)?;
        let records = tables::connect(file)?;
        let audit = Audit::open(file, retention)?;
        let keys = keys_for(tables::keys_in_use(&records)?, &source).await?;
        let seals = seals(&records)?;
        Ok(Arc::new(Self {
            records: Mutex::new(records),
            audit,
            keys: Mutex::new(Arc::new(keys)),
            source,
            rotating: tokio::sync::Mutex::new(()),
            seals,
            former_days: retention.former_days,
        }))
    }

    /// What placeholders are written with.
    pub fn seals(&self) -> &Seals {
        &self.seals
    }

    /// Keeps a credential, in place of the one of the same alias if there is one.
    pub fn put(&self, new: NewRecord, change: &Change) -> Result<Record, VaultError> {
        self.put_over(new, None, change)
    }

    /// The same, in place of this very revision if one is named.
    fn put_over(&self, new: NewRecord, over: Option<u64>, change: &Change) -> Result<Record, VaultError> {
        super::kinds::check_alias(&new.alias)?;
        check_words(&new)?;
        let hosts = match new.hosts {
            Some(hosts) => hosts,
            None => new.kind.own_hosts(&new.fields)?,
        };
        let shown = new
            .fields
            .iter()
            .map(|(name, value)| (name.to_owned(), Credential::is_public(name).then(|| value.to_owned())));
        let now = now_ms();
        let mut record = Record {
            shown: shown.collect(),
            tenant: new.tenant,
            alias: new.alias,
            kind: new.kind.name.to_owned(),
            hosts: hosts.clone(),
            tags: new.tags,
            description: new.description,
            revision: 0,
            created_at_ms: now,
            changed_at_ms: now,
            changed_by: change.by.clone(),
        };
        let inside = Inside { fields: new.fields.as_map().clone(), hosts };
        let mut connection = self.records.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        record.revision = tables::next_revision(&transaction)?;
        let before = tables::get(&transaction, &record.tenant, &record.alias)?;
        if over.is_some() && before.as_ref().map(|(before, _)| before.revision) != over {
            return Err(VaultError::Changed { alias: record.alias });
        }
        if let Some((before, _)) = &before {
            record.created_at_ms = before.created_at_ms;
            // Always later than what it replaces, whatever the clock does.
            record.changed_at_ms = now.max(before.changed_at_ms + 1);
            if self.former_days > 0 {
                former::set_aside(&transaction, before, self.former_days)?;
            }
        }
        let keys = self.keys.lock().clone();
        let closed = |source| VaultError::Closed { alias: record.alias.clone(), source };
        let sealed = seal::seal(keys.first(), identity(&record), &inside.written()).map_err(closed)?;
        tables::put(&transaction, &record, &sealed, keys.first().kid())?;
        let event = if before.is_some() { Event::Changed } else { Event::Added };
        audit::write(&transaction, &about(&record.tenant, &record.alias, change), event, Some(record.revision))?;
        transaction.commit()?;
        Ok(record)
    }

    /// The credentials of a tenant, or of all, by name.
    pub fn list(&self, tenant: Option<&Tenant>) -> Result<Vec<Record>, VaultError> {
        Ok(tables::list(&self.records.lock(), tenant)?)
    }

    pub fn get(&self, tenant: &Tenant, alias: &str) -> Result<Record, VaultError> {
        let found = tables::get(&self.records.lock(), tenant, alias)?;
        found.map(|(record, _)| record).ok_or_else(|| VaultError::Unknown { alias: alias.to_owned() })
    }

    pub fn delete(&self, tenant: &Tenant, alias: &str, change: &Change) -> Result<Record, VaultError> {
        let mut connection = self.records.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let unknown = || VaultError::Unknown { alias: alias.to_owned() };
        let (record, _) = tables::get(&transaction, tenant, alias)?.ok_or_else(unknown)?;
        tables::delete(&transaction, tenant, alias)?;
        former::forget(&transaction, tenant, alias)?;
        audit::write(&transaction, &about(tenant, alias, change), Event::Deleted, Some(record.revision))?;
        transaction.commit()?;
        // The sealed value would otherwise stay in the write-ahead log until enough was written after it.
        tables::checkpoint(&connection)?;
        Ok(record)
    }

    /// Opens a credential; `event` is what the audit says when that succeeds. One that is to go to a host it is not for
    /// stays closed. To go nowhere in particular is no place to be refused: whoever connects checks the host it connects to.
    pub fn open_for(&self, using: &Use, event: Event) -> Result<Credential, VaultError> {
        let found = tables::get(&self.records.lock(), &using.tenant, &using.alias)?;
        let Some((record, sealed)) = found else {
            self.audit.write(using, Event::Unknown, None)?;
            return Err(VaultError::Unknown { alias: using.alias.clone() });
        };
        // Asked for after the row was read: whoever took a key away before has wrapped the row again, and it is read again.
        match self.disclose(&record, &sealed).or_else(|error| self.disclose_again(&record, error)) {
            Ok(mut inside) => {
                let target = if using.target.is_empty() { own_place(&record, &inside) } else { using.target.clone() };
                let using = Use { target, ..using.clone() };
                if !inside.may_go_to(&record.kind, &using.target) {
                    self.audit.write(&using, Event::Refused, Some(record.revision))?;
                    return Err(VaultError::NotForThere { alias: record.alias, target: using.target });
                }
                self.audit.write(&using, event, Some(record.revision))?;
                let (fields, hosts) = (std::mem::take(&mut inside.fields), std::mem::take(&mut inside.hosts));
                let Record { alias, kind, revision, .. } = record;
                Ok(Credential { alias, kind, fields, hosts, revision })
            }
            Err(source) => {
                self.audit.write(using, Event::Closed, Some(record.revision))?;
                Err(VaultError::Closed { alias: record.alias, source })
            }
        }
    }

    /// Tells every secret there is to whoever masks them: a host may have kept one from long ago, and gives it back before
    /// anybody has opened it again. Nothing of it is handed to a user, so the audit has no line of it. What does not open is
    /// left out. Those in use are told last, so that of too many the former ones are forgotten first.
    pub fn tell_all(&self, tell: &dyn Fn(&Tenant, Secret<'_>)) -> Result<(), VaultError> {
        self.tell_former(tell)?;
        for listed in self.list(None)? {
            let found = tables::get(&self.records.lock(), &listed.tenant, &listed.alias)?;
            let opened = found.and_then(|(record, sealed)| self.disclose(&record, &sealed).ok());
            if let Some(inside) = &opened {
                let (alias, revision) = (listed.alias.as_str(), listed.revision);
                for (field, value) in inside.fields.iter().filter(|(name, _)| !Credential::is_public(name)) {
                    tell(&listed.tenant, Secret { alias, field, value, revision, state: State::Kept });
                }
            }
        }
        Ok(())
    }

    fn disclose(&self, record: &Record, sealed: &str) -> Result<Inside, SealError> {
        let keys = self.keys.lock().clone();
        let form = |error: serde_json::Error| SealError::Form(error.to_string());
        let sealed: Sealed = serde_json::from_str(sealed).map_err(form)?;
        let plain = seal::open(&keys, identity(record), &sealed)?;
        // Without the text of the error, which could have something of the value in it.
        serde_json::from_slice(&plain).map_err(|_| SealError::Form("what is inside is not a credential".to_owned()))
    }

    /// A key can be retired between reading a row and opening it; the row has been wrapped with the next one then.
    fn disclose_again(&self, record: &Record, error: SealError) -> Result<Inside, SealError> {
        let SealError::NoKey { .. } = error else { return Err(error) };
        let connection = self.records.lock();
        match tables::get(&connection, &record.tenant, &record.alias) {
            Ok(Some((now, sealed))) if now.revision == record.revision => self.disclose(&now, &sealed),
            _ => Err(error),
        }
    }

    /// Lines of the audit, newest first, before the one with the number `before`.
    pub fn audit(
        &self,
        tenant: &Tenant,
        alias: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Audited>, VaultError> {
        Ok(self.audit.read(tenant, alias, before, limit)?)
    }
}

/// The keys, once it is sure that they open everything there is.
async fn keys_for(used: Vec<(String, u64)>, source: &KeySource) -> Result<Keyring, VaultError> {
    let count =
        |missing: &[String]| used.iter().filter(|(kid, _)| missing.contains(kid)).map(|(_, count)| count).sum::<u64>();
    let Some(keys) = source.read().await? else {
        let kids: Vec<String> = used.iter().map(|(kid, _)| kid.clone()).collect();
        return match source {
            KeySource::File(file) if kids.is_empty() => {
                let keys = Keyring::generate()?;
                keys.write(file)?;
                Ok(keys)
            }
            _ => Err(VaultError::KeyMissing { place: source.place(), records: count(&kids), kids }),
        };
    };
    let missing: Vec<String> = used.iter().map(|(kid, _)| kid.clone()).filter(|kid| keys.get(kid).is_none()).collect();
    if missing.is_empty() {
        return Ok(keys);
    }
    let given = keys.kids().map(str::to_owned).collect();
    Err(VaultError::WrongKey { place: source.place(), records: count(&missing), missing, given })
}

fn identity(record: &Record) -> Identity<'_> {
    Identity { tenant: record.tenant.as_str(), alias: &record.alias, kind: &record.kind, revision: record.revision }
}

/// A change as the audit has it: nothing goes anywhere.
fn about(tenant: &Tenant, alias: &str, change: &Change) -> Use {
    let Change { by, call } = change.clone();
    Use { tenant: tenant.clone(), alias: alias.to_owned(), by, call, target: String::new() }
}

fn check_words(new: &NewRecord) -> Result<(), super::kinds::Invalid> {
    let wrong = |field: &str, message: String| Err(super::kinds::Invalid::new(field, message));
    let good_tag = |tag: &String| (1..=LONGEST_TAG).contains(&tag.len()) && !tag.chars().any(char::is_control);
    if new.tags.len() > MOST_TAGS || !new.tags.iter().all(good_tag) {
        return wrong("tags", format!("at most {MOST_TAGS} tags, each of 1 to {LONGEST_TAG} bytes"));
    }
    if new.description.len() > LONGEST_DESCRIPTION {
        return wrong("description", format!("at most {LONGEST_DESCRIPTION} bytes"));
    }
    if new.hosts.as_ref().is_some_and(|hosts| hosts.len() > MOST_HOSTS) {
        return wrong("hosts", format!("at most {MOST_HOSTS} hosts"));
    }
    Ok(())
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
