//! What a step asks for.

use noetl_sdk::nats::Settlement;
use noetl_sdk::{Failure, options};
use serde_json::{Map, Value, json};
use shared_nats::{bounded, fetch_bounds, word};

/// A day: nobody means a longer delay.
const LONGEST_DELAY_MS: u64 = 86_400_000;

/// Options of other sources, which are said to be so instead of being unknown.
const OF_OTHERS: [&str; 5] = ["subscription", "endpoint", "brokers", "topic", "group"];
/// Options that are the engine's.
const PASSED: [&str; 4] = ["input", "args", "timeout", "timeout_seconds"];
/// Options of all operations.
const KNOWN: [&str; 12] = [
    "source",
    "operation",
    "stream",
    "consumer",
    "batch",
    "timeout_ms",
    "ack",
    "ack_ids",
    "ack_id",
    "messages",
    "message",
    "delay_ms",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    OnSuccess,
    Auto,
    /// `defer` too: both leave it to a later step.
    Manual,
    None,
}

#[derive(Debug, PartialEq)]
pub struct Poll {
    pub stream: String,
    pub consumer: String,
    pub batch: u32,
    pub timeout_ms: u32,
    pub ack: Ack,
    /// As it was written.
    pub ack_mode: String,
}

#[derive(Debug)]
pub enum Ask {
    Poll(Poll),
    Settle { operation: &'static str, ack_ids: Vec<String>, how: Settlement },
}

impl Poll {
    /// A part of the time is left for keeping and acknowledging what came at the last moment.
    pub fn wait_ms(&self) -> u32 {
        self.timeout_ms - (self.timeout_ms / 5).min(250)
    }

