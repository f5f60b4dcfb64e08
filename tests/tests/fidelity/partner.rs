//! The server at both ends: gives one document, and keeps every body it is sent, as it was sent.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub struct Partner {
    pub url: String,
    told: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Partner {
    pub async fn start(document: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("bound"));
        let (told, document) = (Arc::new(Mutex::new(Vec::new())), Arc::new(document));
        let kept = told.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, document.clone(), kept.clone()));
            }
        });
        Self { url, told, serving }
    }

    /// What it was told last.
    #[track_caller]
    pub fn last(&self) -> String {
        self.told.lock().expect("nobody panics here").last().expect("something was sent").clone()
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The method and the body of a request; nothing if it broke off.
async fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let (mut buffer, mut piece) = (Vec::new(), [0; 4096]);
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    while buffer.len() < end + length.unwrap_or(0) {
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => buffer.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
    Some((head.split(' ').next().unwrap_or_default().to_owned(), buffer.split_off(end)))
}

/// One request a connection.
async fn serve(mut stream: TcpStream, document: Arc<String>, told: Arc<Mutex<Vec<String>>>) {
    let Some((method, body)) = read(&mut stream).await else { return };
    if method == "POST" {
        let body = String::from_utf8(body).expect("a body is text");
        told.lock().expect("nobody panics here").push(body);
    }
    let answer = if method == "GET" { document.as_str() } else { "{}" };
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len(),
    );
    // Whoever asked may have gone away.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
