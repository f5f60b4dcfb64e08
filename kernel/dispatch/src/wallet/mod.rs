//! The wallet of a running kernel: the store's vault, tokens that have to be fetched, and who is told of what is opened.
//!
//! Invariants:
//! 1. Drivers get a credential from here and from nowhere else. It was audited by the vault, and every secret in it was
//!    told to [`Learns`], before they have it: when the server started or the credential was kept, and again when it is opened.
//! 2. A driver is given what a connection needs and no more: of `oauth2` that is a token, never the client's secret.
//! 3. Requests for tokens leave by the host's own way out, in the name of the tenant, under the policy of all requests.
//!
//! What the vault does blocks on the disk, so it happens on threads for that.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_contract::Tenant;
use noetl_host::caps::http_client::Outbound;
use noetl_store::wallet::kinds::Fields;
use noetl_store::wallet::{
    Audited, Change, Changes, Credential, Event, Learns, NewRecord, Proposal, Record, Rotated, Seals, Secret, State,
    Status, Use, Vault, VaultError, Wallet, WalletError,
};
use zeroize::Zeroizing;

mod oauth2;

use oauth2::{TokenError, Tokens};

/// See the module.
pub struct Keeper {
    vault: Arc<Vault>,
    known: Arc<dyn Learns>,
    tokens: Tokens,
}

impl Keeper {
    pub fn new(vault: Arc<Vault>, http: Arc<dyn Outbound>, known: Arc<dyn Learns>) -> Self {
        Self { vault, known, tokens: Tokens::new(http) }
    }

    pub async fn put(&self, new: NewRecord, change: Change) -> Result<Record, VaultError> {
        let known = self.known.clone();
        self.with(move |vault| {
            let fields = new.fields.clone();
            let record = vault.put(new, &change)?;
            learn_kept(&*known, &record, &fields);
            Ok(record)
        })
        .await
    }

    /// What a credential would be with some of it changed; everything else stays as it was.
    pub async fn propose(&self, tenant: Tenant, alias: String, changes: Changes) -> Result<Proposal, VaultError> {
        self.with(move |vault| vault.propose(&tenant, &alias, changes)).await
    }

    pub async fn accept(&self, proposal: Proposal, change: Change) -> Result<Record, VaultError> {
        let known = self.known.clone();
        self.with(move |vault| {
            let (record, fields) = vault.accept(proposal, &change)?;
            learn_kept(&*known, &record, &fields);
            Ok(record)
        })
        .await
    }

    /// Makes every secret of the wallet known, whether anybody has opened it since the start or not.
    pub async fn learn_all(&self) -> Result<(), VaultError> {
        let known = self.known.clone();
        self.with(move |vault| vault.tell_all(&|tenant, secret| known.learn(tenant, secret))).await
    }

    /// What placeholders are written with.
    pub fn seals(&self) -> &Seals {
        self.vault.seals()
    }

    /// Of one tenant, or of all.
    pub async fn list(&self, tenant: Option<Tenant>) -> Result<Vec<Record>, VaultError> {
        self.with(move |vault| vault.list(tenant.as_ref())).await
    }

    pub async fn get(&self, tenant: Tenant, alias: String) -> Result<Record, VaultError> {
        self.with(move |vault| vault.get(&tenant, &alias)).await
    }

    pub async fn delete(&self, tenant: Tenant, alias: String, change: Change) -> Result<Record, VaultError> {
        self.tokens.forget(&tenant, &alias);
        let known = self.known.clone();
        self.with(move |vault| {
            let record = vault.delete(&tenant, &alias, &change)?;
            known.retire(&tenant, &alias);
            Ok(record)
        })
        .await
    }

    /// The record with its values, for a person who may see them.
    pub async fn reveal(&self, using: Use) -> Result<(Record, Credential), VaultError> {
        let tenant = using.tenant.clone();
        let opened = self.with(move |vault| {
            let record = vault.get(&using.tenant, &using.alias);
            let credential = vault.open_for(&using, Event::Revealed)?;
            Ok((record?, credential))
        });
        let (record, credential) = opened.await?;
        self.learn(&tenant, &credential, State::Kept);
        Ok((record, credential))
    }

