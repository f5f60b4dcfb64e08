//! What comes from outside, without the secrets of the tenant it goes to.
//!
//! A host that was sent a secret can keep it and give it back to any later request, a table can have it in a row, a stream
//! in a message. So whatever a driver brings in is masked by all the values that are known of the call's tenant, before the
//! guest or a payload has it, and not only by what this call itself sent.
//!
//! Invariants:
//! 1. As long as nothing is known of a tenant's secrets, nothing is looked at and nothing is copied.
//! 2. A body is masked as it comes, in memory bounded by a piece and the longest form of a value.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use noetl_contract::Tenant;
use noetl_scrub::{Stream, Values, known};

/// Bytes that come a piece at a time.
pub(crate) type Pieces = BoxStream<'static, io::Result<Bytes>>;

/// The secrets of one tenant, as they are known now.
#[derive(Debug, Clone)]
pub(crate) struct Secrets(Option<Arc<Values>>);

impl Secrets {
    /// To be asked for after what is masked was answered: a credential is known from when it was opened.
    pub(crate) fn of(tenant: &Tenant) -> Self {
        Self(known::values_of(tenant.as_str()))
    }

    /// What is a secret in one answer and in no other, such as the signature of its request.
    pub(crate) fn only(values: Values) -> Self {
        Self((!values.is_empty()).then(|| Arc::new(values)))
    }

    /// What looks for them; nothing when there is nothing to look for.
    pub(crate) fn values(&self) -> Option<&Arc<Values>> {
        self.0.as_ref()
    }

    pub(crate) fn mask(&self, text: &mut String) {
        if let Some(values) = &self.0
            && let Some(masked) = owned(values.mask(text))
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

    pub(crate) fn mask_bytes(&self, bytes: &mut Vec<u8>) {
        if let Some(masked) = self.0.as_ref().and_then(|values| values.mask_bytes(bytes)) {
            *bytes = masked;
        }
    }

    /// Names and values, as of headers.
    pub(crate) fn mask_pairs(&self, pairs: &mut [(String, String)]) {
        for (name, value) in pairs {
            self.mask(name);
            self.mask(value);
        }
    }

    pub(crate) fn mask_pieces(&self, pieces: Pieces) -> Pieces {
        match &self.0 {
            Some(values) => masked(pieces, values.clone()),
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

fn masked(pieces: Pieces, values: Arc<Values>) -> Pieces {
    let masking = Stream::new(values.clone());
    stream::unfold((pieces, Some(masking)), move |(mut pieces, masking)| {
        let values = values.clone();
        async move {
            let mut masking = masking?;
            let (piece, masking) = match pieces.next().await {
                Some(Ok(piece)) => (Ok(Bytes::from(masking.push(&piece))), Some(masking)),
                Some(Err(error)) => {
                    let text = values.mask(&error.to_string()).into_owned();
                    (Err(io::Error::new(error.kind(), text)), None)
                }
                None => (Ok(Bytes::from(masking.finish())), None),
            };
            Some((piece, (pieces, masking)))
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
        let secrets = Secrets::of(&tenant("masking-a"));
        assert_eq!(secrets.masked("a masked-secret".to_owned()), "a [REDACTED]");
        let mut bytes = b"\xffmasked-secret".to_vec();
        secrets.mask_bytes(&mut bytes);
        assert_eq!(bytes, b"\xff[REDACTED]");
        let mut pairs = [("x-masked-secret".to_owned(), "masked-secret".to_owned())];
        secrets.mask_pairs(&mut pairs);
        assert_eq!(pairs, [("x-[REDACTED]".to_owned(), "[REDACTED]".to_owned())]);
        let others = Secrets::of(&tenant("masking-b"));
        assert!(others.values().is_none(), "nothing is looked for");
        assert_eq!(others.masked("a masked-secret".to_owned()), "a masked-secret");
    }

    #[tokio::test]
    async fn a_secret_is_found_across_pieces_and_an_error_stays_what_it_is() {
        known::learn_for("masking-c", "masked-secret");
        let letters = || "a masked-secret b".chars().map(|letter| Ok(Bytes::from(letter.to_string())));
        let secrets = Secrets::of(&tenant("masking-c"));
        let whole = secrets.mask_pieces(stream::iter(letters().collect::<Vec<_>>()).boxed());
        let whole: Vec<Bytes> = whole.map(|piece| piece.expect("no error")).collect().await;
        assert_eq!(whole.concat(), b"a [REDACTED] b");
        let failed = Err(io::Error::new(io::ErrorKind::TimedOut, "at masked-secret"));
        let broken = stream::iter(letters().chain([failed]).collect::<Vec<_>>()).boxed();
        let told: Vec<_> = secrets.mask_pieces(broken).collect().await;
        let error = told.last().and_then(|last| last.as_ref().err()).expect("it ends with the error");
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::TimedOut, "at [REDACTED]"));
    }
}
