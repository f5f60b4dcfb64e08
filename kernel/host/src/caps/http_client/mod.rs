//! `noetl:http-client`: requests to the hosts a plugin may reach.
//!
//! Two checks, both needed: the *name* must match the manifest's `http.allow`, and every *address* it
//! resolves to must be one the operator permits ([`egress`](crate::egress)). The second runs inside the resolver
//! that the connection itself uses. Redirects are not followed here: whoever follows one sends a request of its
//! own, which is checked like the first. Bodies are streamed in both directions, and the answer is bounded like any
//! payload. Placeholders of secrets are replaced on the way out (`injection`), what a credential signs is signed last
//! (`signing`), and on the way in every answer is without the secrets of the tenant, whether this request had one in it or not.
//!
//! A token that the wallet fetched and the other side answers with 401 is fetched anew, and the request sent once more: a
//! token can be taken back before its time. Its body is still there, and a request that was not let in has done nothing.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt};
use noetl_contract::{Tenant, placeholder};
use wasmtime::component::Resource;

use super::Drivers;
use super::filling::{self, Refused};
use super::masking::Secrets;
use super::payload::{Payload, WriteError, Writer};
use crate::bindings::noetl::http_client::http_client as wit;
use crate::state::{CallState, Identity};

mod direct;
mod injection;
mod opening;
mod signing;

pub use direct::Direct;
use injection::{Form, Parts, Sent, inject, mask, mask_error};
use opening::Place;
pub(crate) use signing::SIGNATURE;
use signing::{Leaving, signer};

const MOST_HEADERS: usize = 100;

/// A request that may take all of the call's time may take a little more: so that the call ends with its own time, instead
/// of being told just before that it waited too long.
const AFTER_THE_CALL: Duration = Duration::from_secs(1);

/// A request on its way out; already checked against the plugin's allowed hosts.
pub struct OutboundRequest {
    /// Whose connection it takes.
    pub tenant: Tenant,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<(u64, BoxStream<'static, io::Result<Bytes>>)>,
    pub timeout: Duration,
    /// Whether the server's certificate has to be good.
    pub verified: bool,
}

/// An answer whose body is still to be read.
pub struct OutboundResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: BoxStream<'static, io::Result<Bytes>>,
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutboundError {
    Invalid(String),
    Denied(String),
    Timeout,
    /// Begins with what failed, where that is known: `dns: ...`, `connect: ...`, `tls: ...`.
    Failed(String),
}

/// The way out. The server's is [`Direct`]; a test harness answers from a list.
pub trait Outbound: Send + Sync {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>>;
}

/// Headers that decide where a request goes and where it ends. A guest that could set them could speak to
/// another host behind the same address, or smuggle a second request.
fn is_ours(name: &str) -> bool {
    const OURS: [&str; 10] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
    ];
    OURS.iter().any(|ours| name.trim().eq_ignore_ascii_case(ours))
}

/// Says to the host how the connection is to be made. It is a header because a request has no other place for it that
/// components of before and after agree on; it never leaves the host.
const TLS_WORD: &str = "noetl-tls";

/// Takes a header that is meant for the host off a request.
fn take_word(headers: &mut Vec<(String, String)>, name: &str) -> Option<String> {
    let at = headers.iter().position(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let (_, word) = headers.remove(at);
    headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
    Some(word)
}

impl From<OutboundError> for wit::HttpError {
    fn from(error: OutboundError) -> Self {
        match error {
            OutboundError::Invalid(text) => wit::HttpError::InvalidRequest(text),
            OutboundError::Denied(text) => wit::HttpError::Denied(text),
            OutboundError::Timeout => wit::HttpError::Timeout,
            OutboundError::Failed(text) => wit::HttpError::Failed(text),
        }
    }
}

impl CallState {
    /// Time left of the call's own.
    pub(crate) fn time_left(&self) -> Duration {
        Duration::from_millis(self.meter.limits().wall_ms).saturating_sub(self.started.elapsed())
    }

    /// A request of the guest's, if it may be sent as it is.
    fn draft(&mut self, request: wit::Request) -> wasmtime::Result<Result<Draft, wit::HttpError>> {
        let body = request.body.map(|body| self.take_in(body)).transpose()?;
        let (host, port) = match reqwest::Url::parse(&request.url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => {
                match (url.host_str(), url.port_or_known_default()) {
                    (Some(host), Some(port)) => (host.to_ascii_lowercase(), port),
                    _ => return Ok(Err(wit::HttpError::InvalidRequest("the address has no host".into()))),
                }
            }
            Ok(url) => {
                return Ok(Err(wit::HttpError::InvalidRequest(format!("`{}` is not http or https", url.scheme()))));
            }
            Err(error) => return Ok(Err(wit::HttpError::InvalidRequest(format!("the address: {error}")))),
        };
        if !self.http.allows(&host, port) {
            let text = format!("`{host}:{port}` is not among the hosts plugin.toml allows (`http.allow`)");
            return Ok(Err(wit::HttpError::Denied(text)));
        }
        if request.headers.len() > MOST_HEADERS {
            return Ok(Err(wit::HttpError::InvalidRequest(format!("more than {MOST_HEADERS} headers"))));
        }
        if let Some((name, _)) = request.headers.iter().find(|(name, _)| is_ours(name)) {
            return Ok(Err(wit::HttpError::InvalidRequest(format!("header `{name}` is set by the host alone"))));
        }
        let mut headers = request.headers;
        let verified = match take_word(&mut headers, TLS_WORD) {
            None => true,
            Some(word) if word == "unverified" => false,
            Some(word) => {
                let text = format!("header `{TLS_WORD}` is a word to the host: `unverified`, and not `{word}`");
                return Ok(Err(wit::HttpError::InvalidRequest(text)));
            }
        };
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("idempotency-key")) {
            // What only reads is not counted: how often it is done may differ when the call is made again.
            let reads =
                ["GET", "HEAD", "OPTIONS", "TRACE"].iter().any(|read| read.eq_ignore_ascii_case(&request.method));
            let key = if reads { self.identity.idempotency_key.clone() } else { self.next_key() };
            headers.push(("idempotency-key".to_owned(), key));
        }
        let asked = request.timeout_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)));
        Ok(Ok(Draft {
            host,
            port,
            method: request.method,
            url: request.url,
            headers,
            body,
            began: Instant::now(),
            timeout: asked.min(self.time_left() + AFTER_THE_CALL),
            verified,
        }))
    }
}

