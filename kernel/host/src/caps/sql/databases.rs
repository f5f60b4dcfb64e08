//! From a credential to a database that may be reached, in turn by tenant.
//!
//! Each script takes one of a bounded number of slots, shared between tenants, from before its credential is opened until
//! its answer is there: connections are the whole server's. Scripts on SQLite have slots of their own and keep them until
//! their thread has ended, even if nobody waits for it any more. They take no part of the guests' memory, which a call
//! already holds a piece of: whoever waited for more while holding some could wait for ever. What they use at most is
//! their number times the largest database in memory.
//!
//! Memory for large scripts and for large rows is given out in the same way, from two budgets: whoever waits for a row holds
//! its script and no other row, so that each kind is waited for without holding any of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use noetl_contract::Tenant;
use noetl_contract::placeholder::Seal;
use noetl_scrub::Data;
use noetl_store::payloads::Payloads;
use noetl_store::sql::postgres::{Owner, Pools, Server, TlsMode};
use noetl_store::sql::sqlite::{self, Folder, Place};
use noetl_store::sql::{Done, GiveRoom, Hidden, Hide, Request, Room, SqlError, Taken};
use noetl_store::wallet::{Credential, Empty, Use, Wallet, WalletError, Way};

use crate::caps::filling::{Filling, Place as Target};
use crate::caps::masking::{Secrets, owned};
use crate::egress::{Addresses, ResolveError, Resolver};
use crate::fair::{Budget, Reservation};
use crate::state::Identity;

/// Scripts at once, of all tenants.
const MOST_SCRIPTS: usize = 128;
/// Those of them that run in this process.
const MOST_LOCAL_SCRIPTS: usize = 16;
/// Memory for scripts and their parameters, and for rows, of all tenants. What is smaller is not counted: there are no more
/// of them than calls.
const SCRIPTS_MEMORY: u64 = 384 << 20;
const ROWS_MEMORY: u64 = 384 << 20;
const SMALL_SCRIPT: u64 = 1 << 20;
const USUAL_PORT: u16 = 5432;

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct SqlOptions {
    /// Where SQLite databases are; without it there are none but those in memory.
    pub folder: Option<PathBuf>,
    /// Connections with one credential.
    pub connections: usize,
}

impl Default for SqlOptions {
    fn default() -> Self {
        Self { folder: None, connections: 16 }
    }
}

/// The databases plugins can reach.
pub struct Databases {
    pools: Pools,
    folder: Option<Folder>,
    resolver: Resolver,
    scripts: Budget,
    local: Budget,
    scripts_memory: Budget,
    rows_memory: Budget,
}

/// Why a script has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is no such credential, or none that opens.
    Credential(String),
    Sql(SqlError),
}

impl From<SqlError> for Problem {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<WalletError> for Problem {
    fn from(error: WalletError) -> Self {
        let text = error.to_string();
        match error {
            WalletError::Unknown { .. } | WalletError::Closed { .. } => Self::Credential(text),
            WalletError::NotForThere { .. } => Self::Sql(SqlError::Denied(text)),
            WalletError::NoToken { .. } | WalletError::Unavailable(_) => Self::Sql(SqlError::Connect(text)),
        }
    }
}

impl Databases {
    pub fn new(addresses: Addresses, options: SqlOptions) -> Self {
        Self {
            pools: Pools::new(options.connections),
            folder: options.folder.map(Folder::new),
            resolver: Resolver::new(addresses),
            scripts: Budget::new(0, 0, MOST_SCRIPTS),
            local: Budget::new(0, 0, MOST_LOCAL_SCRIPTS),
            scripts_memory: Budget::new(SCRIPTS_MEMORY, 0, 0),
            rows_memory: Budget::new(ROWS_MEMORY, 0, 0),
        }
    }

    /// Memory for a script of this weight.
    pub(crate) async fn room(&self, tenant: &Tenant, weight: u64) -> Option<Reservation> {
        match weight {
            0..=SMALL_SCRIPT => None,
            weight => Some(self.scripts_memory.reserve(tenant, weight, 0, false).await),
        }
    }

    pub(crate) async fn postgres(
        &self,
        wallet: &dyn Wallet,
        (who, seal): (&Identity, Seal),
        alias: &str,
        mut request: Request,
        payloads: &Payloads,
    ) -> Result<Vec<Done>, Problem> {
        let (_slot, time) = slot(&self.scripts, who, request.time).await?;
        let using = Use {
            tenant: who.tenant.clone(),
            alias: alias.to_owned(),
            by: format!("{}@{}", who.path, who.version),
            call: who.call.clone(),
            // Where it goes is in the credential itself.
            target: String::new(),
        };
        let opened = tokio::time::timeout(time, wallet.open(&using)).await.map_err(|_| SqlError::Timeout)?;
        let credential = opened?;
        let (server, port) = server(&credential)?;
        if !credential.may_go_to(&server.host, port, Way::Own(USUAL_PORT)) {
            let target = format!("{}:{port}", server.host);
            return Err(WalletError::NotForThere { alias: alias.to_owned(), target }.into());
        }
        let to = Target::Server { host: server.host.clone(), port, way: Way::Own(USUAL_PORT) };
        let mut filling = Filling::new(wallet, who, seal, to);
        let filled = tokio::time::timeout(time, filling.request(&mut request)).await.map_err(|_| SqlError::Timeout)?;
        filled.map_err(SqlError::from)?;
        let owner = Owner { tenant: who.tenant.clone(), alias: alias.to_owned(), revision: credential.revision };
        let addresses = Box::pin(async {
            self.resolver.resolve(&who.tenant, &server.host, port).await.map_err(|error| match error {
                ResolveError::Unreachable(refused) => SqlError::Denied(refused.to_string()),
                ResolveError::Lookup(_) => SqlError::Connect(error.to_string()),
            })
        });
        // Now that the credential was opened, it is known too.
        let room = Room::of(Arc::new(RoomOf(self.rows_memory.clone(), who.tenant.clone())));
        let request = Request { time, hidden: hidden(&who.tenant, Some(alias)), room, ..request };
        Ok(self.pools.run(&owner, &server, addresses, &request, payloads).await?)
    }

