//! Servers that mean harm.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

use crate::support::{envelope, server_with};

const INFO: &str = "INFO {\"server_id\":\"S\",\"server_name\":\"S\",\"version\":\"2.10.0\",\"go\":\"go1.22\",\
     \"host\":\"127.0.0.1\",\"port\":4222,\"headers\":true,\"max_payload\":1048576,\"proto\":1,\"client_id\":1,\
     \"jetstream\":true}\r\n";

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    (listener, address)
}

#[tokio::test]
async fn a_server_that_never_stops_sending_fills_no_memory() {
    let (listener, address) = listen().await;
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            stream.write_all(INFO.as_bytes()).await.expect("said");
            let mut line = String::new();
            // Well-behaved until it is asked something.
            while stream.read_line(&mut line).await.is_ok_and(|count| count > 0) && !line.contains("PUB ") {
                if line.starts_with("PING") {
                    stream.write_all(b"PONG\r\n").await.expect("said");
                }
                line.clear();
            }
            stream.write_all(b"MSG _INBOX.a 1 99999999999\r\n").await.expect("said");
            let piece = vec![b'x'; 64 << 10];
            while stream.write_all(&piece).await.is_ok() {
                counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            }
        }
    });
    let server = server_with(&[]).await;
    let api = server.admin();
    let get =
        json!({"kind": "nats", "url": format!("nats://{address}"), "operation": "kv_get", "bucket": "b", "key": "k"});
    let seen = envelope(&api, "hostile/flood", get).await;
    assert_eq!(seen["error"]["code"], "too_large", "{seen}");
    let sent = sent.load(Ordering::Relaxed);
    // What is kept in memory, and what the system holds for both of its sides of two connections.
    assert!(sent < 128 << 20, "it got rid of {sent} bytes");
}

#[tokio::test]
async fn a_login_for_an_encrypted_server_is_never_sent_in_the_open() {
    let (listener, address) = listen().await;
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("somebody");
        stream.write_all(INFO.as_bytes()).await.expect("said");
        let mut heard = vec![0; 4096];
        let count = stream.read(&mut heard).await.expect("something");
        heard.truncate(count);
        heard
    });
    let server = server_with(&[]).await;
    let api = server.admin();
    let data = json!({"url": format!("tls://{address}"), "user": "ada", "password": "hunter2-hunter2"});
    api.post("/api/credentials", json!({"name": "encrypted", "type": "nats", "data": data})).await.is(201);
    let get = json!({"kind": "nats", "auth": "encrypted", "url": format!("nats://{address}"), "operation": "kv_get",
        "bucket": "b", "key": "k"});
    let seen = envelope(&api, "hostile/plain", get).await;
    assert_eq!(seen["error"]["code"], "connect", "{seen}");
    let heard = heard.await.expect("it listened");
    // The first byte of a handshake.
    assert_eq!(heard.first(), Some(&0x16), "{}", String::from_utf8_lossy(&heard));
}

#[tokio::test]
async fn a_token_in_an_address_is_not_shown() {
    let server = server_with(&[]).await;
    let api = server.admin();
    let data = json!({"url": "nats://s3cr3t-t0ken@127.0.0.1:4222"});
    api.post("/api/credentials", json!({"name": "by_token", "type": "nats", "data": data})).await.is(201);
    for path in ["/api/credentials", "/api/credentials/by_token"] {
        let shown = api.get(path).await.is(200).text();
        assert!(shown.contains("by_token") && !shown.contains("s3cr3t"), "{shown}");
    }
}
