//! What the server hears of secrets, and where it keeps them from going.
//!
//! Every secret of the wallet passes here, and is known from then on ([`noetl_scrub::known`]): masked in all that its tenant is
//! shown, and replaced by its placeholder in data. That is done where data comes in: drivers do it with what they bring, and
//! here it is done with what executions are started and resumed with, what workers report and what tools answer, before
//! anything of it is written down. Who may use a secret can send its placeholder on; who may not has no use for either.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_contract::Tenant;
use noetl_host::{Failure, Output};
use noetl_scrub::known;
use noetl_store::wallet::{Credential, Learns, Seals, Secret, State, Use, Wallet, WalletError};

/// A wallet whose secrets are known once it has opened them.
pub(crate) struct Heard {
    pub(crate) wallet: Arc<dyn Wallet>,
    pub(crate) ear: Ear,
}

#[async_trait]
impl Wallet for Heard {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let credential = self.wallet.open(using).await?;
        let state = if self.wallet.is_fetched(&credential) { State::Fetched } else { State::Kept };
        let (alias, revision) = (credential.alias.as_str(), credential.revision);
        for (field, value) in credential.fields.iter().filter(|(field, _)| !Credential::is_public(field)) {
            self.ear.learn(&using.tenant, Secret { alias, field, value, revision, state });
        }
        Ok(credential)
    }

    /// Nothing that it gives is a secret.
    async fn look(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        self.wallet.look(using).await
    }

    fn is_fetched(&self, credential: &Credential) -> bool {
        self.wallet.is_fetched(credential)
    }

    async fn spent(&self, tenant: &Tenant, credential: &Credential) {
        self.wallet.spent(tenant, credential).await;
    }
}

/// For a wallet to tell of what it has, before anybody has opened it.
#[derive(Clone)]
pub struct Ear(pub Seals);

impl Learns for Ear {
    fn learn(&self, tenant: &Tenant, secret: Secret<'_>) {
        let Secret { alias, field, value, revision, state } = secret;
        let set = known::set_of(tenant.as_str());
        match state {
            State::Former => set.learn(value),
            State::Kept | State::Fetched => {
                let kept = state == State::Kept;
                set.learn_field(&self.0.of(tenant), known::Field { alias, field, revision, kept }, value);
            }
        }
    }

    fn retire(&self, tenant: &Tenant, alias: &str) {
        if let Some(set) = known::of_tenant(tenant.as_str()) {
            set.retire(alias);
        }
    }
}

/// JSON that comes in, with placeholders in the place of secrets of its tenant. Names of fields stay.
pub(crate) fn come_in(tenant: &Tenant, text: String) -> String {
    let other = known::data_of(tenant.as_str()).and_then(|data| owned(data.json(&text, false)));
    other.unwrap_or(text)
}

fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

/// What a tool answered, without secrets of its tenant.
pub(crate) fn answered(tenant: &Tenant, outcome: Result<Output, Failure>) -> Result<Output, Failure> {
    let Some(data) = known::data_of(tenant.as_str()).map(noetl_scrub::Data::of_results) else { return outcome };
    match outcome {
        Ok(Output::Tool { output, body }) => {
            Ok(Output::Tool { output: owned(data.json(&output, false)).unwrap_or(output), body })
        }
        // Bytes that are no text came through no encoder that is looked for.
        Ok(Output::Bytes(bytes)) => {
            let text = std::str::from_utf8(&bytes).ok().and_then(|text| owned(data.json(text, false)));
            Ok(Output::Bytes(text.map_or(bytes, Into::into)))
        }
        Err(Failure { code, message, retryable }) => {
            let masked = |text: &str| known::mask_for(tenant.as_str(), text).into_owned();
            // A code is compared, and may be a word of the host's own.
            let code = if owned(data.text(&code)).is_some() { masked(&code) } else { code };
            Err(Failure { code, message: masked(&message), retryable })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    #[async_trait]
    impl Wallet for One {
        async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
            let fields = [("password", "heard-secret"), ("user", "heard-user")];
            Ok(Arc::new(Credential {
                alias: using.alias.clone(),
                kind: "basic".to_owned(),
                fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                hosts: Vec::new(),
                revision: 1,
            }))
        }
    }

    fn seals() -> Seals {
        Seals::new([7; 32])
    }

    fn heard() -> Heard {
        Heard { wallet: Arc::new(One), ear: Ear(seals()) }
    }

    #[tokio::test]
    async fn what_was_opened_has_its_placeholder_in_what_its_tenants_tools_answer() {
        let tenant = Tenant::new("heard").expect("valid");
        let using = Use {
            tenant: tenant.clone(),
            alias: "a".to_owned(),
            by: "main/a@1.0.0".to_owned(),
            call: "c".to_owned(),
            target: "db:1".to_owned(),
        };
        heard().open(&using).await.expect("opened");
        let output = r#"{"said":"heard-secret of heard-user","n":1}"#.to_owned();
        let answered =
            |tenant: &Tenant| match super::answered(tenant, Ok(Output::Tool { output: output.clone(), body: None })) {
                Ok(Output::Tool { output, .. }) => output,
                _ => panic!("an answer stays one"),
            };
        let placeholder = seals().of(&tenant).write("a", "password");
        let with_placeholder = output.replace("heard-secret", &placeholder);
        assert_eq!(answered(&tenant), with_placeholder);
        assert_eq!(come_in(&tenant, output.clone()), with_placeholder);
        assert_eq!(come_in(&tenant, r#"{"heard-secret":1}"#.to_owned()), r#"{"heard-secret":1}"#, "names stay");
        assert_eq!(answered(&Tenant::new("other").expect("valid")), output);
        let failure = Failure { code: "sql".to_owned(), message: "for heard-secret".to_owned(), retryable: true };
        let Err(failure) = super::answered(&tenant, Err(failure)) else { panic!("a failure stays one") };
        assert_eq!((failure.message.as_str(), failure.retryable), ("for [REDACTED]", true));
        assert_eq!(noetl_scrub::scrub_text_for("heard", "heard-secret"), "[REDACTED]");
        assert_eq!(noetl_scrub::scrub_text_for("other", "heard-secret"), "heard-secret");
    }
}