    pub(crate) async fn file(
        &self,
        (who, seal): (&Identity, Seal),
        name: &str,
        mut request: Request,
        payloads: &Payloads,
    ) -> Result<Vec<Done>, Problem> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            SqlError::Denied("there are no databases in files: an operator can set `sql.folder`".to_owned())
        })?;
        let place = folder.place(&who.tenant, name)?;
        // What is in a file stays, and no credential is for one.
        let mut filling = Filling::new(&Empty, who, seal, Target::Here(format!("sqlite:{name}")));
        filling.request(&mut request).await.map_err(SqlError::from)?;
        self.sqlite(who, place, request, payloads).await
    }

    pub(crate) async fn memory(
        &self,
        who: &Identity,
        request: Request,
        payloads: &Payloads,
    ) -> Result<Vec<Done>, Problem> {
        self.sqlite(who, Place::Memory, request, payloads).await
    }

    async fn sqlite(
        &self,
        who: &Identity,
        place: Place,
        request: Request,
        payloads: &Payloads,
    ) -> Result<Vec<Done>, Problem> {
        let (slot, time) = slot(&self.local, who, request.time).await?;
        let request = Request { time, hidden: hidden(&who.tenant, None), ..request };
        Ok(sqlite::run(place, request, payloads.clone(), slot).await?)
    }
}

/// A tenant's memory for rows.
struct RoomOf(Budget, Tenant);

impl GiveRoom for RoomOf {
    fn take(&self, bytes: u64) -> BoxFuture<'static, Taken> {
        let (budget, tenant) = (self.0.clone(), self.1.clone());
        Box::pin(async move { Box::new(budget.reserve(&tenant, bytes, 0, false).await) as Taken })
    }
}

/// The secrets of a tenant, to be taken out of rows.
struct OfTenant(Data);

impl Hide for OfTenant {
    fn text(&self, text: &str) -> Option<String> {
        owned(self.0.text(text))
    }

    fn json(&self, text: &str) -> Option<String> {
        owned(self.0.json(text, true))
    }

    fn bytes(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.bytes(bytes)
    }
}

/// Of what the database of this credential has, the placeholder is the credential's own, if it can be.
fn hidden(tenant: &Tenant, alias: Option<&str>) -> Hidden {
    let secrets = Secrets::of(tenant, alias.map(str::to_owned).into_iter().collect());
    secrets.data().map_or_else(Hidden::default, |data| Hidden::by(Arc::new(OfTenant(data.clone()))))
}

/// A slot, and what is left of the time.
async fn slot(slots: &Budget, who: &Identity, time: Duration) -> Result<(Reservation, Duration), SqlError> {
    let began = Instant::now();
    let slot = tokio::time::timeout(time, slots.reserve(&who.tenant, 0, 1, false)).await;
    Ok((slot.map_err(|_| SqlError::Timeout)?, time.saturating_sub(began.elapsed())))
}

/// The server a credential is for. Fields have the names of the wallet, or those with `db_` before them.
fn server(credential: &Credential) -> Result<(Server, u16), SqlError> {
    let alias = &credential.alias;
    if credential.kind != "postgres" {
        let text = format!("the credential `{alias}` is of the type `{}` and not `postgres`", credential.kind);
        return Err(SqlError::Invalid(text));
    }
    let field = |names: &[&str]| {
        names.iter().find_map(|name| credential.field(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let needed = |names: &[&str]| {
        field(names).ok_or_else(|| SqlError::Invalid(format!("the credential `{alias}` has no field `{}`", names[0])))
    };
    let mode = field(&["sslmode", "db_sslmode"]).unwrap_or_default();
    let tls = TlsMode::parse(&mode)
        .ok_or_else(|| SqlError::Invalid(format!("the credential `{alias}`: `{mode}` is no `sslmode`")))?;
    let port = match field(&["port", "db_port"]) {
        None => USUAL_PORT,
        Some(text) => text
            .trim()
            .parse()
            .map_err(|_| SqlError::Invalid(format!("the credential `{alias}`: its `port` is no port")))?,
    };
    let user = needed(&["user", "username", "db_user"])?;
    let server = Server {
        host: needed(&["host", "db_host"])?.to_ascii_lowercase(),
        password: field(&["password", "db_password"]).unwrap_or_default(),
        // A server without a name to go by takes the user's.
        database: field(&["database", "dbname", "db_name"]).unwrap_or_else(|| user.clone()),
        root: field(&["sslrootcert"]),
        user,
        tls,
    };
    Ok((server, port))
}

#[cfg(test)]
#[path = "databases_tests.rs"]
mod tests;
