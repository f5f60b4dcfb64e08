//! The events of an execution on a server, live.
//!
//! The server sends them as server-sent events and closes the stream after the last. A stream that breaks before is asked
//! for again from the last event that came, a few times in a row: a server that restarts goes on with its executions,
//! and so does whoever watches them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use noetl_dispatch::engine::ExecutionId;
use reqwest::header::ACCEPT;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::at;
use crate::client::Client;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::cell;
use crate::run::follow::{Feed, Teller};
use crate::sse;

/// How often in a row a stream is asked for again without anything coming.
const MOST_ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);

/// Whether an event is the last of its execution.
fn is_last(event: &Value) -> bool {
    matches!(event["event_type"].as_str(), Some("playbook.completed" | "playbook.failed" | "execution.cancelled"))
}

/// The events of an execution after one of them, until its end.
pub struct Live {
    client: Client,
    id: ExecutionId,
    /// The last event that came.
    last: String,
    /// Times in a row that the stream was asked for and nothing came.
    attempts: u32,
    open: Option<BoxStream<'static, reqwest::Result<Bytes>>>,
    cut: sse::Events,
    ready: VecDeque<sse::Event>,
    ended: bool,
}

impl Live {
    pub fn new(client: &Client, id: ExecutionId, after: u64) -> Self {
        Self {
            client: client.clone(),
            id,
            last: after.to_string(),
            attempts: 0,
            open: None,
            cut: sse::Events::default(),
            ready: VecDeque::new(),
            ended: false,
        }
    }

    /// The next event; none after the last.
    pub async fn next(&mut self) -> Outcome<Option<Value>> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if let Some(value) = self.take(event)? {
                    return Ok(Some(value));
                }
            }
            if self.ended {
                return Ok(None);
            }
            match self.read().await {
                Ok(()) => {}
                // Anything but a server that is away would be the same again.
                Err(failure) if failure.exit != Exit::Unreachable => return Err(failure),
                Err(failure) => {
                    self.open = None;
                    self.attempts += 1;
                    if self.attempts > MOST_ATTEMPTS {
                        return Err(failure);
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// An event that came; none if it says nothing about the execution.
    fn take(&mut self, event: sse::Event) -> Outcome<Option<Value>> {
        let Ok(value) = serde_json::from_str::<Value>(&event.data) else { return Ok(None) };
        if event.name == "problem" {
            let detail = cell(&value["detail"]);
            return Err(Failure::failed(format!("the events of execution {} cannot be read: {detail}", self.id)));
        }
        self.last = event.id.unwrap_or_else(|| std::mem::take(&mut self.last));
        self.attempts = 0;
        self.ended |= is_last(&value);
        Ok(Some(value))
    }

    /// Connects if need be, and reads what comes next.
    async fn read(&mut self) -> Outcome {
        let Some(body) = &mut self.open else { return self.connect().await };
        match body.next().await {
            Some(Ok(chunk)) => {
                self.ready.extend(self.cut.feed(&chunk));
                Ok(())
            }
            Some(Err(error)) => Err(self.client.broken(&error)),
            None => {
                let (id, last) = (self.id, &self.last);
                Err(Failure::new(Exit::Unreachable, format!("the stream of events of execution {id} ended early"))
                    .next(format!("`noetl events {id} --follow --after {last}` goes on")))
            }
        }
    }

    async fn connect(&mut self) -> Outcome {
        let request = self
            .client
            .request(Method::GET, &format!("{}/events", at(self.id)), &[])
            .header(ACCEPT, "text/event-stream")
            .header("last-event-id", &self.last);
        let response = self.client.send(request).await?;
        // Nothing comes after the event that was seen last.
        self.ended = response.status() == StatusCode::NO_CONTENT;
        self.cut = sse::Events::default();
        self.open = Some(response.bytes_stream().boxed());
        Ok(())
    }
}

/// Events of a server.
#[derive(Clone)]
pub struct Remote(pub Client);

impl Feed for Remote {
    async fn follow(self, execution: String, teller: Teller) -> Outcome {
        let id: ExecutionId = execution.parse().map_err(|error| Failure::failed(format!("{error}")))?;
        let mut live = Live::new(&self.0, id, 0);
        while let Some(event) = live.next().await? {
            teller.event(event).await;
        }
        Ok(())
    }
}
