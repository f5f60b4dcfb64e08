//! One running `noetl plugin harness`: a request a line out, a reply a line in.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::HarnessError;
use super::protocol::{
    Answer, Base64, Call, HttpRespond, Key, KvPut, LogLine, ObjectPut, Outcome, PROTOCOL, Ready, Reply, Request,
};

/// A component in a process of its own, with a store that is empty at first and lasts as long as the session.
#[derive(Debug)]
pub struct Session {
    process: Child,
    requests: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    /// Drains standard error all the time, so that a talkative process never blocks on it.
    said: Option<JoinHandle<String>>,
    plugin: Ready,
}

/// What a successful call gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    pub logs: Vec<LogLine>,
    /// The most linear memory the guest held.
    pub memory_bytes: u64,
    pub duration_us: u64,
    answer: Answer,
}

impl Called {
    /// A transform's output; a tool's body, empty when it answered without one.
    pub fn bytes(&self) -> &[u8] {
        self.answer.output_base64.as_ref().map_or(&[], |bytes| &bytes.0)
    }

    /// The same as text; what is not UTF-8 is replaced, so that a failed assertion can show it.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// A tool's output, or a transform's output read as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match &self.answer.output_json {
            Some(value) => T::deserialize(value),
            None => serde_json::from_slice(self.bytes()),
        }
    }
}

impl Session {
    pub(super) fn start(command: &Path, component: &Path) -> Result<Self, HarnessError> {
        let mut process = Command::new(command)
            .args(["plugin", "harness"])
            .arg(component)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| HarnessError::start(command, source))?;
        let mut errors = process.stderr.take().expect("standard error is piped");
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            // What was read before an error is still worth showing.
            let _ = errors.read_to_end(&mut said);
            String::from_utf8_lossy(&said).trim_end().to_owned()
        });
        let requests = process.stdin.take();
        let replies = BufReader::new(process.stdout.take().expect("standard output is piped"));
        let plugin = Ready { protocol: 0, path: String::new(), version: String::new(), world: String::new() };
        let mut session = Self { process, requests, replies, said: Some(said), plugin };
        session.plugin = session.greeting()?;
        Ok(session)
    }

    fn greeting(&mut self) -> Result<Ready, HarnessError> {
        match self.next_reply()?.outcome {
            Outcome::Ready(ready) if ready.protocol == PROTOCOL => Ok(ready),
            Outcome::Error(error) => Err(HarnessError::Refused(error)),
            other => Err(HarnessError::Protocol { line: format!("{other:?}") }),
        }
    }

    /// The component's path, version and world, as its manifest has them.
    pub fn plugin(&self) -> &Ready {
        &self.plugin
    }

    /// Call a transform with bytes, or a tool with no arguments and a body.
    pub fn call(&mut self, input: &[u8]) -> Result<Called, HarnessError> {
        self.call_with(Call { input_base64: Some(Base64(input.to_vec())), ..Call::default() })
    }

    /// Call a tool with arguments, or a transform with the text of a JSON value.
    pub fn call_json(&mut self, input: Value) -> Result<Called, HarnessError> {
        self.call_with(Call { input_json: Some(input), ..Call::default() })
    }

    /// Call with everything said: capabilities, idempotency key, attempt.
    pub fn call_with(&mut self, call: Call) -> Result<Called, HarnessError> {
        let (answer, reply) = self.ask(&Request::Call(call))?;
        Ok(Called {
            logs: reply.logs,
            memory_bytes: reply.memory_bytes.unwrap_or_default(),
            duration_us: reply.duration_us.unwrap_or_default(),
            answer,
        })
    }

    /// Write a value into the plugin's key-value space.
    pub fn kv_set(&mut self, key: &str, value: &[u8]) -> Result<(), HarnessError> {
        let put = KvPut { key: key.to_owned(), value_base64: Base64(value.to_vec()) };
        self.ask(&Request::KvPut(put)).map(|_| ())
    }

    pub fn kv_get(&mut self, key: &str) -> Result<Option<Vec<u8>>, HarnessError> {
        let (answer, _) = self.ask(&Request::KvGet(Key { key: key.to_owned() }))?;
        Ok(answer.value_base64.map(|value| value.0))
    }

    /// Store an object of the media type `application/octet-stream`.
    pub fn object_set(&mut self, key: &str, content: &[u8]) -> Result<(), HarnessError> {
        let put = ObjectPut { key: key.to_owned(), value_base64: Base64(content.to_vec()), media_type: None };
        self.ask(&Request::ObjectPut(put)).map(|_| ())
    }

    pub fn object_get(&mut self, key: &str) -> Result<Option<Vec<u8>>, HarnessError> {
        let (answer, _) = self.ask(&Request::ObjectGet(Key { key: key.to_owned() }))?;
        Ok(answer.value_base64.map(|value| value.0))
    }

    /// Answer the plugin's HTTP requests to addresses that start with `url_prefix`. All others are denied.
    pub fn http_respond(&mut self, url_prefix: &str, status: u16, body: &str) -> Result<(), HarnessError> {
        self.http_respond_with(HttpRespond {
            url_prefix: url_prefix.to_owned(),
            status,
            headers: Vec::new(),
            body: body.to_owned(),
        })
    }

    /// The same with headers.
    pub fn http_respond_with(&mut self, answer: HttpRespond) -> Result<(), HarnessError> {
        self.ask(&Request::HttpRespond(answer)).map(|_| ())
    }

    /// Every log line since the start.
    pub fn logs(&mut self) -> Result<Vec<LogLine>, HarnessError> {
        Ok(self.ask(&Request::Logs {})?.1.logs)
    }

    fn ask(&mut self, request: &Request) -> Result<(Answer, Reply), HarnessError> {
        let mut line = serde_json::to_vec(request).expect("a request has text keys only");
        line.push(b'\n');
        let written = self.requests.as_mut().map(|requests| requests.write_all(&line).and_then(|()| requests.flush()));
        if !matches!(written, Some(Ok(()))) {
            return Err(self.ended());
        }
        let mut reply = self.next_reply()?;
        match std::mem::replace(&mut reply.outcome, Outcome::Ok(Answer::default())) {
            Outcome::Ok(answer) => Ok((answer, reply)),
            Outcome::Failure(failure) => Err(HarnessError::Failure { failure, logs: reply.logs }),
            Outcome::Error(error) => Err(HarnessError::Call { error, logs: reply.logs }),
            Outcome::Ready(ready) => Err(HarnessError::Protocol { line: format!("{ready:?}") }),
        }
    }

    fn next_reply(&mut self) -> Result<Reply, HarnessError> {
        let mut line = String::new();
        match self.replies.read_line(&mut line) {
            Ok(0) | Err(_) => Err(self.ended()),
            Ok(_) => serde_json::from_str(&line)
                .map_err(|_| HarnessError::Protocol { line: line.trim_end().chars().take(500).collect() }),
        }
    }

    /// The other side is gone: end the process, if it has not ended, and tell what it said last.
    fn ended(&mut self) -> HarnessError {
        self.stop();
        let said = self.said.take().and_then(|said| said.join().ok()).unwrap_or_default();
        HarnessError::Ended { said }
    }

    /// Nothing in the process outlives it, so it needs no farewell. It may be gone already, which is as good.
    fn stop(&mut self) {
        drop(self.requests.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop();
    }
}
