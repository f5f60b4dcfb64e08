//! A small HTTP server for the tool `http`: answers with JSON, and can be told to hold its answer back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub struct Upstream {
    pub url: String,
    requests: Arc<AtomicU64>,
    /// One permit for each answer to `/hold`.
    held: Arc<Semaphore>,
    serving: tokio::task::JoinHandle<()>,
}

impl Upstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (requests, held) = (Arc::new(AtomicU64::new(0)), Arc::new(Semaphore::new(0)));
        let (counter, holder) = (requests.clone(), held.clone());
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, counter.clone(), holder.clone()));
            }
        });
        Self { url, requests, held, serving }
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Lets one request to `/hold` be answered.
    pub fn release(&self) {
        self.held.add_permits(1);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers with the number of the request: `{"number": 1}`.
async fn serve(mut stream: TcpStream, requests: Arc<AtomicU64>, held: Arc<Semaphore>) {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => head.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
    let number = requests.fetch_add(1, Ordering::SeqCst) + 1;
    if head.starts_with(b"GET /hold") {
        held.acquire().await.expect("it is never closed").forget();
    }
    let body = format!("{{\"number\": {number}}}");
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    // Whoever asked may have gone away.
    let _ = stream.write_all(answer.as_bytes()).await;
}
