//! An HTTP server of a test: it writes down what it is asked, and answers as the test says.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request as it came; names of headers in lower case.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: String,
    /// With its query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    /// The value of a header; empty if it did not come.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// All of it as JSON.
    pub fn told(&self) -> Value {
        json!({"method": self.method, "target": self.target, "headers": self.headers, "body": self.text()})
    }
}

/// What is answered.
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Reply {
    pub fn json(status: u16, body: Value) -> Self {
        Self { status, headers: vec![("content-type", "application/json".to_owned())], body: body.to_string() }
    }

    pub fn redirect(to: impl Into<String>) -> Self {
        Self { status: 302, headers: vec![("location", to.into())], body: String::new() }
    }
}

pub struct Recorder {
    pub url: String,
    /// `127.0.0.1:4711`
    pub host: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Recorder {
    /// Tells everybody what was asked.
    pub async fn echo() -> Self {
        Self::start(|asked| Reply::json(200, asked.told())).await
    }

    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let host = listener.local_addr().expect("bound").to_string();
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let all = asked.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (all, answer) = (all.clone(), answer.clone());
                tokio::spawn(async move { serve(stream, &all, &*answer).await });
            }
        });
        Self { url: format!("http://{host}"), host, asked, serving }
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("nobody panics here").clone()
    }

    /// The newest request.
    pub fn last(&self) -> Asked {
        self.asked().pop().expect("it was asked")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One request a connection.
async fn serve(mut stream: TcpStream, all: &Mutex<Vec<Asked>>, answer: &(dyn Fn(&Asked) -> Reply + Send + Sync)) {
    let Some(asked) = read(&mut stream).await else { return };
    all.lock().expect("nobody panics here").push(asked.clone());
    let Reply { status, headers, body } = answer(&asked);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} -\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    // Whoever asked may have gone away.
    let _ = stream.write_all(head.as_bytes()).await;
    if asked.method != "HEAD" {
        let _ = stream.write_all(body.as_bytes()).await;
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let (mut buffer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let mut searched = 0_usize;
    let end = loop {
        let from = searched.saturating_sub(3);
        if let Some(at) = buffer[from..].windows(4).position(|window: &[u8]| window == b"\r\n\r\n") {
            break from + at + 4;
        }
        searched = buffer.len();
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ').map(str::to_owned);
    let (method, target) = (first.next()?, first.next()?);
    let field = |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: BTreeMap<String, String> = lines.filter_map(field).collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while buffer.len() < end + length {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
    Some(Asked { method, target, headers, body: buffer.split_off(end) })
}
