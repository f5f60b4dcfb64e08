//! One key-encryption key follows another while credentials are in use.
//!
//! The new key is held, and where the keys are a file it is in the file, before the first record is wrapped with it. Then
//! records are wrapped again, each in a transaction of its own, with nothing held in between. When none is left the old keys
//! are dropped: from the file, and from memory. A rotation that broke off goes on with the next one, under the key it
//! had begun with.
//!
//! A key of the file is made here. Keys that are given, or printed by a command, are their owner's to make: the new one
//! goes before the old one, and this wraps everything with it.

use std::sync::Arc;

use rusqlite::TransactionBehavior;

use super::{Vault, VaultError, former, identity, tables};
use crate::wallet::keys::{KeySource, Keyring};
use crate::wallet::seal::{self, SealError, Sealed};

/// What a rotation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotated {
    /// The key that everything is under now.
    pub kid: String,
    /// How many records were wrapped again.
    pub rewrapped: u64,
    /// Keys that nothing needs any more.
    pub retired: Vec<String>,
    /// Whether it was the rest of one that had broken off.
    pub resumed: bool,
}

/// How the wallet stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `file`, `environment` or `command`.
    pub source: &'static str,
    /// The key that seals.
    pub kid: String,
    pub keys: Vec<KeyUse>,
    pub records: u64,
}

/// A key that is held, and how many records are under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    pub kid: String,
    pub records: u64,
}

impl Vault {
    pub fn status(&self) -> Result<Status, VaultError> {
        let connection = self.records.lock();
        let used = tables::keys_in_use(&connection)?;
        let keys = self.keys.lock().clone();
        let of = |kid: &str| used.iter().find(|(used, _)| used == kid).map_or(0, |(_, count)| *count);
        Ok(Status {
            source: self.source.name(),
            kid: keys.first().kid().to_owned(),
            keys: keys.kids().map(|kid| KeyUse { kid: kid.to_owned(), records: of(kid) }).collect(),
            records: used.iter().map(|(_, count)| count).sum(),
        })
    }

    /// Brings all records under the next key.
    pub async fn rotate(self: &Arc<Self>) -> Result<Rotated, VaultError> {
        let _one_at_a_time = self.rotating.lock().await;
        let mut resumed = false;
        let keys = match &self.source {
            KeySource::File(file) => {
                // The file as it is: whoever broke off may have left another key in it.
                let held = self.read_again().await?;
                resumed = self.needs(held.first().kid())?;
                if resumed {
                    held
                } else {
                    let next = held.with_new()?;
                    next.write(file)?;
                    next
                }
            }
            KeySource::Given(_) | KeySource::Command(_) => self.read_again().await?,
        };
        self.hold(keys.clone())?;
        let vault = Arc::clone(self);
        let rewrapped =
            tokio::task::spawn_blocking(move || vault.rewrap_all()).await.map_err(std::io::Error::other)??;
        let last = keys.only_first();
        if let KeySource::File(file) = &self.source {
            last.write(file)?;
        }
        let retired = keys.kids().skip(1).map(str::to_owned).collect();
        let kid = last.first().kid().to_owned();
        self.hold(last)?;
        Ok(Rotated { kid, rewrapped, retired, resumed })
    }

    /// The keys of the source, which must open everything there is.
    async fn read_again(&self) -> Result<Keyring, VaultError> {
        let keys = self.source.read().await?;
        let used = tables::keys_in_use(&self.records.lock())?;
        let records = used.iter().map(|(_, count)| count).sum();
        let missing: Vec<String> = match &keys {
            Some(keys) => used.into_iter().map(|(kid, _)| kid).filter(|kid| keys.get(kid).is_none()).collect(),
            None => used.into_iter().map(|(kid, _)| kid).collect(),
        };
        match keys {
            Some(keys) if missing.is_empty() => Ok(keys),
            Some(keys) => {
                let given = keys.kids().map(str::to_owned).collect();
                Err(VaultError::WrongKey { place: self.source.place(), records, missing, given })
            }
            None => Err(VaultError::KeyMissing { place: self.source.place(), records, kids: missing }),
        }
    }

    /// Whether a record is under another key than this.
    fn needs(&self, kid: &str) -> Result<bool, VaultError> {
        Ok(tables::under_another(&self.records.lock(), kid)?.is_some())
    }

    /// From now on these keys. Not while a record is written: it would be sealed with a key that nobody holds any more.
    pub(super) fn hold(&self, keys: Keyring) -> Result<(), VaultError> {
        let connection = self.records.lock();
        let used = tables::keys_in_use(&connection)?;
        if let Some((kid, records)) = used.into_iter().find(|(kid, _)| keys.get(kid).is_none()) {
            let given = keys.kids().map(str::to_owned).collect();
            return Err(VaultError::WrongKey { place: self.source.place(), records, missing: vec![kid], given });
        }
        *self.keys.lock() = Arc::new(keys);
        Ok(())
    }

    fn rewrap_all(&self) -> Result<u64, VaultError> {
        let mut rewrapped = 0;
        while self.rewrap_next()? {
            rewrapped += 1;
        }
        while former::rewrap_next(&self.records.lock(), &self.keys.lock().clone())? {}
        // What was wrapped with the old key must not stay in the write-ahead log.
        tables::checkpoint(&self.records.lock())?;
        Ok(rewrapped)
    }

    /// Wraps one record again, if there is one to wrap.
    pub(super) fn rewrap_next(&self) -> Result<bool, VaultError> {
        let mut connection = self.records.lock();
        let keys = self.keys.lock().clone();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let kid = keys.first().kid();
        let Some((record, sealed)) = tables::under_another(&transaction, kid)? else { return Ok(false) };
        let closed = |source| VaultError::Closed { alias: record.alias.clone(), source };
        let sealed: Sealed =
            serde_json::from_str(&sealed).map_err(|error| closed(SealError::Form(error.to_string())))?;
        let sealed = seal::rewrap(&keys, identity(&record), &sealed).map_err(closed)?;
        tables::set_sealed(&transaction, &record, &sealed, kid)?;
        transaction.commit()?;
        Ok(true)
    }
}
