//! Placeholders in what is written to a database or to NATS: replaced by the value, or nothing is written.
//!
//! A placeholder that is stored is data to whoever reads it next, and no driver finds it there. So a value is put in where its
//! credential may go to that very server, by the same rule as a request of `http-client` (host, port and way), and everywhere
//! else the call is refused. What has not the tenant's seal on it is a text like any other.
//!
//! What stands for a part or an encoding of a secret is refused everywhere, and what databases and NATS are entered with is not
//! written to them as data. `[REDACTED]` is written as it is: people write that word too.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use noetl_contract::placeholder::{self, COMPUTED, Found, Seal};
use noetl_store::payloads::Payloads;
use noetl_store::sql::{Parameters, Request, SqlError};
use noetl_store::wallet::{Credential, Wallet, WalletError, Way};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::nesting::{Nesting, escaped};
use super::payload::Payload;
use super::secrets::value_of;
use crate::state::Identity;

/// Larger payloads are written as they are.
const LARGEST: u64 = 1 << 20;
const OVERLAP: u64 = 1 << 10;

/// Where something is written.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Server {
        host: String,
        port: u16,
        way: Way,
    },
    /// A database of this machine's, which no credential is for.
    Here(String),
}

/// Why nothing is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Denied(String),
    /// It may be different at the next attempt.
    Unavailable(String),
}

impl From<Refused> for SqlError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Denied(text) => Self::Denied(text),
            Refused::Unavailable(text) => Self::Connect(text),
        }
    }
}

/// Replaces placeholders on the way to one place.
pub(crate) struct Filling<'f> {
    wallet: &'f dyn Wallet,
    who: &'f Identity,
    seal: Seal,
    to: Place,
    opened: BTreeMap<String, Arc<Credential>>,
}

impl<'f> Filling<'f> {
    pub(crate) fn new(wallet: &'f dyn Wallet, who: &'f Identity, seal: Seal, to: Place) -> Self {
        Self { wallet, who, seal, to, opened: BTreeMap::new() }
    }

    fn sealed(&self, text: &str) -> Vec<Found> {
        if !placeholder::may_have(text) {
            return Vec::new();
        }
        placeholder::find(text).into_iter().filter(|found| self.seal.is_on(found)).collect()
    }

    /// Text with the values in the place of placeholders, each as `write` has it.
    pub(crate) async fn text(&mut self, text: &str, write: Write) -> Result<Option<String>, Refused> {
        let sealed = self.sealed(text);
        if sealed.is_empty() {
            return Ok(None);
        }
        let (mut filled, mut copied, mut nesting) = (String::with_capacity(text.len()), 0, Nesting::default());
        for found in sealed {
            let credential = self.open(&found.alias).await?;
            let (alias, field) = (&found.alias, &found.field);
            let value =
                value_of(&credential, field).ok_or_else(|| Refused::Denied(stands_for_nothing(alias, field)))?;
            if opens_connections(&credential, field) && !noetl_scrub::is_word(&value) {
                return Err(Refused::Denied(format!(
                    "the `{field}` of the credential `{alias}` opens connections and is nothing to be written: whoever runs a \
                     script could have it told back"
                )));
            }
            let (before, after) = (&text[copied..found.at.start], &text[found.at.end..]);
            nesting.pass(before);
            filled.push_str(before);
            filled.push_str(&write.written(alias, &value, nesting.times(after))?);
            copied = found.at.end;
        }
        filled.push_str(&text[copied..]);
        Ok(Some(filled))
    }

    async fn open(&mut self, alias: &str) -> Result<Arc<Credential>, Refused> {
        if let Some(credential) = self.opened.get(alias) {
            return Ok(credential.clone());
        }
        let (host, port, way) = match &self.to {
            Place::Server { host, port, way } => (host, *port, *way),
            Place::Here(name) => {
                return Err(Refused::Denied(format!(
                    "the credential `{alias}` may not go to `{name}`: its secrets are not kept in databases of this machine"
                )));
            }
        };
        let target = format!("{host}:{port}");
        let credential = self.wallet.open(&self.who.using(alias, &target)).await.map_err(refused)?;
        if !credential.may_go_to(host, port, way) {
            return Err(refused(WalletError::NotForThere { alias: alias.to_owned(), target }));
        }
        self.opened.insert(alias.to_owned(), credential.clone());
        Ok(credential)
    }

    /// A script and its parameters.
    pub(crate) async fn request(&mut self, request: &mut Request) -> Result<(), Refused> {
        if let Some(script) = self.text(&request.script, Write::Script).await? {
            request.script = script;
        }
        match &mut request.parameters {
            Parameters::None => {}
            Parameters::Positional(list) => {
                for value in list {
                    self.value(value).await?;
                }
            }
            Parameters::Named(fields) => {
                for value in fields.values_mut() {
                    self.value(value).await?;
                }
            }
        }
        Ok(())
    }

