//! Requests that are signed as they leave, with credentials of the types `hmac` and `s3`.
//!
//! What logs such a request in is one header whose whole value stands for a signature: the placeholder of the field
//! [`SIGNATURE`]. It is taken off first, and a signature is put there last, when nothing of the request changes any more.
//! A request that a redirect leads to is one of its own, and signed anew if the header came along.
//!
//! Invariants:
//! 1. What is signed is what is sent: address, headers and body after every placeholder in them was replaced.
//! 2. The key stays in the host. It is used for requests to the hosts of its credential alone, like a secret that is sent.
//! 3. A signature that comes back is masked like a secret: whoever has it could send the request again. It is known to nobody
//!    else: each request has one of its own, and what is known of a tenant is bounded.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use noetl_contract::Digest;
use noetl_contract::placeholder::{self, Seal};
use noetl_scrub::{Values, known};
use noetl_store::payloads::Payloads;
use noetl_store::wallet::{Credential, Use, Wallet};

use super::opening::{self, Place};
use super::{OutboundError, is_ours};
use crate::caps::masking::Secrets;
use crate::caps::payload::Payload;

mod hmac;
mod sigv4;

/// No field of any credential: the placeholder of it stands for a signature.
pub(crate) const SIGNATURE: &str = "signature";

/// A request to which nothing is added but its signature.
pub(super) struct Leaving<'r> {
    pub method: &'r str,
    pub url: &'r mut String,
    pub headers: &'r mut Vec<(String, String)>,
    pub body: Option<&'r Payload>,
    pub payloads: &'r Payloads,
}

/// What signs a request, and where.
#[derive(Debug)]
pub(super) struct Signer {
    credential: Arc<Credential>,
    header: String,
}

/// Takes the header that stands for a signature off a request to this place.
pub(super) async fn signer(
    wallet: &dyn Wallet,
    using: impl Fn(&str, &str) -> Use,
    seal: &Seal,
    to: Place<'_>,
    headers: &mut Vec<(String, String)>,
) -> Result<Option<Signer>, OutboundError> {
    let places: Vec<(usize, String)> =
        headers.iter().enumerate().filter_map(|(at, (_, value))| Some((at, alias_of(seal, value)?))).collect();
    let (at, alias) = match places.as_slice() {
        [] => return Ok(None),
        [one] => one.clone(),
        _ => return Err(OutboundError::Invalid("a request has one signature, and this one wants several".to_owned())),
    };
    let using = using(&alias, &to.to_string());
    let credential = opening::open(wallet, &using, to).await?;
    let secrets = credential.fields.iter().filter(|(field, _)| !Credential::is_public(field));
    secrets.for_each(|(_, value)| known::learn_for(using.tenant.as_str(), value));
    if !signs(&credential.kind) {
        let text = format!("the credential `{alias}` is a `{}`, which signs nothing", credential.kind);
        return Err(OutboundError::Denied(text));
    }
    let (header, _) = headers.remove(at);
    Ok(Some(Signer { credential, header }))
}

fn signs(kind: &str) -> bool {
    matches!(kind, "hmac" | "s3")
}

/// The credential whose signature a header's value stands for; a text that only looks so stands for none.
fn alias_of(seal: &Seal, value: &str) -> Option<String> {
    let value = value.trim();
    if !placeholder::may_have(value) {
        return None;
    }
    let found = placeholder::find(value).into_iter().next()?;
    (found.at == (0..value.len()) && found.field == SIGNATURE && seal.is_on(&found)).then_some(found.alias)
}

impl Signer {
    /// Signs it, and says what is not to be told when it comes back.
    pub(super) async fn sign(self, leaving: Leaving<'_>) -> Result<Secrets, OutboundError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        // An answer that is compressed could not be masked.
        leaving.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept-encoding"));
        leaving.headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&self.header));
        let made = match self.credential.kind.as_str() {
            "s3" => self.sign_s3(now, leaving)?,
            _ => self.sign_hmac(now, leaving).await?,
        };
        Ok(Secrets::only(Values::new(made.iter().map(String::as_str))))
    }

    async fn sign_hmac(&self, now: u64, leaving: Leaving<'_>) -> Result<Vec<String>, OutboundError> {
        let scheme = hmac::scheme(&self.credential)?;
        let url = parsed(leaving.url)?;
        let facts = hmac::Facts {
            method: leaving.method,
            host: host_of(&url),
            path: path_of(&url),
            timestamp: now,
            body_sha256: body_sha256(leaving.body),
        };
        let body = leaving.body.map(|body| body.clone().stream(leaving.payloads.clone()));
        let secret = self.field("secret")?;
        let made = hmac::sign(&scheme, secret, &facts, body).await;
        let made = made.map_err(|error| OutboundError::Failed(format!("the body cannot be read: {error}")))?;
        leaving.headers.push((self.header.clone(), made.header));
        if let Some(name) = scheme.timestamp_header {
            if is_ours(&name) {
                let text = format!("the credential `{}` wants the time in `{name}`, which the host sets", self.alias());
                return Err(OutboundError::Denied(text));
            }
            leaving.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            leaving.headers.push((name, now.to_string()));
        }
        Ok(made.signature)
    }

    fn sign_s3(&self, now: u64, leaving: Leaving<'_>) -> Result<Vec<String>, OutboundError> {
        if !self.header.eq_ignore_ascii_case("authorization") {
            let text = format!("the signature of `{}` stands in the header `authorization` alone", self.alias());
            return Err(OutboundError::Invalid(text));
        }
        let keys = sigv4::Keys {
            access_key: self.field("access_key")?,
            secret_key: self.field("secret_key")?,
            session_token: self.credential.field("session_token"),
            region: self.credential.field("region").unwrap_or("us-east-1"),
        };
        let mut url = parsed(leaving.url)?;
        let host = host_of(&url);
        let request = sigv4::Request {
            method: leaving.method,
            host: &host,
            url: &mut url,
            headers: leaving.headers,
            // Every body has its digest before it leaves, so there is no need for one that is not signed.
            body_sha256: &body_sha256(leaving.body),
        };
        let signature = sigv4::sign(&keys, now, request)
            .ok_or_else(|| OutboundError::Failed("the clock of this machine tells no date to sign".to_owned()))?;
        *leaving.url = url.to_string();
        Ok(vec![signature])
    }

    fn alias(&self) -> &str {
        &self.credential.alias
    }

    fn field(&self, name: &str) -> Result<&str, OutboundError> {
        let missing = || OutboundError::Denied(format!("the credential `{}` has no field `{name}`", self.alias()));
        self.credential.field(name).ok_or_else(missing)
    }
}

fn parsed(url: &str) -> Result<reqwest::Url, OutboundError> {
    reqwest::Url::parse(url).map_err(|error| OutboundError::Invalid(error.to_string()))
}

/// As the header `host` has it.
fn host_of(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// As the first line of the request has it.
fn path_of(url: &reqwest::Url) -> String {
    url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
}

fn body_sha256(body: Option<&Payload>) -> String {
    body.map_or_else(|| Digest::of(&[]), Payload::digest).hex()
}

#[cfg(test)]
mod tests;
