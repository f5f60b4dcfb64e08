//! A private NATS server with JetStream, for tests: on a free port, with a password and a folder of its own.
//!
//! Streams and buckets are made by asking the server's own API over a plain connection; the protocol is lines of text.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;

const USER: &str = "tester";
const PASSWORD: &str = "nats-of-a-test";
const START_LIMIT: Duration = Duration::from_secs(30);

/// A running server; killed when dropped.
pub struct Nats {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    child: Child,
    /// Its data; removed with it.
    _folder: TempDir,
}

impl Nats {
    pub async fn start() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let ports = folder.path().join("ports");
        std::fs::create_dir(&ports).expect("a folder");
        let config = folder.path().join("nats.conf");
        let text = format!(
            "listen: \"127.0.0.1:-1\"\nports_file_dir: {ports:?}\nmax_payload: 8MB\n\
             jetstream {{ store_dir: {store:?} }}\n\
             authorization {{ user: {USER}, password: {PASSWORD:?} }}\n",
            store = folder.path().join("store"),
        );
        std::fs::write(&config, text).expect("a file");
        // Debian has it where a user's path does not look.
        let program =
            ["/usr/sbin/nats-server", "nats-server"].into_iter().find(|file| std::path::Path::new(file).is_file());
        let mut command = Command::new(program.unwrap_or("nats-server"));
        command.arg("--config").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("nats-server is installed: `cargo xtask setup`");
        let port = tokio::time::timeout(START_LIMIT, async {
            loop {
                if let Some(port) = listening(&ports) {
                    return port;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let port = port.await.expect("nats-server listens");
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            user: USER.to_owned(),
            password: PASSWORD.to_owned(),
            child,
            _folder: folder,
        }
    }

    pub fn url(&self) -> String {
        format!("nats://{}:{}", self.host, self.port)
    }

    /// Makes a bucket of keys and values.
    pub async fn make_bucket(&self, name: &str) -> Result<(), String> {
        let stream = format!("KV_{name}");
        let config = json!({"name": stream, "subjects": [format!("$KV.{name}.>")], "max_msgs_per_subject": 1,
            "discard": "new", "allow_rollup_hdrs": true, "deny_delete": true, "allow_direct": true,
            "storage": "file", "num_replicas": 1});
        self.ask(&format!("$JS.API.STREAM.CREATE.{stream}"), &config).await.map(drop)
    }

    /// Makes a bucket of objects.
    pub async fn make_object_store(&self, name: &str) -> Result<(), String> {
        let stream = format!("OBJ_{name}");
        let config = json!({"name": stream, "subjects": [format!("$O.{name}.C.>"), format!("$O.{name}.M.>")],
            "discard": "new", "allow_rollup_hdrs": true, "allow_direct": true, "storage": "file", "num_replicas": 1});
        self.ask(&format!("$JS.API.STREAM.CREATE.{stream}"), &config).await.map(drop)
    }

    /// Makes a stream over a subject, and a durable consumer of it.
    pub async fn make_stream(&self, name: &str, subjects: &[&str], consumer: &str) -> Result<(), String> {
        let config = json!({"name": name, "subjects": subjects, "storage": "file", "num_replicas": 1});
        self.ask(&format!("$JS.API.STREAM.CREATE.{name}"), &config).await?;
        let config = json!({"stream_name": name, "config": {"durable_name": consumer, "ack_policy": "explicit",
            "deliver_policy": "all"}});
        self.ask(&format!("$JS.API.CONSUMER.DURABLE.CREATE.{name}.{consumer}"), &config).await.map(drop)
    }

    /// Up to which message of a stream all are acknowledged by a consumer.
    pub async fn acknowledged(&self, stream: &str, consumer: &str) -> Result<u64, String> {
        let info = self.ask(&format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}"), &json!({})).await?;
        Ok(info["ack_floor"]["stream_seq"].as_u64().unwrap_or(0))
    }

    /// One request, and the answer to it.
    async fn ask(&self, subject: &str, body: &Value) -> Result<Value, String> {
        let asking = async {
            let mut stream = BufStream::new(TcpStream::connect((self.host.as_str(), self.port)).await?);
            let login = json!({"verbose": false, "user": self.user, "pass": self.password, "lang": "test", "version": "1",
                "protocol": 1, "pedantic": false, "tls_required": false});
            let body = body.to_string();
            let sent = format!(
                "CONNECT {login}\r\nSUB _INBOX.test 1\r\nPUB {subject} _INBOX.test {}\r\n{body}\r\n",
                body.len()
            );
            stream.write_all(sent.as_bytes()).await?;
            stream.flush().await?;
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).await? == 0 {
                    return Err(std::io::Error::other("the server closed the connection"));
                }
                if line.starts_with("-ERR") {
                    return Err(std::io::Error::other(line.trim().to_owned()));
                }
                if line.starts_with("PING") {
                    stream.write_all(b"PONG\r\n").await?;
                    stream.flush().await?;
                }
                if line.starts_with("MSG ") {
                    let size = line.trim().rsplit(' ').next().and_then(|size| size.parse().ok()).unwrap_or(0);
                    let mut answer = vec![0; size];
                    stream.read_exact(&mut answer).await?;
                    return Ok(serde_json::from_slice::<Value>(&answer)?);
                }
            }
        };
        let answer = tokio::time::timeout(START_LIMIT, asking).await;
        let answer =
            answer.map_err(|_| format!("{subject}: no answer"))?.map_err(|error| format!("{subject}: {error}"))?;
        match answer.get("error") {
            Some(error) => Err(format!("{subject}: {error}")),
            None => Ok(answer),
        }
    }
}

/// The port in the file that the server writes when it listens.
fn listening(folder: &std::path::Path) -> Option<u16> {
    let entry = std::fs::read_dir(folder).ok()?.filter_map(Result::ok).next()?;
    let ports: Value = serde_json::from_str(&std::fs::read_to_string(entry.path()).ok()?).ok()?;
    let url = ports.get("nats")?.get(0)?.as_str()?;
    url.rsplit(':').next()?.parse().ok()
}

impl Drop for Nats {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
