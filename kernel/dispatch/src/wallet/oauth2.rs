//! Tokens of the grant `client_credentials`: fetched when the first one is needed, kept, and renewed before they end.
//!
//! Invariants:
//! 1. For one credential there is one request at a time; whoever else needs its token waits for that one's answer.
//! 2. A token belongs to the revision of the credential it was fetched with: a changed secret takes effect at once.
//! 3. What the other side says is bounded, and of its errors only the code of the standard is repeated.
//! 4. A failure is told to whoever waited for that very request, and kept for nobody else: the next use asks again.
//!
//! A token is renewed while it is still good for a while, so when that fails it is used until its end, and the issuer is left alone
//! for a moment. One that is refused where it was sent is given up at once ([`Tokens::spent`]): an issuer can take it back.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::StreamExt as _;
use noetl_contract::Tenant;
use noetl_host::caps::http_client::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use noetl_store::wallet::Credential;
use parking_lot::Mutex;
use serde::Deserialize;

pub const KIND: &str = "oauth2";

const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer of a token's issuer.
const LARGEST: usize = 64 << 10;
/// How long a token is taken to be good whose issuer does not say.
const UNSAID: Duration = Duration::from_secs(300);
/// A token is renewed when this is left of it, or a fifth of its life if that is less.
const MARGIN: Duration = Duration::from_secs(60);

/// How long an issuer that did not renew a good token is not asked again.
const PAUSE: Duration = Duration::from_secs(5);

/// Why there is no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenError {
    /// The same request would fail again: a wrong secret, an address out of reach.
    Refused(String),
    /// It may not: no answer, or one that says "later".
    Unreachable(String),
}

impl TokenError {
    fn reason(&self) -> &str {
        match self {
            Self::Refused(reason) | Self::Unreachable(reason) => reason,
        }
    }
}

/// A token, and until when.
struct Token {
    revision: u64,
    text: zeroize::Zeroizing<String>,
    renew: Instant,
    ends: Instant,
}

/// How the newest request ended that gave no token.
struct Failed {
    revision: u64,
    at: Instant,
    error: TokenError,
}

#[derive(Default)]
struct Place {
    token: Option<Token>,
    failed: Option<Failed>,
}

/// The place of one credential's token; held while it is fetched.
type Slot = Arc<tokio::sync::Mutex<Place>>;

pub struct Tokens {
    http: Arc<dyn Outbound>,
    slots: Mutex<HashMap<(Tenant, String), Slot>>,
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Option<Seconds>,
}

/// Some issuers write the number as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
struct Refused {
    error: String,
}

impl Tokens {
    pub fn new(http: Arc<dyn Outbound>) -> Self {
        Self { http, slots: Mutex::new(HashMap::new()) }
    }

    pub fn forget(&self, tenant: &Tenant, alias: &str) {
        self.slots.lock().remove(&(tenant.clone(), alias.to_owned()));
    }

    /// The credential as a driver gets it: with a token and without what fetched it; and how long that one is good, if it
    /// was fetched just now.
    pub async fn token(
        &self,
        tenant: &Tenant,
        credential: &Credential,
    ) -> Result<(Credential, Option<Duration>), TokenError> {
        let came = Instant::now();
        let slot = self.slots.lock().entry((tenant.clone(), credential.alias.clone())).or_default().clone();
        let mut place = slot.lock().await;
        let Place { token, failed } = &mut *place;
        let mut new_for = None;
        token.take_if(|token| token.revision != credential.revision);
        if token.as_ref().is_none_or(|token| token.renew <= Instant::now()) {
            let waited_for =
                failed.as_ref().filter(|failed| failed.revision == credential.revision && failed.at >= came);
            let waited_for = waited_for.map(|failed| failed.error.clone());
            let asks = waited_for.is_none();
            let fetched = match waited_for {
                Some(error) => Err(error),
                None => self.fetch(tenant, credential).await,
            };
            // The issuer may have taken long to fail: what was good before may have ended, and the pause begins now.
            let now = Instant::now();
            match fetched {
                Ok(new) => {
                    new_for = Some(new.ends.saturating_duration_since(now));
                    (*token, *failed) = (Some(new), None);
                }
                Err(error) => match token.as_mut().filter(|token| token.ends > now) {
                    Some(held) => {
                        let (alias, reason) = (&credential.alias, error.reason());
                        tracing::warn!(alias, reason, "a token could not be renewed and is used to its end");
                        held.renew = now + PAUSE;
                    }
                    None => {
                        // Its time is that of the request: one that is only passed on would be shared for ever.
                        if asks {
                            let (revision, at) = (credential.revision, now);
                            *failed = Some(Failed { revision, at, error: error.clone() });
                        }
                        return Err(error);
                    }
                },
            }
        }
        let no_token = || TokenError::Unreachable("no token was fetched".to_owned());
        let token = token.as_ref().ok_or_else(no_token)?;
        let public = credential.fields.iter().filter(|(name, _)| Credential::is_public(name));
        let mut fields: BTreeMap<String, String> = public.map(|(name, value)| (name.clone(), value.clone())).collect();
        fields.insert("token".to_owned(), token.text.to_string());
        let credential = Credential {
            alias: credential.alias.clone(),
            kind: credential.kind.clone(),
            fields,
            hosts: credential.hosts.clone(),
            revision: credential.revision,
        };
        Ok((credential, new_for))
    }