    /// Newest first, before the line `before`.
    pub async fn audit(
        &self,
        tenant: Tenant,
        alias: String,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Audited>, VaultError> {
        self.with(move |vault| vault.audit(&tenant, &alias, before, limit)).await
    }

    pub async fn status(&self) -> Result<Status, VaultError> {
        self.with(|vault| vault.status()).await
    }

    pub async fn rotate(&self) -> Result<Rotated, VaultError> {
        self.vault.rotate().await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Vault) -> Result<T, VaultError> + Send + 'static,
    ) -> Result<T, VaultError> {
        let vault = Arc::clone(&self.vault);
        tokio::task::spawn_blocking(move || work(&vault)).await.map_err(std::io::Error::other)?
    }

    /// So that it is known after a restart too. It is of use without that.
    async fn keep_token(&self, tenant: &Tenant, fetched: &Credential, life: Duration) {
        let Some(token) = fetched.field("token").map(|token| Zeroizing::new(token.to_owned())) else { return };
        let (tenant, alias) = (tenant.clone(), fetched.alias.clone());
        let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
        if let Err(error) = self.with(move |vault| vault.keep_token(&tenant, &alias, &token, life)).await {
            tracing::warn!(alias = fetched.alias, %error, "a token is not known any more after the next start");
        }
    }

    fn learn(&self, tenant: &Tenant, credential: &Credential, state: State) {
        let (alias, revision) = (credential.alias.as_str(), credential.revision);
        for (field, value) in credential.fields.iter().filter(|(name, _)| !Credential::is_public(name)) {
            self.known.learn(tenant, Secret { alias, field, value, revision, state });
        }
    }
}

#[async_trait]
impl Wallet for Keeper {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let asked = using.clone();
        let credential = self.with(move |vault| vault.open_for(&asked, Event::Opened)).await.map_err(told)?;
        self.learn(&using.tenant, &credential, State::Kept);
        if credential.kind != oauth2::KIND {
            return Ok(Arc::new(credential));
        }
        let alias = || using.alias.clone();
        let token = self.tokens.token(&using.tenant, &credential).await;
        let (fetched, new_for) = token.map_err(|error| match error {
            TokenError::Refused(reason) => WalletError::Closed { alias: alias(), reason },
            TokenError::Unreachable(reason) => WalletError::NoToken { alias: alias(), reason },
        })?;
        self.learn(&using.tenant, &fetched, State::Fetched);
        if let Some(life) = new_for {
            self.keep_token(&using.tenant, &fetched, life).await;
        }
        Ok(Arc::new(fetched))
    }

    async fn look(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let asked = using.clone();
        let mut credential = self.with(move |vault| vault.open_for(&asked, Event::Opened)).await.map_err(told)?;
        self.learn(&using.tenant, &credential, State::Kept);
        credential.keep_public();
        Ok(Arc::new(credential))
    }

    fn is_fetched(&self, credential: &Credential) -> bool {
        credential.kind == oauth2::KIND
    }

    async fn spent(&self, tenant: &Tenant, credential: &Credential) {
        if self.is_fetched(credential) {
            self.tokens.spent(tenant, credential).await;
        }
    }
}

/// What a credential has from now on. It was kept before it is learned: nobody has words masked that the wallet did not take.
fn learn_kept(known: &dyn Learns, record: &Record, fields: &Fields) {
    known.retire(&record.tenant, &record.alias);
    let (alias, revision) = (record.alias.as_str(), record.revision);
    for (field, value) in fields.iter().filter(|(name, _)| !Credential::is_public(name)) {
        known.learn(&record.tenant, Secret { alias, field, value, revision, state: State::Kept });
    }
}

/// What a driver is told, and through it perhaps a plugin: that there is no such credential, or that it stays closed.
fn told(error: VaultError) -> WalletError {
    match error {
        VaultError::Unknown { alias } => WalletError::Unknown { alias },
        VaultError::NotForThere { alias, target } => WalletError::NotForThere { alias, target },
        VaultError::Closed { alias, source } => WalletError::Closed { alias, reason: source.to_string() },
        other => {
            tracing::error!(error = %other, "the wallet did not open a credential");
            WalletError::Unavailable(
                "its file could not be read or written; the server's log has the reason".to_owned(),
            )
        }
    }
}

#[cfg(test)]
mod tests;
