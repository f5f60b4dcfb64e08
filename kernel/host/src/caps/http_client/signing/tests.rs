//! Which request is signed, by what, and what is left of its signature in the answer.

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use noetl_contract::Tenant;
use noetl_store::wallet::{Binding, WalletError};
use ring::hmac as mac;

use super::*;
use crate::caps::http_client::OutboundResponse;
use crate::caps::http_client::injection::mask;

const SECRET: &str = "the-key-of-the-hook";

/// Credentials that are bound to `api.example.com` alone.
struct Keys;

#[async_trait]
impl Wallet for Keys {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let (kind, fields) = match using.alias.as_str() {
            "hook" => ("hmac", vec![("secret", SECRET), ("message", "body")]),
            "partner" => ("hmac", vec![("secret", SECRET), ("timestamp_header", "X-Time")]),
            "smuggler" => ("hmac", vec![("secret", SECRET), ("timestamp_header", "Content-Length")]),
            "store" => {
                ("s3", vec![("access_key", "AKIDEXAMPLE"), ("secret_key", SECRET), ("session_token", "session-1")])
            }
            _ => ("bearer", vec![("token", SECRET)]),
        };
        Ok(Arc::new(Credential {
            alias: using.alias.clone(),
            kind: kind.to_owned(),
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            hosts: vec![Binding::new("api.example.com").expect("a binding")],
            revision: 1,
        }))
    }
}

fn using(alias: &str, target: &str) -> Use {
    let of = |text: &str| text.to_owned();
    Use { tenant: Tenant::main(), alias: of(alias), by: of("main/a@1.0.0"), call: of("c"), target: of(target) }
}

fn seal() -> Seal {
    Seal::of(b"a key", "main")
}

fn header(name: &str, alias: &str) -> (String, String) {
    (name.to_owned(), seal().write(alias, SIGNATURE))
}

async fn wanted(host: &str, headers: &mut Vec<(String, String)>) -> Result<Option<Signer>, OutboundError> {
    signer(&Keys, using, &seal(), Place::of("https://", host, 443), headers).await
}

/// A request that was signed.
struct Signed {
    headers: Vec<(String, String)>,
    secrets: Secrets,
}

impl Signed {
    fn header(&self, name: &str) -> &str {
        let found: Vec<_> = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).collect();
        assert_eq!(found.len(), 1, "{name}: {:?}", self.headers);
        &found[0].1
    }
}

async fn signed(name: &str, alias: &str, more: &[(&str, &str)], body: &'static [u8]) -> Result<Signed, OutboundError> {
    let folder = tempfile::tempdir().expect("a folder");
    let payloads = Payloads::open(folder.path().join("payloads")).expect("a store");
    let mut headers: Vec<_> = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    headers.push(header(name, alias));
    let signer = wanted("api.example.com", &mut headers).await?.expect("a signature is wanted");
    let mut url = "https://api.example.com/orders?dry=1#part".to_owned();
    let body = Payload::memory(Bytes::from_static(body), "application/json");
    let (method, url, body) = ("POST", &mut url, Some(&body));
    let secrets = signer.sign(Leaving { method, url, headers: &mut headers, body, payloads: &payloads }).await?;
    Ok(Signed { headers, secrets })
}

fn hex_of(message: &str) -> String {
    hex::encode(mac::sign(&mac::Key::new(mac::HMAC_SHA256, SECRET.as_bytes()), message.as_bytes()))
}

#[tokio::test]
async fn one_header_that_is_nothing_but_a_signature_is_taken_off() {
    let mut headers = vec![header("X-Signature", "hook"), ("accept".to_owned(), "*/*".to_owned())];
    assert!(wanted("api.example.com", &mut headers).await.expect("allowed").is_some());
    assert_eq!(headers, [("accept".to_owned(), "*/*".to_owned())]);
    let part = format!("v1 {}", seal().write("hook", SIGNATURE));
    let forged = Seal::of(b"a key", "acme").write("hook", SIGNATURE);
    for value in [part.as_str(), "NOETL", &seal().write("hook", "secret"), &forged] {
        let mut headers = vec![("x".to_owned(), value.to_owned())];
        assert!(wanted("api.example.com", &mut headers).await.expect("allowed").is_none(), "{value}");
    }
}