    /// Gives up a token that was refused where it was sent, unless there is a newer one already.
    pub async fn spent(&self, tenant: &Tenant, credential: &Credential) {
        let slot = self.slots.lock().get(&(tenant.clone(), credential.alias.clone())).cloned();
        if let (Some(slot), Some(refused)) = (slot, credential.field("token")) {
            slot.lock().await.token.take_if(|token| token.text.as_str() == refused);
        }
    }

    async fn fetch(&self, tenant: &Tenant, credential: &Credential) -> Result<Token, TokenError> {
        let asked = Instant::now();
        let request = request(tenant, credential).map_err(TokenError::Refused)?;
        let answer = self.http.send(request).await.map_err(|error| match error {
            OutboundError::Invalid(reason) => TokenError::Refused(format!("`token_url` cannot be asked: {reason}")),
            OutboundError::Denied(reason) => TokenError::Refused(format!("`token_url` is out of reach: {reason}")),
            OutboundError::Timeout => {
                TokenError::Unreachable(format!("`token_url` did not answer within {} s", TIMEOUT.as_secs()))
            }
            OutboundError::Failed(reason) => TokenError::Unreachable(format!("`token_url` did not answer: {reason}")),
        })?;
        let status = answer.status;
        let body = whole(answer).await.map_err(TokenError::Unreachable)?;
        match status {
            200..300 => {}
            408 | 429 | 500.. => return Err(TokenError::Unreachable(refusal(status, &body))),
            _ => return Err(TokenError::Refused(refusal(status, &body))),
        }
        // Without the parser's words, which could repeat a part of the token.
        let granted: Granted = serde_json::from_slice(&body).map_err(|_| {
            TokenError::Refused(format!("`token_url` answered {status} without an `access_token` in JSON"))
        })?;
        let life = match granted.expires_in {
            Some(Seconds::Number(seconds)) => Some(seconds),
            Some(Seconds::Text(text)) => text.trim().parse().ok(),
            None => None,
        };
        let life = life.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(UNSAID);
        // No clock reaches further than this, whatever the other side says.
        let life = life.min(Duration::from_secs(30 * 86_400));
        let ends = asked + life;
        let renew = ends - MARGIN.min(life / 5);
        Ok(Token { revision: credential.revision, text: granted.access_token.into(), renew, ends })
    }
}

fn request(tenant: &Tenant, credential: &Credential) -> Result<OutboundRequest, String> {
    let field = |name: &str| credential.field(name).ok_or_else(|| format!("it has no `{name}`: make it again"));
    let (id, secret) = (field("client_id")?, field("client_secret")?);
    let mut form = vec![("grant_type", "client_credentials")];
    form.extend(["scope", "audience"].into_iter().filter_map(|name| Some((name, credential.field(name)?))));
    let mut headers = vec![
        ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ("accept".to_owned(), "application/json".to_owned()),
    ];
    if credential.field("auth_style") == Some("basic") {
        let encoded = |text: &str| serde_urlencoded::to_string([("", text)]).map(|pair| pair[1..].to_owned());
        let (id, secret) = (encoded(id).map_err(|e| e.to_string())?, encoded(secret).map_err(|e| e.to_string())?);
        headers.push(("authorization".to_owned(), format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")))));
    } else {
        form.extend([("client_id", id), ("client_secret", secret)]);
    }
    let mut url = field("token_url")?.to_owned();
    if let Some(query) = credential.field("token_query") {
        url = format!("{url}?{query}");
    }
    let body = Bytes::from(serde_urlencoded::to_string(form).map_err(|error| error.to_string())?);
    Ok(OutboundRequest {
        tenant: tenant.clone(),
        method: "POST".to_owned(),
        url,
        headers,
        body: Some((body.len() as u64, futures::stream::iter([Ok(body)]).boxed())),
        timeout: TIMEOUT,
        verified: true,
    })
}

async fn whole(mut answer: OutboundResponse) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = answer.body.next().await {
        body.extend_from_slice(&piece.map_err(|error| format!("the answer of `token_url` broke off: {error}"))?);
        if body.len() > LARGEST {
            return Err(format!("`token_url` answered with more than {LARGEST} bytes"));
        }
    }
    Ok(body)
}

/// The code that the standard has for it, if it is one: other text could be anything, the secret included.
fn refusal(status: u16, body: &[u8]) -> String {
    let code = serde_json::from_slice::<Refused>(body).map(|refused| refused.error).unwrap_or_default();
    let known = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    ];
    match known.into_iter().find(|known| *known == code) {
        Some("invalid_client") => {
            format!(
                "`token_url` answered {status} (invalid_client): check `client_id`, `client_secret` and `auth_style`"
            )
        }
        Some(code) => format!("`token_url` answered {status} ({code})"),
        None => format!("`token_url` answered {status}"),
    }
}
