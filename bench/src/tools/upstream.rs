//! The HTTP server that steps and bare clients talk to: a small answer, a large one, and a place to send it to.
//!
//! Who sends something is told its length and hash, so that bytes that were changed or lost on the way are seen.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What `/small` answers.
pub const SMALL: &str = r#"{"id": 7, "name": "Ada", "tags": ["a", "b"], "active": true}"#;

/// A running server; gone when dropped.
pub struct Upstream {
    pub url: String,
    large: watch::Sender<Bytes>,
    serving: JoinHandle<()>,
}

impl Upstream {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen on a free port")?;
        let url = format!("http://{}", listener.local_addr()?);
        let (large, offered) = watch::channel(Bytes::new());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Small answers are waited for; without it they are only slower.
                let _ = stream.set_nodelay(true);
                let offered = offered.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(request, offered.clone()));
                    // A client that goes away is none of our business.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Self { url, large, serving })
    }

    /// What `/large` answers from now on; and what `/digest` says to whoever sends it.
    pub fn offer(&self, bytes: Bytes) -> Value {
        let said = digest(bytes.len() as u64, Sha256::new_with_prefix(&bytes));
        self.large.send_replace(bytes);
        said
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    request: Request<Incoming>,
    offered: watch::Receiver<Bytes>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    Ok(match request.uri().path() {
        "/small" => reply("application/json", SMALL),
        "/large" => {
            let bytes = offered.borrow().clone();
            reply("application/octet-stream", bytes)
        }
        "/digest" => reply("application/json", received(request.into_body()).await?.to_string()),
        _ => {
            let mut nothing = reply("text/plain", "there is nothing here");
            *nothing.status_mut() = StatusCode::NOT_FOUND;
            nothing
        }
    })
}

fn reply(media_type: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

/// Reads a body, a piece at a time.
async fn received(mut body: Incoming) -> Result<Value, hyper::Error> {
    let (mut bytes, mut hash) = (0, Sha256::new());
    while let Some(frame) = body.frame().await {
        if let Some(piece) = frame?.data_ref() {
            bytes += piece.len() as u64;
            hash.update(piece);
        }
    }
    Ok(digest(bytes, hash))
}

fn digest(bytes: u64, hash: Sha256) -> Value {
    json!({"bytes": bytes, "sha256": hex::encode(hash.finalize())})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::client;

    #[tokio::test]
    async fn what_is_offered_is_known_again_when_it_is_sent() {
        let (upstream, client) = (Upstream::start().await.expect("a server"), client().expect("a client"));
        let offered = upstream.offer(Bytes::from_static(b"abc"));
        let wanted = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(offered, json!({"bytes": 3, "sha256": wanted}));
        let fetched = client.get(format!("{}/large", upstream.url)).send().await.expect("an answer");
        let bytes = fetched.bytes().await.expect("bytes");
        let digest = async |bytes: Bytes| -> Value {
            let sent = client.post(format!("{}/digest", upstream.url)).body(bytes).send().await.expect("an answer");
            sent.json().await.expect("JSON")
        };
        assert_eq!(digest(bytes).await, offered);
        assert_ne!(digest(Bytes::from_static(b"abd")).await, offered);
    }
}
