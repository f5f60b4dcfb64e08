//! The API that the examples read: orders in pages, something that works at the third try, something that is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How many orders there are; their totals are 10, 20, 30, ...
pub const ORDERS: u64 = 8;
/// All of them together.
pub const TOTAL: u64 = ORDERS * (ORDERS + 1) / 2 * 10;

pub struct Shop {
    pub url: String,
    /// Requests for `/flaky`.
    flaky: Arc<AtomicU32>,
    serving: tokio::task::JoinHandle<()>,
}

impl Shop {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let flaky = Arc::new(AtomicU32::new(0));
        let shared = flaky.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { url, flaky, serving }
    }

    pub fn flaky_requests(&self) -> u32 {
        self.flaky.load(Ordering::Relaxed)
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One connection, request after request; none of them has a body.
async fn serve(mut stream: TcpStream, flaky: Arc<AtomicU32>) {
    let mut buffer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read(&mut piece).await {
                Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
                _ => return,
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
        buffer.drain(..end);
        let (status, body) = answer(head.split(' ').nth(1).unwrap_or_default(), &flaky);
        let body = body.to_string();
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn answer(target: &str, flaky: &AtomicU32) -> (&'static str, Value) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let number = |name: &str, usual: u64| {
        let pair = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        pair.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    match path {
        "/orders" => ("200 OK", page(number("page", 1), number("size", 10).max(1))),
        "/flaky" if flaky.fetch_add(1, Ordering::Relaxed) < 2 => ("503 Service Unavailable", json!({"error": "busy"})),
        "/flaky" => ("200 OK", json!({"ok": true})),
        _ => ("404 Not Found", json!({"error": "there is no such thing"})),
    }
}

fn page(page: u64, size: u64) -> Value {
    let first = (page.max(1) - 1) * size;
    let orders: Vec<Value> = (first + 1..=(first + size).min(ORDERS))
        .map(|id| json!({"id": id, "customer": format!("O'Brien {id}"), "total": id * 10}))
        .collect();
    json!({"page": page, "pages": ORDERS.div_ceil(size), "orders": orders})
}
