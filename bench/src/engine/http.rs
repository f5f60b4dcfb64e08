//! The least an HTTP/1.1 client can be: requests are bytes, and an answer is read up to its content-length.
//!
//! The load generator shares its cores with the server it measures, so whatever it spends the server lacks. A
//! connection stays open from call to call, and parsing an answer allocates nothing.
//!
//! An answer that is not HTTP, has no content-length or ends early is an error, and ends the bench.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::Server;

pub const JSON: &str = "application/json";
const RECEIVED: usize = 4 << 10;

/// A server to be asked, and in whose name.
pub struct Target {
    address: SocketAddr,
    token: String,
}

/// Carries one request at a time.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

pub struct Answer<'c> {
    pub status: u16,
    pub body: &'c [u8],
}

impl Answer<'_> {
    /// What went wrong, for people.
    pub fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(self.body))
    }
}

impl Target {
    pub fn of(server: &Server) -> Result<Self> {
        let address = server.url.strip_prefix("http://").context("the server's address is a URL")?;
        let address = address.parse().with_context(|| format!("{} is an address and a port", server.url))?;
        Ok(Self { address, token: server.token.clone() })
    }

    pub async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await.context("connect to the server")?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, received: Vec::with_capacity(RECEIVED) })
    }

    pub fn get(&self, path: &str) -> Vec<u8> {
        let Self { address, token } = self;
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n").into_bytes()
    }

    pub fn post(&self, path: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
        let Self { address, token } = self;
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
             content-type: {media_type}\r\ncontent-length: {length}\r\n\r\n"
        );
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        request
    }

    /// One request on a connection of its own: the server closes those that are idle for long.
    pub async fn ask(&self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        let mut connection = self.connect().await?;
        let answer = connection.exchange(request).await?;
        Ok((answer.status, answer.body.to_vec()))
    }

    /// The same for what has to succeed.
    pub async fn must(&self, request: &[u8]) -> Result<Vec<u8>> {
        let (status, body) = self.ask(request).await?;
        if !(200..300).contains(&status) {
            bail!("the server refused: {}", Answer { status, body: &body }.text());
        }
        Ok(body)
    }
}

impl Connection {
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Answer<'_>> {
        self.stream.write_all(request).await.context("send a request")?;
        self.received.clear();
        let head = loop {
            if let Some(head) = head_of(&self.received)? {
                break head;
            }
            self.receive().await?;
        };
        let end = head.body + head.length;
        while self.received.len() < end {
            self.receive().await?;
        }
        ensure!(self.received.len() == end, "the server sent more than it said");
        Ok(Answer { status: head.status, body: &self.received[head.body..end] })
    }

    async fn receive(&mut self) -> Result<()> {
        let read = self.stream.read_buf(&mut self.received).await.context("receive an answer")?;
        ensure!(read > 0, "the server closed the connection before it answered");
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
struct Head {
    status: u16,
    /// Where the body begins.
    body: usize,
    length: usize,
}

/// The head of an answer; nothing while it is not whole.
fn head_of(received: &[u8]) -> Result<Option<Head>> {
    let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&received[..end]).context("the head of an answer is text")?;
    let mut lines = text.split("\r\n");
    let status: Option<u16> = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let length: Option<usize> = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    });
    let status = status.with_context(|| format!("an answer begins with its status and not with {text:?}"))?;
    let length = length.with_context(|| format!("an answer says how long it is: {text:?}"))?;
    Ok(Some(Head { status, body: end + 4, length }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_only_when_it_is_whole() {
        let answer = b"HTTP/1.1 202 Accepted\r\nDate: today\r\nContent-Length:  5\r\n\r\nhello";
        let head = answer.len() - 5;
        for cut in 0..head {
            assert_eq!(head_of(&answer[..cut]).expect("so far so good"), None, "{cut}");
        }
        assert_eq!(head_of(answer).expect("whole"), Some(Head { status: 202, body: head, length: 5 }));
    }

    #[test]
    fn what_is_not_an_answer_is_an_error() {
        for wrong in [
            "HTTP/1.1 200 OK\r\n\r\n",
            "ICY 200 OK\r\ncontent-length: 1\r\n\r\n",
            "HTTP/1.1 \r\ncontent-length: 1\r\n\r\n",
        ] {
            assert!(head_of(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
