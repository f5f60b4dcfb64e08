//! Secrets in a request, and out of its answer.
//!
//! Placeholders in the address, in the values of headers and in a body of text are replaced right before the request
//! is sent, each after a check that its credential may go to the very host and port of this request, encrypted or not.
//! What comes back is masked by what went out, in every way it may be written: a host that echoes a request tells the
//! guest nothing.
//!
//! Invariants:
//! 1. Nothing is sent while any placeholder of a request cannot be replaced.
//! 2. A value never changes where a request goes or how it is read: it is encoded for the place it stands in, and the
//!    host of the address is compared before and after.
//! 3. A request with a secret asks for an answer that can be read: one that is compressed is refused, since what is in it
//!    cannot be masked.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use noetl_contract::placeholder;
use noetl_scrub::{Stream, Values};
use noetl_store::wallet::{Credential, Use, Wallet, WalletError, Way};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{OutboundError, OutboundResponse};
use crate::caps::secrets::value_of;

/// Larger bodies are sent as they are.
pub(super) const LARGEST_BODY: u64 = 1 << 20;

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

    fn encode(self, value: &str) -> String {
        match self {
            Self::Text => value.to_owned(),
            Self::Urlencoded => percent(value),
            Self::Json => {
                let quoted = serde_json::Value::from(value).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
        }
    }
}

fn percent(value: &str) -> String {
    utf8_percent_encode(value, UNRESERVED).to_string()
}

/// What went out, to be masked in what comes back.
#[derive(Debug)]
pub(super) struct Sent {
    values: Arc<Values>,
    /// The placeholder of each value.
    placeholders: Vec<String>,
}

/// Replaces all placeholders of a request to this host and port; nothing is there to mask when there was none.
pub(super) async fn inject(
    wallet: &dyn Wallet,
    using: impl Fn(&str, &str) -> Use,
    host: &str,
    port: u16,
    parts: Parts<'_>,
) -> Result<Option<Sent>, OutboundError> {
    let aliases = aliases(&parts);
    if aliases.is_empty() {
        return Ok(None);
    }
    let target = format!("{host}:{port}");
    let way = Way::of(parts.url);
    let mut opened = Opened { credentials: BTreeMap::new(), replaced: Vec::new() };
    for alias in aliases {
        let credential = wallet.open(&using(&alias, &target)).await.map_err(refused)?;
        if !credential.may_go_to(host.trim_matches(['[', ']']), port, way) {
            let target = if way == Way::Http { format!("http://{target}") } else { target };
            return Err(refused(WalletError::NotForThere { alias, target }));
        }
        opened.credentials.insert(alias, credential);
    }
    let before = origin(parts.url);
    *parts.url = opened.replace(parts.url, percent)?;
    if origin(parts.url) != before {
        return Err(OutboundError::Invalid("a secret cannot be a part of the host in an address".to_owned()));
    }
    for (_, value) in parts.headers.iter_mut() {
        *value = opened.replace(value, str::to_owned)?;
    }
    parts.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("accept-encoding"));
    if let Some((body, form)) = parts.body {
        *body = opened.replace(body, |value| form.encode(value))?;
    }
    Ok(Some(opened.sent()))
}

fn aliases(parts: &Parts<'_>) -> Vec<String> {
    let headers = parts.headers.iter().map(|(_, value)| value.as_str());
    let texts =
        std::iter::once(parts.url.as_str()).chain(headers).chain(parts.body.iter().map(|(body, _)| body.as_str()));
    let mut aliases: Vec<String> =
        texts.filter(|text| placeholder::may_have(text)).flat_map(placeholder::find).map(|found| found.alias).collect();
    aliases.sort_unstable();
    aliases.dedup();
    aliases
}

/// Scheme, host and port; nothing of an address that is none.
fn origin(url: &str) -> Option<(String, String, Option<u16>)> {
    let url = reqwest::Url::parse(url).ok()?;
    Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
}

fn refused(error: WalletError) -> OutboundError {
    let text = error.to_string();
    match error {
        WalletError::Unavailable(_) => OutboundError::Failed(text),
        WalletError::Unknown { .. } | WalletError::NotForThere { .. } | WalletError::Closed { .. } => {
            OutboundError::Denied(text)
        }
    }
}

