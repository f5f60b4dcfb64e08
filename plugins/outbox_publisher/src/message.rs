//! A segment as a message: `noetl.events.<tenant>.<execution>`.
//!
//! The body is one JSON object with the events in full. The key is the same whenever the same segment is sent, so that
//! a stream which drops duplicates makes one of them. Tenants and executions have no `.` in their names, so neither
//! adds a level to the subject.

use noetl_flow::view::{Segment, expand};
use serde_json::json;

pub struct Message {
    pub subject: String,
    pub key: String,
    pub body: Vec<u8>,
}

pub fn encode(segment: Segment) -> Message {
    let subject = format!("noetl.events.{}.{}", segment.tenant, segment.execution);
    let key = format!("{}:{}", segment.execution, segment.version);
    let body = json!({
        "execution_id": segment.execution.to_string(),
        "tenant": segment.tenant,
        "version": segment.version,
        "events": expand(std::slice::from_ref(&segment)),
    });
    Message { subject, key, body: body.to_string().into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_one_message_with_its_events_in_full() {
        let line = br#"{"id":3,"at":1000,"by":2,"e":{"set":{"step":"a","values":{"x":1}}}}"#;
        let segment = Segment {
            execution: 18_000_000_000_000_000_001,
            tenant: "acme".to_owned(),
            version: 2,
            position: 40,
            time_ms: 1_000,
            decided_by: "ab".repeat(32),
            events: [&line[..], b"\n"].concat(),
        };
        let message = encode(segment);
        assert_eq!(message.subject, "noetl.events.acme.18000000000000000001");
        assert_eq!(message.key, "18000000000000000001:2");
        let body: serde_json::Value = serde_json::from_slice(&message.body).expect("JSON");
        assert_eq!(body["execution_id"], "18000000000000000001");
        assert_eq!((&body["tenant"], &body["version"]), (&json!("acme"), &json!(2)));
        assert_eq!(body["events"][0]["event_type"], "ctx.updated");
        assert_eq!(body["events"][0]["stream_version"], 2);
    }
}
