//! How connections are made: with certificates that are looked at, and once for requests that follow each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::support::{call, failure, server, server_with};

/// Answers requests without a body, as long as the client keeps the connection.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => asked.extend_from_slice(&piece[..count]),
            _ => return,
        }
        if asked.ends_with(b"\r\n\r\n") {
            asked.clear();
            let answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
            if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
}

#[tokio::test]
async fn requests_that_follow_each_other_share_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer(stream));
        }
    });
    let server = server().await;
    let api = server.admin();
    let ask = |name: &str| json!({"name": name, "kind": "http", "url": url});
    let answered = call(&api, "reuse/three", json!([ask("one"), ask("two"), ask("three")])).await;
    assert_eq!(answered["three"]["data"], "ok", "{answered}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("a key that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                // Whoever does not like the certificate hangs up, which is what one half of the test is about.
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream).await;
                }
            });
        }
    });
    let lax = server_with(&[("NOETL_POLICY_INSECURE_TLS", "true")]).await;
    let api = lax.admin();
    assert_eq!(failure(&api, "tls/verified", json!({"kind": "http", "url": url})).await, "tls");
    let answered = call(&api, "tls/unverified", json!({"kind": "http", "url": url, "verify_ssl": false})).await;
    assert_eq!(answered["data"], "ok");
}
