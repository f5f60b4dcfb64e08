//! Values that were secrets and may still be somewhere: what a credential had before it was changed, and tokens that were
//! fetched for one.
//!
//! A host can have kept such a value and give it back long after. Whoever masks secrets has to know it then, also when the
//! server was started again in between. So it stays in the file, sealed as it was, for a time that the operator chooses;
//! nothing but [`tell`] opens it. When a credential is deleted its former values go with it: deleting means that the value
//! is gone.
//!
//! Invariants:
//! 1. A former value never keeps the server from starting, nor a key from being retired: one that no held key opens is of
//!    no use to anybody and is removed by the next rotation.
//! 2. Of each tenant the newest [`MOST`] are kept. A tenant whose tokens live for seconds pushes out its own alone.

use noetl_contract::Tenant;
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};

use super::tables::{self, number};
use super::{Inside, Record, Vault, VaultError, now_ms};
use crate::wallet::keys::Keyring;
use crate::wallet::seal::{self, Identity, Sealed};
use crate::wallet::{Credential, Secret, State};

/// Of one tenant.
const MOST: i64 = 1000;

const DAY_MS: u64 = 86_400_000;

/// What a token's seal is bound to in place of a type of credential.
const TOKEN: &str = "token";

const COLUMNS: &str = "tenant, alias, kind, revision, sealed";

/// One that was sealed under this identity.
struct Former {
    tenant: Tenant,
    alias: String,
    kind: String,
    revision: u64,
    sealed: String,
}

impl Former {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let tenant = Tenant::new(row.get::<_, String>(0)?).map_err(|error| tables::odd(0, error))?;
        Ok(Self { tenant, alias: row.get(1)?, kind: row.get(2)?, revision: number(row, 3)?, sealed: row.get(4)? })
    }

    fn identity(&self) -> Identity<'_> {
        let Self { tenant, alias, kind, revision, .. } = self;
        Identity { tenant: tenant.as_str(), alias, kind, revision: *revision }
    }

    fn sealed(&self) -> Option<Sealed> {
        serde_json::from_str(&self.sealed).ok()
    }
}

pub(super) fn make_table(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS former (
            revision INTEGER PRIMARY KEY, tenant TEXT NOT NULL, alias TEXT NOT NULL, kind TEXT NOT NULL,
            kid TEXT NOT NULL, sealed TEXT NOT NULL, until INTEGER NOT NULL
        );
        CREATE INDEX IF NOT EXISTS former_by_alias ON former (tenant, alias);",
    )
}

/// Sets aside what a record holds, before something else takes its place.
pub(super) fn set_aside(connection: &Connection, record: &Record, days: u64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO former (revision, tenant, alias, kind, kid, sealed, until)
               SELECT revision, tenant, alias, kind, kid, sealed, ?3 FROM records WHERE tenant = ?1 AND alias = ?2";
    let until = now_ms().saturating_add(days.saturating_mul(DAY_MS));
    connection.execute(sql, params![record.tenant.as_str(), record.alias, until as i64])?;
    sweep(connection, &record.tenant)
}

/// Removes all of one alias.
pub(super) fn forget(connection: &Connection, tenant: &Tenant, alias: &str) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM former WHERE tenant = ?1 AND alias = ?2", [tenant.as_str(), alias]).map(drop)
}

/// Removes those whose time is over, and of one tenant those that are too many.
fn sweep(connection: &Connection, tenant: &Tenant) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM former WHERE until < ?1", [now_ms() as i64])?;
    let sql = "DELETE FROM former WHERE tenant = ?1
               AND revision <= (SELECT revision FROM former WHERE tenant = ?1 ORDER BY revision DESC LIMIT 1 OFFSET ?2)";
    connection.execute(sql, params![tenant.as_str(), MOST]).map(drop)
}

/// Brings one that is under another key under the first one; false if there is none. What cannot be opened is removed.
pub(super) fn rewrap_next(connection: &Connection, keys: &Keyring) -> rusqlite::Result<bool> {
    let kid = keys.first().kid();
    let sql = format!("SELECT {COLUMNS} FROM former WHERE kid <> ?1 LIMIT 1");
    let Some(former) = connection.prepare_cached(&sql)?.query_row([kid], Former::of).optional()? else {
        return Ok(false);
    };
    let sealed = former.sealed().and_then(|sealed| seal::rewrap(keys, former.identity(), &sealed).ok());
    let revision = former.revision as i64;
    match sealed {
        Some(sealed) => connection.execute(
            "UPDATE former SET sealed = ?2, kid = ?3 WHERE revision = ?1",
            params![revision, tables::json(&sealed), kid],
        )?,
        None => connection.execute("DELETE FROM former WHERE revision = ?1", [revision])?,
    };
    Ok(true)
}

impl Vault {
    /// Keeps a token that was fetched for a credential, so that it is known after a restart too; for as long as it is good,
    /// and a day more.
    pub fn keep_token(&self, tenant: &Tenant, alias: &str, token: &str, life_ms: u64) -> Result<(), VaultError> {
        if self.former_days == 0 {
            return Ok(());
        }
        let inside = Inside::of_token(token);
        let mut connection = self.records.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // One that was deleted meanwhile has no former values either.
        if tables::get(&transaction, tenant, alias)?.is_none() {
            return Ok(());
        }
        let revision = tables::next_revision(&transaction)?;
        let keys = self.keys.lock().clone();
        let whose = Identity { tenant: tenant.as_str(), alias, kind: TOKEN, revision };
        let sealed = seal::seal(keys.first(), whose, &inside.written())
            .map_err(|source| VaultError::Closed { alias: alias.to_owned(), source })?;
        let until =
            now_ms().saturating_add(life_ms.min(self.former_days.saturating_mul(DAY_MS))).saturating_add(DAY_MS);
        transaction.execute(
            "INSERT INTO former (revision, tenant, alias, kind, kid, sealed, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                revision as i64,
                tenant.as_str(),
                alias,
                TOKEN,
                keys.first().kid(),
                tables::json(&sealed),
                until as i64
            ],
        )?;
        sweep(&transaction, tenant)?;
        transaction.commit()?;
        Ok(())
    }

    /// Tells every former secret. What does not open is left out.
    pub(super) fn tell_former(&self, tell: &dyn Fn(&Tenant, Secret<'_>)) -> Result<(), VaultError> {
        let connection = self.records.lock();
        connection.execute("DELETE FROM former WHERE until < ?1", [now_ms() as i64])?;
        let keys = self.keys.lock().clone();
        let mut query = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM former ORDER BY revision"))?;
        for former in query.query_map([], Former::of)? {
            let former = former?;
            let plain = former.sealed().and_then(|sealed| seal::open(&keys, former.identity(), &sealed).ok());
            let inside = plain.and_then(|plain| serde_json::from_slice::<Inside>(&plain).ok());
            let (alias, revision) = (former.alias.as_str(), former.revision);
            let fields = inside.iter().flat_map(|inside| &inside.fields);
            for (field, value) in fields.filter(|(name, _)| !Credential::is_public(name)) {
                tell(&former.tenant, Secret { alias, field, value, revision, state: State::Former });
            }
        }
        Ok(())
    }
}