/// A request that was checked, with placeholders in the place of secrets.
struct Draft {
    host: String,
    port: u16,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Payload>,
    began: Instant,
    timeout: Duration,
    verified: bool,
}

impl Draft {
    /// Time left of the request's own.
    fn time_left(&self) -> Duration {
        self.timeout.saturating_sub(self.began.elapsed())
    }

    /// What is done for the request before it leaves: a wallet that fetches a token waits for others.
    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, OutboundError> {
        tokio::time::timeout(self.time_left(), work).await.map_err(|_| OutboundError::Timeout)
    }
}

/// A request ready to leave, and the secrets in it.
struct Outgoing {
    request: OutboundRequest,
    sent: Option<Sent>,
    /// Its signature, if it has one.
    signature: Option<Secrets>,
}

/// Puts the secrets into a request.
async fn fill(drivers: &Drivers, identity: &Identity, draft: &Draft) -> Result<Outgoing, OutboundError> {
    let using = |alias: &str, target: &str| identity.using(alias, target);
    let (wallet, seal) = (&*drivers.wallet, drivers.seals.of(&identity.tenant));
    let to = Place::of(&draft.url, &draft.host, draft.port);
    let (mut url, mut headers) = (draft.url.clone(), draft.headers.clone());
    let signer = signer(wallet, using, &seal, to, &mut headers).await?;
    let mut text = match &draft.body {
        Some(body) => readable(body, &headers, &drivers.payloads, &seal).await?,
        None => None,
    };
    let parts = Parts { url: &mut url, headers: &mut headers, body: text.as_mut().map(|(text, form)| (text, *form)) };
    let sent = inject(wallet, using, &seal, to, parts).await?;
    if !Secrets::of(&identity.tenant, Vec::new()).are_none() {
        // What is packed cannot be masked, so it is not asked for.
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept-encoding"));
    }
    let body = match (&draft.body, text) {
        (Some(body), Some((text, _))) if sent.is_some() => Some(Payload::memory(text.into(), body.media_type())),
        (body, _) => body.clone(),
    };
    let signature = match signer {
        Some(signer) => {
            let (method, url, headers) = (draft.method.as_str(), &mut url, &mut headers);
            let leaving = Leaving { method, url, headers, body: body.as_ref(), payloads: &drivers.payloads };
            Some(signer.sign(leaving).await?)
        }
        None => None,
    };
    let request = OutboundRequest {
        tenant: identity.tenant.clone(),
        method: draft.method.clone(),
        url,
        headers,
        body: body.map(|body| (body.size(), body.stream(drivers.payloads.clone()))),
        timeout: draft.time_left(),
        verified: draft.verified,
    };
    Ok(Outgoing { request, sent, signature })
}

impl From<Refused> for OutboundError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Denied(text) => Self::Denied(text),
            Refused::Unavailable(text) => Self::Failed(text),
        }
    }
}

