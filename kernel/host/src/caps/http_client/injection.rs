//! Secrets in a request, and out of its answer.
//!
//! Placeholders in the address, in the values of headers and in a body of text are replaced right before the request
//! is sent, each after a check that its credential may go to the very host and port of this request, encrypted or not. What
//! goes out is known as a secret of the tenant from then on, and what comes back is looked at for all of those, in every way
//! they may be written: a host that echoes a request, this one or an earlier one, tells the guest nothing.
//!
//! Invariants:
//! 1. Nothing is sent while any placeholder of a request cannot be replaced. What has not the tenant's seal on it is none.
//! 2. A value never changes where a request goes or how it is read: it is encoded for the place it stands in, and the
//!    host of the address is compared before and after.
//! 3. Whoever has secrets asks for answers that can be read, whether this request has one in it or not: a body that is
//!    compressed is refused, since what is in it cannot be looked at. An answer without a body is not, whatever it says of one.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use noetl_contract::Tenant;
use noetl_contract::placeholder::{self, Seal};
use noetl_scrub::{Values, known};
use noetl_store::wallet::{Credential, Use, Wallet};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::opening::{self, Place};
use super::{OutboundError, OutboundResponse};
use crate::caps::filling::stands_for_nothing;
use crate::caps::masking::Secrets;
use crate::caps::nesting::{Nesting, escaped};
use crate::caps::secrets::value_of;

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request as far as placeholders can be in it.
pub(super) struct Parts<'r> {
    pub url: &'r mut String,
    pub headers: &'r mut Vec<(String, String)>,
    /// The body, if it was text and small enough to be looked at, and how it is read.
    pub body: Option<(&'r mut String, Form)>,
}

/// How a body is read, and so how a value is written into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Urlencoded,
    Text,
}

impl Form {
    /// Of a media type; nothing when it is no text.
    pub(super) fn of(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (kind, name) = essence.split_once('/')?;
        match name {
            "json" | "x-ndjson" | "ndjson" | "graphql+json" => Some(Self::Json),
            "x-www-form-urlencoded" => Some(Self::Urlencoded),
            "xml" | "yaml" | "x-yaml" | "graphql" | "javascript" | "sql" | "form-data" => Some(Self::Text),
            _ if name.ends_with("+json") => Some(Self::Json),
            _ if kind == "text" || name.ends_with("+xml") || name.ends_with("+yaml") => Some(Self::Text),
            _ => None,
        }
    }

    /// `times`: how often it is escaped in JSON.
    fn encode(self, value: &str, times: u32) -> String {
        match self {
            Self::Text => value.to_owned(),
            Self::Urlencoded => percent(value),
            Self::Json => escaped(value, times),
        }
    }
}

fn percent(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

/// What went out, to be told from other text where an answer sends the client next.
pub(super) struct Sent {
    /// Placeholders, each with its value. What looks for the values is made when there is something to look at.
    pairs: Vec<(String, String)>,
    /// Where placeholders were replaced from.
    credentials: Vec<Arc<Credential>>,
}

/// Replaces all placeholders of a request to this place; nothing is there to mask when there was none.
pub(super) async fn inject(
    wallet: &dyn Wallet,
    using: impl Fn(&str, &str) -> Use,
    seal: &Seal,
    to: Place<'_>,
    parts: Parts<'_>,
) -> Result<Option<Sent>, OutboundError> {
    let aliases = aliases(seal, &parts);
    if aliases.is_empty() {
        return Ok(None);
    }
    let mut opened = Opened { seal, credentials: BTreeMap::new(), replaced: Vec::new() };
    let mut tenant = None;
    for alias in aliases {
        let using = using(&alias, &to.to_string());
        let credential = opening::open(wallet, &using, to).await?;
        tenant = Some(using.tenant);
        opened.credentials.insert(alias, credential);
    }
    let before = origin(parts.url);
    *parts.url = opened.replace(parts.url, Form::Urlencoded)?;
    if origin(parts.url) != before {
        return Err(OutboundError::Invalid("a secret cannot be a part of the host in an address".to_owned()));
    }
    for (_, value) in parts.headers.iter_mut() {
        *value = opened.replace(value, Form::Text)?;
    }
    parts.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept-encoding"));
    if let Some((body, form)) = parts.body {
        *body = opened.replace(body, form)?;
    }
    Ok(tenant.map(|tenant| opened.sent(&tenant)))
}

fn aliases(seal: &Seal, parts: &Parts<'_>) -> Vec<String> {
    let headers = parts.headers.iter().map(|(_, value)| value.as_str());
    let texts =
        std::iter::once(parts.url.as_str()).chain(headers).chain(parts.body.iter().map(|(body, _)| body.as_str()));
    let found = texts.filter(|text| placeholder::may_have(text)).flat_map(placeholder::find);
    let mut aliases: Vec<String> = found.filter(|found| seal.is_on(found)).map(|found| found.alias).collect();
    aliases.sort_unstable();
    aliases.dedup();
    aliases
}

/// Scheme, host and port; nothing of an address that is none.
fn origin(url: &str) -> Option<(String, String, Option<u16>)> {
    let url = reqwest::Url::parse(url).ok()?;
    Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
}

/// The credentials of one request.
struct Opened<'s> {
    seal: &'s Seal,
    credentials: BTreeMap<String, Arc<Credential>>,
    /// Secrets that went out, each with its placeholder.
    replaced: Vec<(String, String)>,
}

