//! The outside world of a test: an HTTP server that remembers who called it, when, and with which idempotency key.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Milliseconds since 1970 of every request, by idempotency key.
type Seen = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

pub struct Outside {
    pub url: String,
    seen: Seen,
    serving: tokio::task::JoinHandle<()>,
}

impl Outside {
    /// `/flaky` answers 503 to the first request of every key, everything else 200 with the number of the request.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let seen = Seen::default();
        let shared = seen.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { url, seen, serving }
    }

    pub fn seen(&self) -> BTreeMap<String, Vec<u64>> {
        self.seen.lock().expect("nobody panics here").clone()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One connection, request after request.
async fn serve(mut stream: TcpStream, seen: Seen) {
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
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let length: usize = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        while buffer.len() < end + length {
            match stream.read(&mut piece).await {
                Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
                _ => return,
            }
        }
        buffer.drain(..end + length);
        let key = header("idempotency-key").unwrap_or_default();
        let number = {
            let mut seen = seen.lock().expect("nobody panics here");
            let times = seen.entry(key).or_default();
            times.push(now_ms());
            times.len()
        };
        // Work takes a while; a kill in the meantime finds it half done.
        tokio::time::sleep(std::time::Duration::from_millis(number as u64 * 7 % 13 + 3)).await;
        let flaky = head.split(' ').nth(1).is_some_and(|path| path.starts_with("/flaky"));
        let status = if flaky && number == 1 { "503 Service Unavailable" } else { "200 OK" };
        let body = format!("{{\"number\":{number}}}");
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