/// Sends a request; its answer has no secret in it.
async fn exchange(drivers: &Drivers, identity: &Identity, draft: &Draft) -> Result<OutboundResponse, OutboundError> {
    let mut renewed = false;
    loop {
        let known = |preferred: Vec<String>| Secrets::of(&identity.tenant, preferred);
        let filled = draft.in_time(fill(drivers, identity, draft)).await.unwrap_or_else(Err);
        let Outgoing { request, sent, signature } = filled.map_err(|error| mask_error(&known(Vec::new()), error))?;
        let answer = drivers.http.send(request).await;
        if !renewed && answer.as_ref().is_ok_and(|answer| answer.status == 401) {
            let credentials = sent.iter().flat_map(Sent::credentials);
            let fetched: Vec<_> =
                credentials.filter(|credential| drivers.wallet.is_fetched(credential)).cloned().collect();
            if !fetched.is_empty() {
                // Its slot is one that the fetch of a token may be waiting for.
                drop(answer);
                for credential in &fetched {
                    draft.in_time(drivers.wallet.spent(&identity.tenant, credential)).await?;
                }
                renewed = true;
                continue;
            }
        }
        let preferred = sent.iter().flat_map(Sent::credentials).map(|credential| credential.alias.clone()).collect();
        let secrets: Vec<Secrets> = std::iter::once(known(preferred)).chain(signature).collect();
        let answer = answer.map(|answer| mask(&secrets, sent.as_ref(), answer));
        return answer.map_err(|error| secrets.iter().fold(error, |error, secrets| mask_error(secrets, error)));
    }
}

/// The text of a body that can have placeholders in it, and how it is read. In a body that is not rewritten there is none:
/// it would be sent as data.
async fn readable(
    body: &Payload,
    headers: &[(String, String)],
    payloads: &noetl_store::payloads::Payloads,
    seal: &placeholder::Seal,
) -> Result<Option<(String, Form)>, OutboundError> {
    let Some(bytes) = filling::looked_through(seal, body, payloads).await? else { return Ok(None) };
    let stated = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let media_type = stated.map_or_else(|| body.media_type(), |(_, value)| value.as_str());
    match (Form::of(media_type), std::str::from_utf8(&bytes)) {
        (Some(form), Ok(text)) => Ok(placeholder::may_have(text).then(|| (text.to_owned(), form))),
        _ => {
            filling::have_none(seal, &bytes)?;
            Ok(None)
        }
    }
}

impl wit::Host for CallState {
    async fn send(&mut self, request: wit::Request) -> wasmtime::Result<Result<wit::Response, wit::HttpError>> {
        if self.tape.is_live() { self.send_live(request).await } else { self.send_taped(request).await }
    }
}

impl CallState {
    pub(crate) async fn send_live(
        &mut self,
        request: wit::Request,
    ) -> wasmtime::Result<Result<wit::Response, wit::HttpError>> {
        let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.charge(request.url.len() + request.method.len() + headers)?;
        let draft = match self.draft(request)? {
            Ok(draft) => draft,
            Err(error) => return Ok(Err(error)),
        };
        let (drivers, identity) = (self.drivers.clone(), self.identity.clone());
        let answer = match exchange(&drivers, &identity, &draft).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error.into())),
        };
        let media_type = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let media_type = media_type.map(|(_, value)| value.clone()).unwrap_or_default();
        let writer = Writer::new(media_type, drivers.max_payload).of(&self.temporary);
        let body = match collect(writer, answer.body, &drivers.payloads).await {
            Ok(body) => body,
            Err(WriteError::TooLarge(size)) => return Ok(Err(wit::HttpError::TooLarge(size))),
            Err(WriteError::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
                return Ok(Err(wit::HttpError::Timeout));
            }
            Err(WriteError::Io(error)) => return Ok(Err(wit::HttpError::Failed(error.to_string()))),
        };
        let mut headers = answer.headers;
        tell_length(&mut headers, body.size());
        let body: Resource<Payload> = self.hand_out(body)?;
        Ok(Ok(wit::Response { status: answer.status, headers, body }))
    }
}

/// A body that was masked has another length than the server said. One that was not sent, as of HEAD, has its own.
fn tell_length(headers: &mut [(String, String)], size: u64) {
    if size > 0
        && let Some((_, length)) = headers.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
    {
        *length = size.to_string();
    }
}

async fn collect(
    mut writer: Writer,
    mut body: BoxStream<'static, io::Result<Bytes>>,
    payloads: &noetl_store::payloads::Payloads,
) -> Result<Payload, WriteError> {
    while let Some(chunk) = body.next().await {
        writer.write(payloads, &chunk.map_err(WriteError::Io)?).await?;
    }
    writer.finish().await.map_err(WriteError::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_request_waits_for_before_it_leaves_counts_as_its_time() {
        let draft = |timeout| Draft {
            host: "a".to_owned(),
            port: 80,
            method: "GET".to_owned(),
            url: "http://a/".to_owned(),
            headers: Vec::new(),
            body: None,
            began: Instant::now(),
            timeout,
            verified: true,
        };
        let never = draft(Duration::ZERO).in_time(futures::future::pending::<()>()).await;
        assert_eq!(never, Err(OutboundError::Timeout));
        assert_eq!(draft(Duration::from_secs(60)).in_time(async { 1 }).await, Ok(1));
    }
}
