//! What comes from outside, without the secrets of the tenant it goes to.
//!
//! A host that was sent a secret can keep it and give it back to any later request, a table can have it in a row, a stream
//! in a message. So whatever a driver brings in is looked at for all the values that are known of the call's tenant, before the
//! guest or a payload has it, and not only for what this call itself sent. Data has a placeholder where a secret stood, and
//! goes on with it ([`Data`]); messages about it are for people, and masked.
//!
//! Invariants:
//! 1. As long as nothing is known of a tenant's secrets, nothing is looked at and nothing is copied.
//! 2. A body is looked at as it comes, in memory bounded by a piece and the longest form of a value.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use noetl_contract::Tenant;
use noetl_scrub::{Data, Values, known};

/// Bytes that come a piece at a time.
pub(crate) type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// The secrets of one tenant, as they are known now.
#[derive(Debug, Clone)]
pub(crate) struct Secrets(Option<Known>);

#[derive(Debug, Clone)]
struct Known {
    values: Arc<Values>,
    data: Data,
}

impl Secrets {
    /// To be asked for after what is looked at was answered: a credential is known from when it was opened. Where several
    /// credentials have one value, the placeholder is that of a preferred one.
    pub(crate) fn of(tenant: &Tenant, preferred: Vec<String>) -> Self {
        Self::looked_for(known::values_of(tenant.as_str()), preferred)
    }

    /// What is a secret in one answer and in no other, such as the signature of its request.
    pub(crate) fn only(values: Values) -> Self {
        Self::looked_for((!values.is_empty()).then(|| Arc::new(values)), Vec::new())
    }

    fn looked_for(values: Option<Arc<Values>>, preferred: Vec<String>) -> Self {
        let known = |values: Arc<Values>| Known { data: Data::new(values.clone()).preferring(preferred), values };
        Self(values.map(known))
    }

    pub(crate) fn are_none(&self) -> bool {
        self.0.is_none()
    }

    /// What rewrites data; nothing when there is nothing to look for.
    pub(crate) fn data(&self) -> Option<&Data> {
        self.0.as_ref().map(|known| &known.data)
    }

    /// For a message to people.
    pub(crate) fn mask(&self, text: &mut String) {
        if let Some(known) = &self.0
            && let Some(masked) = owned(known.values.mask(text))
        {
            *text = masked;
        }
    }

    pub(crate) fn masked(&self, mut text: String) -> String {
        self.mask(&mut text);
        text
    }

    pub(crate) fn mask_some(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.mask(text);
        }
    }

    /// For data that goes on.
    pub(crate) fn stand_in(&self, text: &mut String) {
        if let Some(other) = self.data().and_then(|data| owned(data.text(text))) {
            *text = other;
        }
    }

    pub(crate) fn stood_for(&self, mut text: String) -> String {
        self.stand_in(&mut text);
        text
    }

    pub(crate) fn stand_in_bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(other) = self.data().and_then(|data| data.bytes(bytes)) {
            *bytes = other;
        }
    }

    /// Names and values, as of headers.
    pub(crate) fn stand_in_pairs(&self, pairs: &mut [(String, String)]) {
        for (name, value) in pairs {
            self.stand_in(name);
            self.stand_in(value);
        }
    }

    pub(crate) fn stand_in_pieces(&self, pieces: Pieces) -> Pieces {
        match &self.0 {
            Some(known) => rewritten(pieces, known.clone()),
            None => pieces,
        }
    }
}

/// A text if it is another one than before.
pub(crate) fn owned(text: Cow<'_, str>) -> Option<String> {
    match text {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(_) => None,
    }
}

fn rewritten(pieces: Pieces, known: Known) -> Pieces {
    let passing = known.data.stream();
    let values = known.values;
    stream::unfold((pieces, Some(passing)), move |(mut pieces, passing)| {
        let values = values.clone();
        async move {
            let mut passing = passing?;
            let (piece, passing) = match pieces.next().await {
                Some(Ok(piece)) => (Ok(Bytes::from(passing.push(&piece))), Some(passing)),
                Some(Err(error)) => {
                    let text = values.mask(&error.to_string()).into_owned();
                    (Err(io::Error::new(error.kind(), text)), None)
                }
                None => (Ok(Bytes::from(passing.finish())), None),
            };
            Some((piece, (pieces, passing)))
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        Tenant::new(name).expect("valid")
    }

    #[test]
    fn a_tenants_own_secrets_are_masked_and_nobody_elses() {
        known::learn_for("masking-a", "masked-secret");
        let secrets = Secrets::of(&tenant("masking-a"), Vec::new());
        assert_eq!(secrets.masked("a masked-secret".to_owned()), "a [REDACTED]");
        let mut bytes = b"\xffmasked-secret".to_vec();
        secrets.stand_in_bytes(&mut bytes);
        assert_eq!(bytes, b"\xff[REDACTED]");
        let mut pairs = [("x-masked-secret".to_owned(), "masked-secret".to_owned())];
        secrets.stand_in_pairs(&mut pairs);
        assert_eq!(pairs, [("x-[REDACTED]".to_owned(), "[REDACTED]".to_owned())]);
        let others = Secrets::of(&tenant("masking-b"), Vec::new());
        assert!(others.are_none(), "nothing is looked for");
        assert_eq!(others.masked("a masked-secret".to_owned()), "a masked-secret");
    }

    #[test]
    fn data_goes_on_with_what_stands_for_a_secret_and_people_read_a_mark() {
        let seal = noetl_contract::placeholder::Seal::of(b"a key", "masking-d");
        for alias in ["one", "two"] {
            let field = known::Field { alias, field: "token", revision: 1, kept: true };
            known::set_of("masking-d").learn_field(&seal, field, "masked-secret");
        }
        let secrets = Secrets::of(&tenant("masking-d"), vec!["two".to_owned()]);
        assert_eq!(secrets.stood_for("masked-secret".to_owned()), seal.write("two", "token"));
        assert_eq!(secrets.masked("masked-secret".to_owned()), "[REDACTED]");
        assert_eq!(secrets.stood_for(seal.write("two", "token")), seal.write("two", "token"), "twice is once");
    }

    #[tokio::test]
    async fn a_secret_is_found_across_pieces_and_an_error_stays_what_it_is() {
        known::learn_for("masking-c", "masked-secret");
        let letters = || "a masked-secret b".chars().map(|letter| Ok(Bytes::from(letter.to_string())));
        let secrets = Secrets::of(&tenant("masking-c"), Vec::new());
        let whole = secrets.stand_in_pieces(stream::iter(letters().collect::<Vec<_>>()).boxed());
        let whole: Vec<Bytes> = whole.map(|piece| piece.expect("no error")).collect().await;
        assert_eq!(whole.concat(), b"a [REDACTED] b");
        let failed = Err(io::Error::new(io::ErrorKind::TimedOut, "at masked-secret"));
        let broken = stream::iter(letters().chain([failed]).collect::<Vec<_>>()).boxed();
        let told: Vec<_> = secrets.stand_in_pieces(broken).collect().await;
        let error = told.last().and_then(|last| last.as_ref().err()).expect("it ends with the error");
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "at [REDACTED]"));
    }
}
