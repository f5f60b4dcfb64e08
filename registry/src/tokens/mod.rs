//! Bearer tokens: opaque, tenant-scoped, revocable.
//!
//! A secret is 256 random bits, so nobody guesses one and no slow hash is needed: only its sha256 is kept,
//! in the log and in memory. Verifying hashes what was presented and looks the hash up; how long that takes
//! says nothing about any secret. A secret is shown once, when it is made.
//!
//! After a crash a token is there completely or not at all. A secret that cannot be verified, for whatever
//! reason, is just not valid; the answer never says why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use noetl_contract::{Digest, Ring, Tenant};
use noetl_store::log::{Log, StreamId};
use serde::{Deserialize, Serialize};

use crate::ledger::{self, Fold, FoldError, Ledger, LedgerError, Recorded};
use crate::names::Actor;

mod admin;
mod rights;

pub use admin::{Admin, AdminError};
pub use rights::Right;

/// Stream of the log that tokens are folded from.
pub const STREAM: &str = "tokens";

/// Every secret starts with this, so that leaked ones can be searched for.
pub const PREFIX: &str = "noetl_";

/// What is known of a token. The secret is not part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    pub id: String,
    pub name: String,
    /// None may act for every tenant.
    pub tenant: Option<Tenant>,
    /// The most trusted ring its holder can push to.
    pub privilege: Ring,
    /// What it may do beyond that.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rights: BTreeSet<Right>,
    pub created_at_ms: u64,
    pub created_by: String,
    pub expires_at_ms: Option<u64>,
}

impl TokenInfo {
    pub fn is_admin(&self) -> bool {
        self.tenant.is_none() && self.privilege == Ring::System
    }

    /// Who acts when this token is presented.
    pub fn actor(&self) -> Actor {
        Actor { name: self.name.clone(), tenant: self.tenant.clone() }
    }

    fn expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|at| at <= now_ms)
    }
}

