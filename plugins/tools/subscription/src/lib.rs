//! The tool `tools/subscription`: a bounded poll of a stream, and settling what was polled. Options are read by [`options`],
//! what was polled is kept by [`kept`].
//!
//! Invariant: with `on_success` no message is acknowledged before the batch it is in can be found again by the call that
//! took it. A call that is made again after a crash answers with that batch instead of polling.

mod kept;
mod options;

use std::time::Duration;

use noetl_sdk::nats::{self, Server, Settlement};
use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, clock, log};
use serde_json::{Map, Value, json};
use shared_nats::message;

use kept::{Batch, Drawer};
use options::{Ack, Ask, Poll};

noetl_sdk::tool!(call, include_str!("../describe.json"));

fn call(request: Request) -> Result<Response, Failure> {
    let mut options: Map<String, Value> = request.parse()?;
    let at = shared_nats::server(&mut options)?;
    match options::read(options)? {
        Ask::Poll(poll) => {
            let began = clock::monotonic();
            let mut shape = match poll.ack {
                Ack::OnSuccess => on_success(&at, &poll, &request.idempotency_key, request.attempt)?,
                _ => other_ways(&at, &poll)?,
            };
            let took = clock::monotonic().saturating_sub(began);
            shape["metrics"] = json!({
                "batch": poll.batch, "timeout_ms": poll.timeout_ms,
                "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            });
            Response::json(&shape)
        }
        Ask::Settle { operation, ack_ids, how } => {
            nats::settle(&at, &ack_ids, how)?;
            Response::json(&json!({
                "status": "success", "source": "nats", "operation": operation, "count": ack_ids.len(),
                "acked": if operation == "ack" { ack_ids.len() } else { 0 }, "ack_ids": ack_ids,
            }))
        }
    }
}

fn poll_once(at: &Server, poll: &Poll) -> Result<Batch, Failure> {
    let came = nats::fetch(at, &poll.stream, &poll.consumer, poll.batch, poll.wait_ms())?;
    let ack_ids = came.iter().filter_map(|message| message.ack_id.clone()).collect();
    Ok(Batch { messages: came.iter().map(|came| message(&poll.stream, came)).collect(), ack_ids })
}

fn on_success(at: &Server, poll: &Poll, key: &str, attempt: u32) -> Result<Value, Failure> {
    let drawer = Drawer::new(clock::since_epoch(), key);
    let (batch, again) = match drawer.find(attempt)? {
        Some(batch) => (batch, true),
        None => (poll_once(at, poll)?, false),
    };
    if batch.messages.is_empty() {
        return Ok(poll.output(batch.messages, 0, Vec::new()));
    }
    if !again {
        drawer.keep(attempt, &batch)?;
        drawer.sweep()?;
    }
    // The batch is safe, so this cannot fail the step any more: what is not acknowledged comes a second time.
    match nats::settle(at, &batch.ack_ids, Settlement::Done) {
        Ok(()) => Ok(poll.output(batch.messages, batch.ack_ids.len(), Vec::new())),
        Err(error) => {
            log::warn!("messages were not acknowledged and will come again"; error = error);
            Ok(poll.output(batch.messages, 0, batch.ack_ids))
        }
    }
}

fn other_ways(at: &Server, poll: &Poll) -> Result<Value, Failure> {
    let batch = poll_once(at, poll)?;
    Ok(match poll.ack {
        Ack::Auto if !batch.ack_ids.is_empty() => {
            nats::settle(at, &batch.ack_ids, Settlement::Done)?;
            poll.output(batch.messages, batch.ack_ids.len(), Vec::new())
        }
        Ack::Manual => poll.output(batch.messages, 0, batch.ack_ids),
        _ => poll.output(batch.messages, 0, Vec::new()),
    })
}

/// Days since 1970.
fn day(since_epoch: Duration) -> u64 {
    since_epoch.as_secs() / 86_400
}
