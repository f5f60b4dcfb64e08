//! `noetl:secrets`: credentials by alias, as placeholders.
//!
//! Nothing here returns a secret. What a guest gets is what may be shown of a credential, and texts that stand for the
//! rest; the drivers that make connections put the values in, right before they leave. Which part of a credential a
//! placeholder stands for is decided by [`value_of`], for all of them alike.
//!
//! A guest needs no grant to *have* a placeholder, since playbooks write them into its arguments. What protects a
//! credential is where it may go, and that data cannot have a placeholder in it: those of the host and of playbooks are
//! tagged with the tenant's seal.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_contract::placeholder::Seal;
use noetl_store::wallet::{Credential, WalletError, scheme};
use serde_json::json;

use crate::bindings::noetl::secrets::secrets as wit;
use crate::caps::http_client::SIGNATURE;
use crate::state::CallState;

/// What a credential is opened for when only its kind is asked for.
const NOWHERE: &str = "nowhere";
/// `user:password` as HTTP writes it; no field of any credential, but a placeholder can stand for it.
const BASIC: &str = "basic";
/// The header of an API key that names none.
const KEY_HEADER: &str = "x-api-key";

/// Names that wallets and playbooks use for one thing.
const SPELLINGS: [[&str; 2]; 3] = [["token", "access_token"], ["key", "api_key"], ["user", "username"]];

/// What a placeholder of this field stands for.
pub(crate) fn value_of(credential: &Credential, field: &str) -> Option<String> {
    if let Some(value) = field_of(credential, field) {
        return Some(value.to_owned());
    }
    if field == BASIC {
        let pair = format!("{}:{}", field_of(credential, "user")?, field_of(credential, "password")?);
        return Some(STANDARD.encode(pair));
    }
    // A key is often kept as the one token it is.
    if matches!(field, "key" | "api_key") { field_of(credential, "token").map(str::to_owned) } else { None }
}

fn field_of<'c>(credential: &'c Credential, field: &str) -> Option<&'c str> {
    let others = SPELLINGS.iter().filter(|spellings| spellings.contains(&field)).flatten().copied();
    std::iter::once(field).chain(others).find_map(|name| credential.field(name))
}

/// The headers that log a request in.
fn headers_of(credential: &Credential, seal: &Seal) -> Result<Vec<(String, String)>, wit::SecretError> {
    let alias = &credential.alias;
    let authorization = |scheme: &str, field: &str| {
        Ok(vec![("authorization".to_owned(), format!("{scheme} {}", seal.write(alias, field)))])
    };
    match credential.kind.as_str() {
        "bearer" | "oauth2" => authorization("Bearer", "token"),
        "basic" => authorization("Basic", BASIC),
        "api_key" => {
            let header = credential.field("header").unwrap_or(KEY_HEADER).to_ascii_lowercase();
            Ok(vec![(header, seal.write(alias, "key"))])
        }
        // What stands for a signature; the request that leaves is signed.
        "hmac" => {
            let header = credential.field("header").unwrap_or(scheme::USUAL_HEADER).to_ascii_lowercase();
            Ok(vec![(header, seal.write(alias, SIGNATURE))])
        }
        "s3" => Ok(vec![("authorization".to_owned(), seal.write(alias, SIGNATURE))]),
        kind => Err(wit::SecretError::Unsupported(format!(
            "`{alias}` is a `{kind}` credential, which HTTP has no header for; \
             use one of the type bearer, basic, api_key, oauth2, hmac or s3"
        ))),
    }
}