/// A token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    pub name: String,
    pub tenant: Option<Tenant>,
    pub privilege: Ring,
    pub rights: BTreeSet<Right>,
    pub expires_at_ms: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("there is no token with the id `{0}`")]
    NotFound(String),
    #[error("`{actor}` acts for tenant `{tenant}` only and cannot make or revoke this token")]
    Forbidden { actor: String, tenant: Tenant },
    #[error("the name of a token has 1 to 100 characters, none of them a control character")]
    BadName,
    #[error("a token of tenant `{0}` cannot have the privilege `system`: use `tenant` or less")]
    PrivilegeTooHigh(Tenant),
    #[error("the system has no randomness to make a token from: {0}")]
    NoRandomness(String),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl TokenError {
    pub fn code(&self) -> &'static str {
        match self {
            TokenError::NotFound(_) => "token_not_found",
            TokenError::Forbidden { .. } => "forbidden",
            TokenError::BadName => "invalid_token_name",
            TokenError::PrivilegeTooHigh(_) => "privilege_too_high",
            TokenError::NoRandomness(_) => "no_randomness",
            TokenError::Ledger(_) => "store_unavailable",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct TokenEvent {
    #[serde(flatten)]
    what: What,
    by: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum What {
    TokenCreated {
        id: String,
        name: String,
        tenant: Option<Tenant>,
        privilege: Ring,
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        rights: BTreeSet<Right>,
        expires_at_ms: Option<u64>,
        secret_sha256: Digest,
        /// Made by the server itself at its first start.
        #[serde(default)]
        bootstrap: bool,
    },
    TokenRevoked {
        id: String,
    },
}

impl ledger::Event for TokenEvent {
    const KINDS: &'static [&'static str] = &["token_created", "token_revoked"];
}

#[derive(Debug, Clone, PartialEq)]
struct Token {
    info: Arc<TokenInfo>,
    bootstrap: bool,
    revoked: bool,
}

/// All tokens ever made: a revoked one stays known, so that its secret cannot come back as another token.
#[derive(Debug, Clone, PartialEq, Default)]
struct State {
    tokens: BTreeMap<String, Token>,
    by_hash: HashMap<Digest, String>,
}

impl State {
    fn by_secret(&self, secret: &str) -> Option<&Token> {
        self.tokens.get(self.by_hash.get(&Digest::of(secret.as_bytes()))?)
    }
}

impl Fold for State {
    type Event = TokenEvent;

    fn apply(&mut self, recorded: &Recorded<TokenEvent>) -> Result<(), FoldError> {
        match &recorded.event.what {
            What::TokenCreated { id, name, tenant, privilege, rights, expires_at_ms, secret_sha256, bootstrap } => {
                let info = TokenInfo {
                    id: id.clone(),
                    name: name.clone(),
                    tenant: tenant.clone(),
                    privilege: *privilege,
                    rights: rights.clone(),
                    created_at_ms: recorded.time_ms,
                    created_by: recorded.event.by.clone(),
                    expires_at_ms: *expires_at_ms,
                };
                self.by_hash.insert(*secret_sha256, id.clone());
                let token = Token { info: Arc::new(info), bootstrap: *bootstrap, revoked: false };
                self.tokens.insert(id.clone(), token);
            }
            What::TokenRevoked { id } => {
                let token = self.tokens.get_mut(id).ok_or_else(|| FoldError::Contradiction {
                    version: recorded.version,
                    problem: format!("there is no token `{id}` to revoke"),
                })?;
                token.revoked = true;
            }
        }
        Ok(())
    }
}

pub struct Tokens {
    ledger: Arc<Ledger<State>>,
}

impl Tokens {
    /// Folds the stream of tokens.
    pub fn open(log: Arc<dyn Log>) -> Result<Arc<Self>, LedgerError> {
        Ok(Arc::new(Self { ledger: Ledger::open(log, StreamId::new(STREAM))? }))
    }

    /// Makes a token. The secret is in the answer and nowhere else.
    pub async fn create(&self, actor: &Actor, new: NewToken) -> Result<(TokenInfo, String), TokenError> {
        let secret = random_secret()?;
        let info = self.record(actor, new, &secret, false).await?;
        Ok((info, secret))
    }

    /// The token of a secret, if it is valid now.
    pub fn verify(&self, secret: &str, now_ms: u64) -> Option<TokenInfo> {
        self.ledger.with(|state| {
            let token = state.by_secret(secret)?;
            (!token.revoked && !token.info.expired(now_ms)).then(|| TokenInfo::clone(&token.info))
        })
    }

    /// Ends a token at once. Ending it twice is no error.
    pub async fn revoke(&self, actor: &Actor, id: &str) -> Result<(), TokenError> {
        let changed = self.ledger.change(|state| {
            let token = state.tokens.get(id).ok_or_else(|| TokenError::NotFound(id.to_owned()))?;
            if actor.tenant.is_some() && actor.tenant != token.info.tenant {
                // To another tenant the token is as good as not there.
                return Err(TokenError::NotFound(id.to_owned()));
            }
            let what = What::TokenRevoked { id: id.to_owned() };
            Ok(((!token.revoked).then(|| TokenEvent { what, by: actor.name.clone() }), ()))
        });
        changed.await.map(|_| ())
    }

    /// Tokens that are not revoked, by id; expired ones are among them until they are.
    pub fn list(&self) -> Vec<TokenInfo> {
        self.ledger.with(|state| {
            let live = state.tokens.values().filter(|token| !token.revoked);
            live.map(|token| TokenInfo::clone(&token.info)).collect()
        })
    }

    async fn record(
        &self,
        actor: &Actor,
        new: NewToken,
        secret: &str,
        bootstrap: bool,
    ) -> Result<TokenInfo, TokenError> {
        if new.name.is_empty() || new.name.chars().count() > 100 || new.name.chars().any(char::is_control) {
            return Err(TokenError::BadName);
        }
        match (&actor.tenant, &new.tenant) {
            (Some(own), asked) if asked.as_ref() != Some(own) => {
                return Err(TokenError::Forbidden { actor: actor.name.clone(), tenant: own.clone() });
            }
            (_, Some(tenant)) if new.privilege == Ring::System => {
                return Err(TokenError::PrivilegeTooHigh(tenant.clone()));
            }
            _ => {}
        }
        let id = format!("tok_{}", hex::encode(random_bytes::<8>()?));
        let what = What::TokenCreated {
            id: id.clone(),
            name: new.name,
            tenant: new.tenant,
            privilege: new.privilege,
            rights: new.rights,
            expires_at_ms: new.expires_at_ms,
            secret_sha256: Digest::of(secret.as_bytes()),
            bootstrap,
        };
        let event = TokenEvent { what, by: actor.name.clone() };
        let changed = self.ledger.change(|_| Ok::<_, TokenError>((Some(event.clone()), ()))).await?;
        let token = changed.state.tokens.get(&id).ok_or(TokenError::NotFound(id))?;
        Ok(TokenInfo::clone(&token.info))
    }
}

fn random_secret() -> Result<String, TokenError> {
    Ok(format!("{PREFIX}{}", hex::encode(random_bytes::<32>()?)))
}

fn random_bytes<const N: usize>() -> Result<[u8; N], TokenError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandomness(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
