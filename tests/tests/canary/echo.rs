//! A server that tells back all it is told: in headers and body, with 500, in small pieces, at length, in a redirect, as a page;
//! and later, to whoever asks.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::planted::{dotnet, every_byte, gson, hex, html, numbers, percent, units, wrapped};

/// Above what the tool `http` shows inline.
const LARGE: usize = 1 << 20;

pub struct Echo {
    pub url: String,
    /// `127.0.0.1:4711`
    pub host: String,
    received: Arc<Mutex<Vec<String>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Echo {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let host = listener.local_addr().expect("bound").to_string();
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = received.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Self { url: format!("http://{host}"), host, received, serving }
    }

    /// Every request so far, head and body.
    pub fn received(&self) -> Vec<String> {
        self.received.lock().expect("nobody panics here").clone()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An address where nobody listens.
pub async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("bound").to_string()
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
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
    Some((head, String::from_utf8_lossy(&buffer[end..]).into_owned()))
}

/// A secret as templates of pages, careful writers of JSON, dumps and addresses in addresses write it.
fn page(sent: &str) -> String {
    let secret = percent_encoding::percent_decode_str(sent).decode_utf8_lossy().into_owned();
    let forms = [
        html(&secret),
        numbers(&secret),
        units(&secret),
        hex(&secret),
        hex(&secret).to_uppercase(),
        percent(&percent(&secret)),
        dotnet(&secret),
        gson(&secret),
        wrapped(&secret),
        every_byte(&secret, "%", ""),
        every_byte(&secret, "", ":"),
        format!("invalid token {}...", secret.chars().take(90).collect::<String>()),
    ];
    format!("<p>{}</p>", forms.join("</p>\n<p>"))
}

/// One request a connection.
async fn serve(mut stream: TcpStream, received: Arc<Mutex<Vec<String>>>) {
    let Some((head, body)) = read(&mut stream).await else { return };
    received.lock().expect("nobody panics here").push(format!("{head}{body}"));
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let secret = target.split_once("secret=").map(|(_, secret)| secret.to_owned()).unwrap_or_default();
    let told = json!({ "head": head, "body": body, "target": target }).to_string();
    let (status, body, more) = match target.split('?').next().unwrap_or_default() {
        "/fail" => ("500 Internal Server Error", told, String::new()),
        "/large" => ("200 OK", told.repeat(LARGE / told.len() + 1), String::new()),
        "/page" => ("200 OK", page(&secret), String::new()),
        "/kept" => ("200 OK", json!(*received.lock().expect("nobody panics here")).to_string(), String::new()),
        "/redirect" => ("302 Found", told, format!("location: /echo?again={secret}\r\n")),
        _ => ("200 OK", told, String::new()),
    };
    let kind = match target.split('?').next().unwrap_or_default() {
        "/large" => "text/plain",
        "/page" => "text/html",
        _ => "application/json",
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nx-echo: {target}\r\n{more}connection: close\r\n\r\n{body}",
        body.len(),
    );
    let size = if target.starts_with("/pieces") { 7 } else { answer.len() };
    // So that a piece here is a piece there.
    let _ = stream.set_nodelay(true);
    for piece in answer.as_bytes().chunks(size) {
        // Whoever asked may have gone away.
        if stream.write_all(piece).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}