/// The credentials of one request.
struct Opened {
    credentials: BTreeMap<String, Arc<Credential>>,
    /// Secrets that went out, each with its placeholder.
    replaced: Vec<(String, String)>,
}

impl Opened {
    fn replace(&mut self, text: &str, encode: impl Fn(&str) -> String) -> Result<String, OutboundError> {
        if !placeholder::may_have(text) {
            return Ok(text.to_owned());
        }
        let (mut filled, mut copied) = (String::with_capacity(text.len()), 0);
        for found in placeholder::find(text) {
            let (alias, field) = (&found.alias, &found.field);
            let value = self.credentials.get(alias).and_then(|credential| value_of(credential, field));
            let value = value
                .ok_or_else(|| OutboundError::Denied(format!("the credential `{alias}` has no field `{field}`")))?;
            filled.push_str(&text[copied..found.at.start]);
            filled.push_str(&encode(&value));
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
        let placeholder = placeholder::write(alias, field);
        if self.replaced.iter().all(|(known, _)| *known != placeholder) {
            self.replaced.push((placeholder, value));
        }
    }

    fn sent(self) -> Sent {
        let mut pairs = self.replaced;
        // A part of what went out may be told alone: the password of `user:password`.
        for (alias, credential) in &self.credentials {
            let secrets = credential.fields.iter().filter(|(field, _)| !Credential::is_public(field));
            pairs.extend(secrets.map(|(field, value)| (placeholder::write(alias, field), value.clone())));
        }
        let values = Arc::new(Values::new(pairs.iter().map(|(_, value)| value.as_str())));
        Sent { values, placeholders: pairs.into_iter().map(|(placeholder, _)| placeholder).collect() }
    }
}

impl Sent {
    /// An error without what went out: clients like to name the whole address.
    pub(super) fn mask_error(&self, error: OutboundError) -> OutboundError {
        let mask = |text: String| self.values.mask(&text).into_owned();
        match error {
            OutboundError::Invalid(text) => OutboundError::Invalid(mask(text)),
            OutboundError::Denied(text) => OutboundError::Denied(mask(text)),
            OutboundError::Failed(text) => OutboundError::Failed(mask(text)),
            OutboundError::Timeout => OutboundError::Timeout,
        }
    }

    /// An answer without what went out. Where it sends the client next has the placeholders again, so that a redirect
    /// can be followed; whether its host may have them is checked like the first time.
    pub(super) fn mask(self, mut answer: OutboundResponse) -> Result<OutboundResponse, OutboundError> {
        let compressed = |(name, value): &(String, String)| {
            name.eq_ignore_ascii_case("content-encoding") && !value.trim().eq_ignore_ascii_case("identity")
        };
        if let Some((_, encoding)) = answer.headers.iter().find(|header| compressed(header)) {
            let text = format!("the answer is encoded as `{encoding}`, so that secrets in it cannot be masked");
            return Err(self.mask_error(OutboundError::Failed(text)));
        }
        for (name, value) in &mut answer.headers {
            *value = match name.eq_ignore_ascii_case("location") {
                true => self.values.replace(value, |place| &self.placeholders[place]).into_owned(),
                false => self.values.mask(value).into_owned(),
            };
        }
        // The body may have another length afterwards.
        answer.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
        answer.body = masked(answer.body, self.values);
        Ok(answer)
    }
}

fn masked(body: BoxStream<'static, io::Result<Bytes>>, values: Arc<Values>) -> BoxStream<'static, io::Result<Bytes>> {
    if values.is_empty() {
        return body;
    }
    let masking = Stream::new(values.clone());
    stream::unfold((body, Some(masking)), move |(mut body, masking)| {
        let values = values.clone();
        async move {
            let mut masking = masking?;
            let (piece, masking) = match body.next().await {
                Some(Ok(piece)) => (Ok(Bytes::from(masking.push(&piece))), Some(masking)),
                Some(Err(error)) => (Err(io::Error::other(values.mask(&error.to_string()).into_owned())), None),
                None => (Ok(Bytes::from(masking.finish())), None),
            };
            Some((piece, (body, masking)))
        }
    })
    .boxed()
}

#[cfg(test)]
#[path = "injection_tests.rs"]
mod tests;
