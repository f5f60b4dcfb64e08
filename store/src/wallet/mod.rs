//! Credentials, opened for one use at a time.
//!
//! Whoever needs a secret names an alias and says what for; what comes back is never handed to a guest. A [`Wallet`]
//! writes the use down before it opens anything, and fails closed: a record that cannot be opened is an error and never
//! an empty value.
//!
//! [`Vault`] keeps the records of all tenants in one file; a kind ([`kinds`]) says which fields a credential has; `seal` and
//! [`keys`] are how a record is closed and with what. Nothing but [`Vault::open`] opens a record, and it writes a line of the
//! audit before it hands anything out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_contract::Tenant;
use zeroize::Zeroize as _;

mod binding;
mod empty;
pub mod keys;
pub mod kinds;
mod learns;
pub mod scheme;
mod seal;
mod seals;
mod vault;

pub use binding::{Binding, Way};
pub use empty::Empty;
pub use learns::{Learns, Secret, State};
pub use seal::SealError;
pub use seals::Seals;
pub use vault::{
    Audited, Change, Changes, Event, KeyUse, NewRecord, Proposal, Record, Retention, Rotated, Status, Vault, VaultError,
};

/// An opened credential. Its fields are secrets unless [`Credential::is_public`] says otherwise.
#[derive(Clone)]
pub struct Credential {
    pub alias: String,
    /// `bearer`, `basic`, `api_key`, `postgres`, `nats`, `s3`, `hmac`, `oauth2`.
    pub kind: String,
    /// `token`, `user`, `password`, `host`, ...
    pub fields: BTreeMap<String, String>,
    /// Where it may go; nowhere when empty.
    pub hosts: Vec<Binding>,
    /// Changes with every change of the value, so that whoever keeps connections knows to make new ones.
    pub revision: u64,
}

impl Credential {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// Whether it may be sent to the host (a name or address without brackets) and port, and that way.
    pub fn may_go_to(&self, host: &str, port: u16, way: Way) -> bool {
        self.hosts.iter().any(|binding| binding.covers(host, port, way))
    }

    /// Gives up everything that is a secret.
    pub fn keep_public(&mut self) {
        for (name, value) in &mut self.fields {
            if !Self::is_public(name) {
                value.zeroize();
            }
        }
        self.fields.retain(|name, _| Self::is_public(name));
    }

    /// Fields that say where and as whom, and can be shown.
    pub fn is_public(field: &str) -> bool {
        const PUBLIC: [&str; 21] = [
            "host",
            "port",
            "user",
            "database",
            "sslmode",
            "sslrootcert",
            "url",
            "endpoint",
            "region",
            "bucket",
            "header",
            "scope",
            "client_id",
            "token_url",
            "algorithm",
            "audience",
            "auth_style",
            "message",
            "format",
            "key_id",
            "timestamp_header",
        ];
        PUBLIC.contains(&field)
    }
}

/// The memory of a secret is overwritten when nobody uses it any more.
impl Drop for Credential {
    fn drop(&mut self) {
        self.fields.values_mut().for_each(|value| value.zeroize());
    }
}

/// Without the values: an opened credential ends up in logs sooner or later.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<&String> = self.fields.keys().collect();
        f.debug_struct("Credential")
            .field("alias", &self.alias)
            .field("kind", &self.kind)
            .field("fields", &fields)
            .finish()
    }
}

/// Who opens a credential, and what for. Written down whether it is opened or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub tenant: Tenant,
    pub alias: String,
    /// The plugin that asked: `tools/http@0.1.0`.
    pub by: String,
    /// The call it asked in.
    pub call: String,
    /// Where it is to go: `api.example.com:443`. Empty for the server that the credential itself names.
    pub target: String,
}

/// Why a credential was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WalletError {
    #[error("no credential is called `{alias}`; `noetl credential add {alias}` makes one")]
    Unknown { alias: String },
    #[error("the credential `{alias}` may not go to `{target}`; its hosts are set with `noetl credential add --host`")]
    NotForThere { alias: String, target: String },
    #[error("the credential `{alias}` cannot be opened: {reason}")]
    Closed { alias: String, reason: String },
    /// What has to be fetched for it was not, and may be at the next attempt.
    #[error("the credential `{alias}` has no token now: {reason}")]
    NoToken { alias: String, reason: String },
    #[error("the wallet did not answer: {0}")]
    Unavailable(String),
}

/// Opens credentials of a tenant.
#[async_trait]
pub trait Wallet: Send + Sync {
    /// A use whose target is no host of the credential's is refused. Whoever makes the connection checks the host it really
    /// connects to all the same.
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError>;

    /// What may be known of a credential, for whoever sends nothing: its public fields, and nothing is fetched for it. Written
    /// down like any use.
    async fn look(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        self.open(using).await
    }

    /// Whether the wallet fetched what it opened here, so that it can have something else after [`spent`](Self::spent); a
    /// kept value stays what it is.
    fn is_fetched(&self, _credential: &Credential) -> bool {
        false
    }

    /// What was opened is not taken any more where it went: the next [`open`](Self::open) has something else, if it is fetched.
    /// This may wait for a fetch that is under way, so whoever calls it keeps nothing that a fetch needs.
    async fn spent(&self, _tenant: &Tenant, _credential: &Credential) {}
}
