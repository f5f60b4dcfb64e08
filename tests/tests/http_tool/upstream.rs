//! A small HTTP server that says what it was asked, and fails as it is told to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// With its query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

#[derive(Default)]
struct Shared {
    asked: Mutex<Vec<Asked>>,
    came: Notify,
    /// The first request whose `/held` is answered; nobody's is while there is none.
    answered_from: watch::Sender<Option<usize>>,
}

pub struct Upstream {
    pub url: String,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

impl Upstream {
    /// `/status/<code>` answers so, `/limited` 429 and `retry-after: 7`, `/redirect/<path>` leads there, `/bytes/<MiB>` has
    /// so many of them, `/held` waits, `/silent` never answers, `/text` is text, and `/untyped`, `/latin` and `/marked` are what
    /// few servers send. `/moved/<path>` leads there with the body. Everything else tells what was asked.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let shared = Arc::new(Shared::default());
        let all = shared.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, all.clone()));
            }
        });
        Self { url, shared, serving }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("nobody panics here").clone()
    }

    /// As soon as so many requests have come.
    pub async fn until_asked(&self, count: usize) {
        loop {
            let came = self.shared.came.notified();
            if self.asked().len() >= count {
                return;
            }
            came.await;
        }
    }

    /// Requests for `/held` wait from now on, but for those that come as the given number or later.
    pub fn hold_until(&self, number: Option<usize>) {
        self.shared.answered_from.send_replace(number);
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(asked) = read(&mut stream).await else { return };
    let number = {
        let mut all = shared.asked.lock().expect("nobody panics here");
        all.push(asked.clone());
        all.len()
    };
    shared.came.notify_waiters();
    let path = asked.target.split('?').next().unwrap_or_default();
    let (status, headers, body) = match path.split('/').collect::<Vec<_>>()[1..] {
        ["status", code] => (code.to_owned(), String::new(), json!({"status": code}).to_string().into_bytes()),
        ["limited"] => ("429".to_owned(), "retry-after: 7\r\n".to_owned(), b"slow down".to_vec()),
        ["redirect", ..] => {
            let to = path.strip_prefix("/redirect").unwrap_or(path);
            ("302".to_owned(), format!("location: {to}\r\n"), Vec::new())
        }
        ["bytes", mib] => {
            large(&mut stream, mib.parse().unwrap_or(1)).await;
            return;
        }
        ["text"] => {
            ("200".to_owned(), "content-type: text/plain\r\n".to_owned(), b"{\"looks\": \"like JSON\"}".to_vec())
        }
        ["moved", ..] => {
            let to = path.strip_prefix("/moved").unwrap_or(path);
            ("307".to_owned(), format!("location: {to}\r\n"), Vec::new())
        }
        ["untyped"] => ("200".to_owned(), "x-no: content-type\r\n".to_owned(), b"{\"n\": 1}".to_vec()),
        ["latin"] => {
            ("200".to_owned(), "content-type: text/plain; charset=iso-8859-1\r\n".to_owned(), b"caf\xe9".to_vec())
        }
        ["marked"] => ("200".to_owned(), "content-type: text/json\r\n".to_owned(), b"\xef\xbb\xbf{\"n\": 1}".to_vec()),
        ["held"] => {
            let mut from = shared.answered_from.subscribe();
            let _ = from.wait_for(|from| from.is_some_and(|from| number >= from)).await;
            ("200".to_owned(), String::new(), b"{}".to_vec())
        }
        ["silent"] => std::future::pending().await,
        _ => ("200".to_owned(), String::new(), told(&asked).to_string().into_bytes()),
    };
    let kind = if headers.contains("content-type") { "" } else { "content-type: application/json\r\n" };
    let head =
        format!("HTTP/1.1 {status} -\r\n{kind}{headers}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    // Whoever asked may have gone away.
    let _ = stream.write_all(head.as_bytes()).await;
    if asked.method != "HEAD" {
        let _ = stream.write_all(&body).await;
    }
}

fn told(asked: &Asked) -> Value {
    json!({
        "method": asked.method, "target": asked.target, "headers": asked.headers,
        "body": String::from_utf8_lossy(&asked.body),
    })
}

/// Zeros, a piece at a time.
async fn large(stream: &mut TcpStream, mib: usize) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        mib << 20
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let piece = vec![0; 1 << 20];
    for _ in 0..mib {
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = bytes.split_off(end);
    while body.len() < length {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => body.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
    Some(Asked { method, target, headers, body })
}