fn description(credential: &Credential) -> wit::Description {
    let public = credential.fields.iter().filter(|(name, _)| Credential::is_public(name));
    wit::Description {
        kind: credential.kind.clone(),
        fields: public.map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

impl From<WalletError> for wit::SecretError {
    fn from(error: WalletError) -> Self {
        let text = error.to_string();
        match error {
            WalletError::Unknown { .. } => wit::SecretError::Unknown(text),
            WalletError::NotForThere { .. }
            | WalletError::Closed { .. }
            | WalletError::NoToken { .. }
            | WalletError::Unavailable(_) => wit::SecretError::Unavailable(text),
        }
    }
}

impl CallState {
    /// What placeholders of the call's tenant are written with.
    pub(crate) fn seal(&self) -> Seal {
        self.drivers.seals.of(&self.identity.tenant)
    }

    async fn look_at(&mut self, alias: &str) -> Result<Arc<Credential>, wit::SecretError> {
        let (drivers, using) = (self.drivers.clone(), self.identity.using(alias, NOWHERE));
        Ok(drivers.wallet.look(&using).await?)
    }

    pub(crate) async fn describe_live(&mut self, alias: &str) -> Result<wit::Description, wit::SecretError> {
        self.look_at(alias).await.map(|credential| description(&credential))
    }

    pub(crate) async fn headers_live(&mut self, alias: &str) -> Result<Vec<(String, String)>, wit::SecretError> {
        let credential = self.look_at(alias).await?;
        headers_of(&credential, &self.seal())
    }
}

impl wit::Host for CallState {
    async fn describe(&mut self, alias: String) -> wasmtime::Result<Result<wit::Description, wit::SecretError>> {
        self.charge(alias.len())?;
        if self.tape.is_live() { Ok(self.describe_live(&alias).await) } else { self.describe_taped(alias).await }
    }

    async fn placeholder(&mut self, alias: String, field: String) -> wasmtime::Result<String> {
        self.charge(alias.len() + field.len())?;
        let with = || json!({ "alias": alias, "field": field });
        Ok(self.taped("secrets.placeholder", with, |state| state.seal().write(&alias, &field))?)
    }

    async fn headers(&mut self, alias: String) -> wasmtime::Result<Result<Vec<(String, String)>, wit::SecretError>> {
        self.charge(alias.len())?;
        if self.tape.is_live() { Ok(self.headers_live(&alias).await) } else { self.headers_taped(alias).await }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credential(kind: &str, fields: &[(&str, &str)]) -> Credential {
        Credential {
            alias: "my cred".to_owned(),
            kind: kind.to_owned(),
            fields: fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            hosts: Vec::new(),
            revision: 1,
        }
    }

    #[test]
    fn headers_have_placeholders_and_no_values() {
        let seal = Seal::of(b"a key", "main");
        let token = seal.write("my cred", "token");
        for (kind, fields, header, value) in [
            ("bearer", [("token", "tok-1"), ("x", "")], "authorization", format!("Bearer {token}")),
            ("oauth2", [("token", "tok-1"), ("client_id", "c")], "authorization", format!("Bearer {token}")),
            (
                "basic",
                [("user", "bob"), ("password", "tok-1")],
                "authorization",
                format!("Basic {}", seal.write("my cred", "basic")),
            ),
            ("api_key", [("key", "tok-1"), ("header", "X-Key")], "x-key", seal.write("my cred", "key")),
        ] {
            let headers = headers_of(&credential(kind, &fields), &seal).expect("headers");
            assert_eq!(headers, [(header.to_owned(), value)]);
        }
        let usual = headers_of(&credential("api_key", &[("key", "k")]), &seal).expect("headers");
        assert_eq!(usual[0].0, "x-api-key");
        for (kind, header) in [("hmac", "x-signature"), ("s3", "authorization")] {
            let signed = headers_of(&credential(kind, &[("secret", "tok-1")]), &seal).expect("headers");
            assert_eq!(signed, [(header.to_owned(), seal.write("my cred", SIGNATURE))]);
        }
    }

    #[test]
    fn what_has_no_header_says_so() {
        for kind in ["postgres", "nats"] {
            let refused = headers_of(&credential(kind, &[("secret", "tok-1")]), &Seal::of(b"a key", "main"))
                .expect_err("no header");
            assert!(
                matches!(&refused, wit::SecretError::Unsupported(text) if text.contains("my cred")),
                "{kind}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_description_has_public_fields_alone() {
        let described = description(&credential("postgres", &[("host", "db"), ("password", "hunter2"), ("user", "u")]));
        assert_eq!(described.fields, [("host".to_owned(), "db".to_owned()), ("user".to_owned(), "u".to_owned())]);
    }

    #[test]
    fn a_field_is_found_by_any_of_its_names() {
        let basic = credential("basic", &[("username", "bob"), ("password", "p:w")]);
        assert_eq!(value_of(&basic, "user").as_deref(), Some("bob"));
        assert_eq!(value_of(&basic, "basic").as_deref(), Some("Ym9iOnA6dw=="));
        assert_eq!(value_of(&basic, "token"), None);
        let bearer = credential("bearer", &[("access_token", "t")]);
        assert_eq!(value_of(&bearer, "token").as_deref(), Some("t"));
        assert_eq!(value_of(&bearer, "basic"), None);
        assert_eq!(value_of(&credential("api_key", &[("token", "t")]), "key").as_deref(), Some("t"));
    }
}
