//! Signatures of the type `hmac`, as the credential's [`Scheme`] has them.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _};
use noetl_store::wallet::Credential;
use noetl_store::wallet::scheme::{Algorithm, Part, Piece, Scheme};
use ring::hmac;

use crate::caps::http_client::OutboundError;

/// What is known of a request.
pub(super) struct Facts<'r> {
    pub method: &'r str,
    pub host: String,
    pub path: String,
    pub timestamp: u64,
    pub body_sha256: String,
}

/// A signature.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// The value of its header.
    pub header: String,
    /// The signature alone, in the ways it can be written.
    pub signature: Vec<String>,
}

pub(super) fn scheme(credential: &Credential) -> Result<Scheme, OutboundError> {
    Scheme::read(|name| credential.field(name)).map_err(|(field, why)| {
        OutboundError::Denied(format!("the credential `{}` cannot sign: its `{field}` {why}", credential.alias))
    })
}

/// The body is read a piece at a time.
pub(super) async fn sign(
    scheme: &Scheme,
    secret: &str,
    facts: &Facts<'_>,
    mut body: Option<BoxStream<'static, io::Result<Bytes>>>,
) -> io::Result<Made> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(algorithm(scheme.algorithm), secret.as_bytes()));
    for piece in scheme.message.pieces() {
        match piece {
            Piece::Text(text) => context.update(text.as_bytes()),
            // A message has it once.
            Piece::Part(Part::Body) => {
                if let Some(mut body) = body.take() {
                    while let Some(bytes) = body.next().await {
                        context.update(&bytes?);
                    }
                }
            }
            Piece::Part(part) => context.update(said(scheme, facts, *part, &[]).as_bytes()),
        }
    }
    let tag = context.sign();
    let written = scheme.format.pieces().iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Part(part) => said(scheme, facts, *part, tag.as_ref()),
    });
    Ok(Made { header: written.collect(), signature: vec![hex::encode(tag.as_ref()), STANDARD.encode(tag.as_ref())] })
}

fn algorithm(algorithm: Algorithm) -> hmac::Algorithm {
    match algorithm {
        Algorithm::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Algorithm::Sha256 => hmac::HMAC_SHA256,
        Algorithm::Sha512 => hmac::HMAC_SHA512,
    }
}

/// A part as text; the body is none.
fn said(scheme: &Scheme, facts: &Facts<'_>, part: Part, signature: &[u8]) -> String {
    match part {
        Part::Method => facts.method.to_owned(),
        Part::Host => facts.host.clone(),
        Part::Path => facts.path.clone(),
        Part::Timestamp => facts.timestamp.to_string(),
        Part::BodySha256 => facts.body_sha256.clone(),
        Part::KeyId => scheme.key_id.clone(),
        Part::Algorithm => scheme.algorithm.to_string(),
        Part::Hex => hex::encode(signature),
        Part::Base64 => STANDARD.encode(signature),
        Part::Body => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of docs/credentials.md, which anybody can compute: `printf ... | openssl dgst -sha256 -hmac ...`.
    async fn header(fields: &[(&str, &'static str)]) -> String {
        let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let scheme = Scheme::read(field).expect("valid");
        let facts = Facts {
            method: "POST",
            host: "api.example.com".to_owned(),
            path: "/orders?dry=1".to_owned(),
            timestamp: 1_700_000_000,
            body_sha256: "a3c90e3b7448d23d9eacebd0ebf15cae100e21f9b2c688f3f9d238edcd26d67f".to_owned(),
        };
        let pieces = [&b"{\"id"[..], &b"\":7}"[..]].map(|piece| Ok(Bytes::from_static(piece)));
        let body = Some(futures::stream::iter(pieces).boxed());
        sign(&scheme, "noetl-example-secret", &facts, body).await.expect("read").header
    }

    #[tokio::test]
    async fn the_published_examples_come_out() {
        for (fields, wanted) in [
            (
                &[("message", "request")][..],
                "t=1700000000,sha256=d33763d16a903ee6e1e21c34985463ed19269fd65c7d7831d08c22c2a40fd2d9",
            ),
            (&[("message", "body")][..], "sha256=5d97585eb1110b5ee4493156e06d66c797de25c83125af00550a88f9b5a7b16d"),
            (
                &[("message", "body"), ("algorithm", "sha512"), ("format", "{base64}")][..],
                "Ts1jwHClhzeL80+jCNwaGCo/ImoqTZ3X0KSvL7RAi2IxYd/ZiqTndADn0u6VaN3LgV2NrxH5GiEvc4tnJbgczA==",
            ),
            (&[("message", "body"), ("algorithm", "sha1")][..], "sha1=afadfa1f01d2c05f1e513faef8f1a61bdc41376f"),
            (
                &[("message", "{timestamp}.{body}"), ("format", "t={timestamp},v1={hex}")][..],
                "t=1700000000,v1=f5daad0fb9835175ed2d9d5791ae73d5b8f482ee02f43f5d8cdfa552f44876c9",
            ),
            (
                &[("message", "body"), ("key_id", "k1")][..],
                "id=k1,sha256=5d97585eb1110b5ee4493156e06d66c797de25c83125af00550a88f9b5a7b16d",
            ),
        ] {
            assert_eq!(header(fields).await, wanted, "{fields:?}");
        }
    }
}