    async fn value(&mut self, value: &mut Value) -> Result<(), Refused> {
        // A list of what is left to do: values are as deep as whoever wrote them likes.
        let mut left = vec![value];
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => {
                    if let Some(filled) = self.text(text, Write::Plain).await? {
                        *text = filled;
                    }
                }
                Value::Array(items) => left.extend(items),
                Value::Object(fields) => {
                    if fields.keys().any(|name| !self.sealed(name).is_empty()) {
                        let mut renamed = Map::new();
                        for (name, field) in std::mem::take(fields) {
                            let name = self.text(&name, Write::Plain).await?.unwrap_or(name);
                            renamed.insert(name, field);
                        }
                        *fields = renamed;
                    }
                    left.extend(fields.values_mut());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        Ok(())
    }

    /// Bytes of a message. In JSON a value is written as JSON has it.
    pub(crate) async fn bytes(&mut self, bytes: Bytes) -> Result<Bytes, Refused> {
        let Ok(text) = std::str::from_utf8(&bytes) else {
            have_none(&self.seal, &bytes)?;
            return Ok(bytes);
        };
        if !placeholder::may_have(text) {
            return Ok(bytes);
        }
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        let filled = self.text(text, if is_json { Write::Json } else { Write::Plain }).await?;
        Ok(filled.map_or(bytes, Bytes::from))
    }
}

/// Why a placeholder cannot be replaced.
pub(crate) fn stands_for_nothing(alias: &str, field: &str) -> String {
    match field {
        COMPUTED => format!(
            "what was read here before had a part or an encoding of a secret of the credential `{alias}` in it, and that goes \
             nowhere"
        ),
        _ => format!("the credential `{alias}` has no field `{field}`"),
    }
}

/// Whether it is what a database or NATS is entered with. A server that runs what it is sent can be made to tell it in any
/// disguise. A password that is a plain word is no secret to anybody, and is in data by chance.
fn opens_connections(credential: &Credential, field: &str) -> bool {
    matches!(credential.kind.as_str(), "postgres" | "nats") && !Credential::is_public(field)
}

/// For bytes that are not rewritten.
pub(crate) fn have_none(seal: &Seal, bytes: &[u8]) -> Result<(), Refused> {
    // Gigabytes go by here, and next to none has the word in it that all of them begin with.
    let any = seal.write("x", "x");
    let word = any.split('~').next().unwrap_or_default();
    if memchr::memmem::find(bytes, word.as_bytes()).is_none() {
        return Ok(());
    }
    for run in placeholder::runs(bytes) {
        let found = placeholder::find(std::str::from_utf8(&bytes[run]).unwrap_or_default());
        if let Some(Found { alias, .. }) = found.iter().find(|found| seal.is_on(found)) {
            return Err(Refused::Denied(format!(
                "a secret of the credential `{alias}` is put into text of at most 1 MiB, and not into what is written here"
            )));
        }
    }
    Ok(())
}

/// The bytes of a payload that is small enough to be rewritten. In a larger one there is no placeholder.
pub(crate) async fn looked_through(
    seal: &Seal,
    payload: &Payload,
    payloads: &Payloads,
) -> Result<Option<Bytes>, Refused> {
    let unread = |error: io::Error| Refused::Unavailable(error.to_string());
    if payload.size() <= LARGEST {
        return payload.read(payloads, 0, LARGEST).await.map(Some).map_err(unread);
    }
    let mut from = 0;
    while from < payload.size() {
        // Pieces overlap by more than a placeholder has.
        have_none(seal, &payload.read(payloads, from, LARGEST + OVERLAP).await.map_err(unread)?)?;
        from += LARGEST;
    }
    Ok(None)
}

/// How a value is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write {
    Plain,
    Json,
    /// Where it can be read as something else than a value.
    Script,
}

impl Write {
    /// `times`: how often it is escaped in JSON.
    fn written(self, alias: &str, value: &str, times: u32) -> Result<String, Refused> {
        match self {
            Self::Plain => Ok(value.to_owned()),
            Self::Json => Ok(escaped(value, times)),
            Self::Script if is_harmless(value) => Ok(value.to_owned()),
            Self::Script => Err(Refused::Denied(format!(
                "a secret of the credential `{alias}` has letters that mean something in SQL; give it as a parameter"
            ))),
        }
    }
}

/// Within quotes or outside of them.
fn is_harmless(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'=' | b'/'))
}

fn refused(error: WalletError) -> Refused {
    let text = error.to_string();
    match error {
        WalletError::Unavailable(_) | WalletError::NoToken { .. } => Refused::Unavailable(text),
        WalletError::Unknown { .. } | WalletError::NotForThere { .. } | WalletError::Closed { .. } => {
            Refused::Denied(text)
        }
    }
}

#[cfg(test)]
#[path = "filling_tests.rs"]
mod tests;
