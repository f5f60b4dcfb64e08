//! What the server hears of secrets, and where it keeps them from going.
//!
//! Every credential that is opened passes here, and its secrets are known from then on ([`noetl_scrub::known`]): masked in
//! all that its tenant is shown, and in what this tenant's tools answer, before anything of it is written down. A value that
//! is masked there came out of the wallet, so no step can have needed it: whoever may use it has its placeholder.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_contract::Tenant;
use noetl_host::{Failure, Output};
use noetl_scrub::known;
use noetl_store::wallet::{Credential, Learns, Use, Wallet, WalletError};

/// A wallet whose secrets are known once it has opened them.
pub(crate) struct Heard(pub(crate) Arc<dyn Wallet>);

#[async_trait]
impl Wallet for Heard {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let credential = self.0.open(using).await?;
        let secrets = credential.fields.iter().filter(|(field, _)| !Credential::is_public(field));
        secrets.for_each(|(_, value)| known::learn_for(using.tenant.as_str(), value));
        Ok(credential)
    }

    /// Nothing that it gives is a secret.
    async fn look(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        self.0.look(using).await
    }

    fn is_fetched(&self, credential: &Credential) -> bool {
        self.0.is_fetched(credential)
    }

    async fn spent(&self, tenant: &Tenant, credential: &Credential) {
        self.0.spent(tenant, credential).await;
    }
}

/// For a wallet to tell of what it seals, before anybody has opened it.
pub struct Ear;

impl Learns for Ear {
    fn learn(&self, tenant: &Tenant, value: &str) {
        known::learn_for(tenant.as_str(), value);
    }
}

/// JSON without secrets of its tenant.
pub(crate) fn masked_json(tenant: &Tenant, text: String) -> String {
    let masked = known::of_tenant(tenant.as_str()).and_then(|known| match known.mask_json(&text) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(_) => None,
    });
    masked.unwrap_or(text)
}

/// What a tool answered, without secrets of its tenant.
pub(crate) fn masked(tenant: &Tenant, outcome: Result<Output, Failure>) -> Result<Output, Failure> {
    let Some(known) = known::of_tenant(tenant.as_str()) else { return outcome };
    match outcome {
        Ok(Output::Tool { output, body }) => Ok(Output::Tool { output: masked_json(tenant, output), body }),
        Ok(Output::Bytes(bytes)) => {
            Ok(Output::Bytes(match std::str::from_utf8(&bytes).map(|text| known.mask_json(text)) {
                Ok(Cow::Owned(masked)) => masked.into(),
                // Bytes that are no text came through no encoder that is looked for.
                Ok(Cow::Borrowed(_)) | Err(_) => bytes,
            }))
        }
        Err(Failure { code, message, retryable }) => {
            Err(Failure { code: known.mask(&code).into_owned(), message: known.mask(&message).into_owned(), retryable })
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

    #[tokio::test]
    async fn what_was_opened_is_masked_in_what_its_tenants_tools_answer() {
        let tenant = Tenant::new("heard").expect("valid");
        let using = Use {
            tenant: tenant.clone(),
            alias: "a".to_owned(),
            by: "main/a@1.0.0".to_owned(),
            call: "c".to_owned(),
            target: "db:1".to_owned(),
        };
        Heard(Arc::new(One)).open(&using).await.expect("opened");
        let output = r#"{"said":"heard-secret of heard-user","n":1}"#.to_owned();
        let answered = |tenant: &Tenant| match masked(tenant, Ok(Output::Tool { output: output.clone(), body: None })) {
            Ok(Output::Tool { output, .. }) => output,
            _ => panic!("an answer stays one"),
        };
        assert_eq!(answered(&tenant), r#"{"said":"[REDACTED] of heard-user","n":1}"#);
        assert_eq!(answered(&Tenant::new("other").expect("valid")), output);
        let failure = Failure { code: "sql".to_owned(), message: "for heard-secret".to_owned(), retryable: true };
        let Err(failure) = masked(&tenant, Err(failure)) else { panic!("a failure stays one") };
        assert_eq!((failure.message.as_str(), failure.retryable), ("for [REDACTED]", true));
        assert_eq!(noetl_scrub::scrub_text_for("heard", "heard-secret"), "[REDACTED]");
        assert_eq!(noetl_scrub::scrub_text_for("other", "heard-secret"), "heard-secret");
    }
}