    pub fn output(&self, messages: Vec<Value>, acked: usize, ack_ids: Vec<String>) -> Value {
        json!({
            "status": "success", "source": "nats", "operation": "poll", "count": messages.len(), "messages": messages,
            "acked": acked, "ack_mode": self.ack_mode, "ack_ids": ack_ids,
        })
    }
}

pub fn read(mut options: Map<String, Value>) -> Result<Ask, Failure> {
    let source = text(&mut options, "source").unwrap_or_else(|| "nats".to_owned());
    if source != "nats" {
        return Err(Failure::invalid_input(format_args!(
            "`source` is `{source}`; messages are taken from `nats` alone"
        )));
    }
    if let Some(other) = OF_OTHERS.iter().find(|name| options.contains_key(**name)) {
        return Err(Failure::invalid_input(format_args!(
            "`{other}` is an option of other sources; `nats` has `stream` and `consumer`"
        )));
    }
    let input = match options.get("input") {
        Some(Value::Object(input)) => input.clone(),
        _ => Map::new(),
    };
    PASSED.iter().for_each(|passed| drop(options.remove(*passed)));
    for (name, value) in &input {
        options.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let operation = text(&mut options, "operation").unwrap_or_else(|| "poll".to_owned());
    let ask = match operation.as_str() {
        "poll" => poll(&mut options)?,
        "ack" => settle("ack", Settlement::Done, &mut options)?,
        "nack" => {
            let delay =
                options.contains_key("delay_ms").then(|| bounded(&mut options, "delay_ms", 1, LONGEST_DELAY_MS));
            settle("nack", Settlement::Again(delay.transpose()?), &mut options)?
        }
        "term" => settle("term", Settlement::Never, &mut options)?,
        other => {
            return Err(Failure::invalid_input(format_args!(
                "`operation` is `{other}`; write poll, ack, nack or term"
            )));
        }
    };
    // What is left belongs to another operation, or is a variable of the step, or nobody knows it.
    options.retain(|name, _| !input.contains_key(name));
    options::keep_known("subscription", &mut options, &KNOWN);
    Ok(ask)
}

fn text(options: &mut Map<String, Value>, name: &str) -> Option<String> {
    options.remove(name).as_ref().and_then(word).filter(|text| !text.is_empty())
}

fn poll(options: &mut Map<String, Value>) -> Result<Ask, Failure> {
    let mut needed =
        |name: &str| text(options, name).ok_or_else(|| Failure::invalid_input(format_args!("`{name}` is missing")));
    let (stream, consumer) = (needed("stream")?, needed("consumer")?);
    let (batch, timeout_ms) = fetch_bounds(options)?;
    let ack_mode = text(options, "ack").unwrap_or_else(|| "on_success".to_owned());
    let ack = match ack_mode.as_str() {
        "on_success" => Ack::OnSuccess,
        "auto" | "true" => Ack::Auto,
        "manual" | "defer" => Ack::Manual,
        "none" | "false" => Ack::None,
        other => {
            return Err(Failure::invalid_input(format_args!(
                "`ack` is `{other}`; write on_success, auto, manual, defer or none"
            )));
        }
    };
    Ok(Ask::Poll(Poll { stream, consumer, batch, timeout_ms, ack, ack_mode }))
}

fn settle(operation: &'static str, how: Settlement, options: &mut Map<String, Value>) -> Result<Ask, Failure> {
    let given = ["ack_ids", "ack_id", "messages", "message"].iter().filter_map(|name| options.remove(*name));
    let mut ack_ids = Vec::new();
    for value in given {
        let values = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        for value in values {
            let id = match &value {
                Value::String(id) => Some(id.as_str()),
                Value::Object(message) => message.get("ack_id").and_then(Value::as_str),
                _ => None,
            };
            let wrong =
                || Failure::invalid_input(format_args!("`{value}` is neither an `ack_id` nor a message with one"));
            ack_ids.push(id.ok_or_else(wrong)?.to_owned());
        }
    }
    // What belongs to a poll may stand beside it.
    ["stream", "consumer"].iter().for_each(|name| drop(options.remove(*name)));
    Ok(Ask::Settle { operation, ack_ids, how })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(options: Value) -> Result<Ask, Failure> {
        read(options.as_object().cloned().expect("an object"))
    }

    #[test]
    fn a_poll_is_bounded() {
        let Ok(Ask::Poll(poll)) = ask(json!({"source": "nats", "stream": "S", "consumer": "c", "timeout_ms": 60000}))
        else {
            panic!("a poll")
        };
        assert_eq!((poll.batch, poll.timeout_ms, poll.ack), (100, 5000, Ack::OnSuccess));
        assert!(poll.wait_ms() < poll.timeout_ms);
        let Ok(Ask::Poll(poll)) = ask(json!({"stream": "S", "consumer": "c", "ack": "defer", "input": {"x": 1}}))
        else {
            panic!("a poll")
        };
        assert_eq!((poll.ack, poll.ack_mode.as_str()), (Ack::Manual, "defer"));
        let Ok(Ask::Poll(poll)) = ask(json!({"stream": "S", "consumer": "c", "bacth": 1, "ack_ids": []})) else {
            panic!("a poll, with a word that is passed over")
        };
        assert_eq!(poll.batch, 100);
    }

    #[test]
    fn messages_are_settled_by_their_ids() {
        let Ok(Ask::Settle { ack_ids, .. }) =
            ask(json!({"operation": "ack", "ack_ids": ["a"], "messages": [{"ack_id": "b", "data": 1}]}))
        else {
            panic!("a settlement")
        };
        assert_eq!(ack_ids, ["a", "b"]);
        assert!(ask(json!({"operation": "nack", "messages": [{"data": 1}]})).is_err());
        let Ok(Ask::Settle { how, .. }) = ask(json!({"operation": "nack", "ack_ids": [], "delay_ms": "5"})) else {
            panic!("a settlement")
        };
        assert!(matches!(how, Settlement::Again(Some(5))));
    }

    #[test]
    fn other_sources_and_wrong_options_are_named() {
        for (bad, named) in [
            (json!({"source": "kafka", "stream": "S"}), "kafka"),
            (json!({"stream": "S", "consumer": "c", "topic": "t"}), "topic"),
            (json!({"stream": "S"}), "consumer"),
            (json!({"operation": "peek"}), "peek"),
            (json!({"stream": "S", "consumer": "c", "ack": "later"}), "later"),
        ] {
            let failure = ask(bad.clone()).expect_err("refused");
            assert!(failure.code == "invalid_input" && failure.message.contains(named), "{bad}: {failure}");
        }
    }
}