impl Opened<'_> {
    fn replace(&mut self, text: &str, form: Form) -> Result<String, OutboundError> {
        if !placeholder::may_have(text) {
            return Ok(text.to_owned());
        }
        let (mut filled, mut copied, seal) = (String::with_capacity(text.len()), 0, self.seal);
        let mut nesting = Nesting::default();
        // What is not sealed is a text that happens to look so, and is sent as it is.
        for found in placeholder::find(text).into_iter().filter(|found| seal.is_on(found)) {
            let (alias, field) = (&found.alias, &found.field);
            let value = self.credentials.get(alias).and_then(|credential| value_of(credential, field));
            let value = value.ok_or_else(|| OutboundError::Denied(stands_for_nothing(alias, field)))?;
            let (before, after) = (&text[copied..found.at.start], &text[found.at.end..]);
            nesting.pass(before);
            filled.push_str(before);
            filled.push_str(&form.encode(&value, nesting.times(after)));
            copied = found.at.end;
            self.note(alias, field, value);
        }
        filled.push_str(&text[copied..]);
        Ok(filled)
    }

    /// Remembers what went out. Fields that may be shown are no secrets, and names are in many answers.
    fn note(&mut self, alias: &str, field: &str, value: String) {
        if Credential::is_public(field) {
            return;
        }
        let placeholder = self.seal.write(alias, field);
        if self.replaced.iter().all(|(known, _)| *known != placeholder) {
            self.replaced.push((placeholder, value));
        }
    }

    fn sent(self, tenant: &Tenant) -> Sent {
        let mut pairs = self.replaced;
        // A part of what went out may be told alone: the password of `user:password`.
        for (alias, credential) in &self.credentials {
            let secrets = credential.fields.iter().filter(|(field, _)| !Credential::is_public(field));
            pairs.extend(secrets.map(|(field, value)| (self.seal.write(alias, field), value.clone())));
        }
        pairs.iter().for_each(|(_, value)| known::learn_for(tenant.as_str(), value));
        Sent { pairs, credentials: self.credentials.into_values().collect() }
    }
}

impl Sent {
    /// The credentials whose values went out.
    pub(super) fn credentials(&self) -> &[Arc<Credential>] {
        &self.credentials
    }

    /// Puts the placeholders back to where an answer sends the client next.
    fn put_back(&self, headers: &mut [(String, String)]) {
        let mut next = headers.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("location")).peekable();
        if next.peek().is_none() {
            return;
        }
        let values = Values::new(self.pairs.iter().map(|(_, value)| value.as_str()));
        for (_, to) in next {
            *to = values.replace(to, |place| &self.pairs[place].0).into_owned();
        }
    }
}

/// Without the values.
impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placeholders: Vec<&String> = self.pairs.iter().map(|(placeholder, _)| placeholder).collect();
        f.debug_struct("Sent").field("placeholders", &placeholders).finish_non_exhaustive()
    }
}

/// An error without secrets: clients like to name the whole address.
pub(super) fn mask_error(secrets: &Secrets, error: OutboundError) -> OutboundError {
    match error {
        OutboundError::Invalid(text) => OutboundError::Invalid(secrets.masked(text)),
        OutboundError::Denied(text) => OutboundError::Denied(secrets.masked(text)),
        OutboundError::Failed(text) => OutboundError::Failed(secrets.masked(text)),
        OutboundError::Timeout => OutboundError::Timeout,
    }
}

/// An answer without secrets. Where it sends the client next has the placeholders of what went out again, so that a redirect
/// can be followed; whether its host may have them is checked like the first time.
pub(super) fn mask(secrets: &[Secrets], sent: Option<&Sent>, mut answer: OutboundResponse) -> OutboundResponse {
    if let Some(sent) = sent {
        sent.put_back(&mut answer.headers);
    }
    if secrets.iter().any(|secrets| !secrets.are_none()) {
        answer = unpacked(answer);
    }
    for secrets in secrets {
        secrets.stand_in_pairs(&mut answer.headers);
        answer.body = secrets.stand_in_pieces(answer.body);
    }
    answer
}

/// An answer that can be masked: of one that is packed no byte is read. Whether there is one shows when the body is read, and
/// not in what the answer says: a request with HEAD is told the encoding of what it does not get.
fn unpacked(mut answer: OutboundResponse) -> OutboundResponse {
    let packed = |(name, value): &&(String, String)| name.eq_ignore_ascii_case("content-encoding") && !is_plain(value);
    let Some((_, encoding)) = answer.headers.iter().find(packed) else { return answer };
    let text = format!("the answer is encoded as `{encoding}`, so that secrets in it cannot be masked");
    let refused = move |piece: io::Result<Bytes>| match piece {
        Ok(piece) if !piece.is_empty() => Err(io::Error::other(text.clone())),
        piece => piece,
    };
    answer.body = answer.body.map(refused).boxed();
    answer
}

/// Whether a body with this encoding is what it looks like. `aws-chunked` is one of requests, which stores of objects repeat
/// for the object.
fn is_plain(encoding: &str) -> bool {
    const PLAIN: [&str; 3] = ["", "identity", "aws-chunked"];
    encoding.split(',').all(|one| PLAIN.iter().any(|plain| one.trim().eq_ignore_ascii_case(plain)))
}

#[cfg(test)]
#[path = "injection_tests.rs"]
mod tests;