#[tokio::test]
async fn a_key_signs_for_its_own_hosts_alone_and_only_a_key_signs() {
    let mut headers = vec![header("X-Signature", "hook")];
    let elsewhere = wanted("evil.example", &mut headers).await.expect_err("not bound");
    assert!(matches!(&elsewhere, OutboundError::Denied(text) if text.contains("`hook`")), "{elsewhere:?}");
    let other = wanted("api.example.com", &mut vec![header("authorization", "token")]).await.expect_err("a token");
    assert!(matches!(&other, OutboundError::Denied(text) if text.contains("`bearer`")), "{other:?}");
    let mut two = vec![header("a", "hook"), header("b", "store")];
    assert!(matches!(wanted("api.example.com", &mut two).await, Err(OutboundError::Invalid(_))));
}

#[tokio::test]
async fn the_body_alone_is_signed_as_hooks_check_it() {
    let made = signed("X-Hub-Signature-256", "hook", &[("accept-encoding", "gzip")], b"{\"id\":7}").await;
    let made = made.expect("signed");
    assert_eq!(made.header("x-hub-signature-256"), format!("sha256={}", hex_of("{\"id\":7}")));
    assert_eq!(made.headers.len(), 1, "an answer that can be read is asked for");
}

#[tokio::test]
async fn a_request_is_signed_with_its_time() {
    let made =
        signed("X-Signature", "partner", &[("x-time", "1"), ("x-signature", "mine")], b"{}").await.expect("signed");
    let time = made.header("x-time");
    assert_ne!(time, "1");
    let message = format!("POST\n/orders?dry=1\n{time}\n{}", Digest::of(b"{}").hex());
    assert_eq!(made.header("x-signature"), format!("sha256={}", hex_of(&message)));
    let refused = signed("X-Signature", "smuggler", &[], b"").await.map(drop).expect_err("a header of the host's");
    assert!(matches!(&refused, OutboundError::Denied(text) if text.contains("Content-Length")), "{refused:?}");
}

#[tokio::test]
async fn s3_gets_its_own_headers_and_nothing_of_them_is_told() {
    let made = signed("Authorization", "store", &[], b"{}").await.expect("signed");
    assert_eq!(made.header("x-amz-content-sha256"), Digest::of(b"{}").hex());
    assert_eq!(made.header("x-amz-security-token"), "session-1");
    let login = made.header("authorization").to_owned();
    assert!(login.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{login}");
    let signature = login.rsplit_once("Signature=").expect("at the end").1.to_owned();
    let echo = format!("{login} session-1 {SECRET} {signature}");
    let pieces: Vec<_> = echo.as_bytes().chunks(5).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let answer = OutboundResponse {
        status: 200,
        headers: vec![("x-echo".to_owned(), login)],
        body: futures::stream::iter(pieces).boxed(),
    };
    let answer = mask(&[Secrets::of(&Tenant::main(), Vec::new()), made.secrets], None, answer);
    let body: Vec<Bytes> = answer.body.map(|piece| piece.expect("whole")).collect().await;
    let body = String::from_utf8(body.concat()).expect("text");
    for secret in ["session-1", SECRET, "AKIDEXAMPLE", &signature] {
        assert!(!body.contains(secret) && !answer.headers[0].1.contains(secret), "{secret}: {body}");
    }
    let elsewhere = signed("X-Signature", "store", &[], b"").await.map(drop).expect_err("only there");
    assert!(matches!(elsewhere, OutboundError::Invalid(_)), "{elsewhere:?}");
}
