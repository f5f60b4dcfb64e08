//! The tool `tools/nats`: one operation on values, objects or messages. What a step asks for is read by [`operation`]; here
//! the host is asked and the answer put into its shape.

mod operation;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_sdk::nats::{self, Server, Settlement};
use noetl_sdk::payload::{self, Payload};
use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, log};
use serde_json::{Map, Value, json};
use shared_nats::{message, shown};

use operation::{Encoding, Operation};

noetl_sdk::tool!(call, include_str!("../describe.json"));

const MOST_NAMES: u32 = 10_000;
/// An object up to this size is shown.
const INLINE_BYTES: u64 = 8 << 20;
const FOUND: &str = "success";
const NOT_FOUND: &str = "not_found";

fn call(request: Request) -> Result<Response, Failure> {
    let mut options: Map<String, Value> = request.parse()?;
    let at = shared_nats::server(&mut options)?;
    if options.contains_key("ttl") {
        log::warn!("`ttl` means nothing: the bucket has a time of its own");
    }
    let operation = operation::read(options)?;
    match operation {
        Operation::ObjectGet { bucket, name, encoding } => object_get(&at, bucket, name, encoding),
        Operation::ObjectPut { bucket, name, data } => {
            let content = match (data, request.body) {
                (Some(data), None) => payload::from_bytes("application/octet-stream", &data)?,
                (None, Some(body)) => body,
                _ => return Err(Failure::invalid_input("`data` is missing, or there is a `body_ref` beside it")),
            };
            object_put(&at, bucket, name, &content)
        }
        other => Response::json(&run(&at, other)?),
    }
}

fn run(at: &Server, operation: Operation) -> Result<Value, Failure> {
    Ok(match operation {
        Operation::KvGet { bucket, key } => match nats::kv_get(at, &bucket, &key)? {
            Some(entry) => json!({"status": FOUND, "bucket": bucket, "key": key, "value": shown(&entry.value)}),
            None => json!({"status": NOT_FOUND, "bucket": bucket, "key": key, "value": null}),
        },
        Operation::KvPut { bucket, key, value } => {
            let revision = nats::kv_put(at, &bucket, &key, &value)?;
            json!({"status": FOUND, "bucket": bucket, "key": key, "revision": revision})
        }
        Operation::KvDelete { bucket, key } => {
            nats::kv_delete(at, &bucket, &key)?;
            json!({"status": FOUND, "bucket": bucket, "key": key})
        }
        Operation::KvPurge { bucket, key } => {
            nats::kv_purge(at, &bucket, &key)?;
            json!({"status": FOUND, "bucket": bucket, "key": key})
        }
        Operation::KvKeys { bucket, pattern } => {
            let keys = nats::kv_keys(at, &bucket, pattern.as_deref(), MOST_NAMES)?;
            json!({"status": FOUND, "bucket": bucket, "count": keys.len(), "keys": keys})
        }
        Operation::ObjectDelete { bucket, name } => {
            nats::object_delete(at, &bucket, &name)?;
            json!({"status": FOUND, "bucket": bucket, "name": name})
        }
        Operation::ObjectList { bucket } => {
            let objects: Vec<Value> = nats::object_list(at, &bucket, MOST_NAMES)?.iter().map(details).collect();
            json!({"status": FOUND, "bucket": bucket, "count": objects.len(), "objects": objects})
        }
        Operation::ObjectInfo { bucket, name } => match nats::object_info(at, &bucket, &name)? {
            Some(found) => with(json!({"status": FOUND, "bucket": bucket}), details(&found)),
            None => json!({"status": NOT_FOUND, "bucket": bucket, "name": name}),
        },
        Operation::Publish { subject, headers, data } => {
            let ack = nats::publish(at, &subject, &headers, &data)?;
            json!({
                "status": FOUND, "subject": subject, "stream": ack.stream_name, "seq": ack.sequence,
                "duplicate": ack.duplicate,
            })
        }
        Operation::Consume { stream, consumer, batch, timeout_ms, ack } => {
            let fetched = nats::fetch(at, &stream, &consumer, batch, timeout_ms)?;
            let ack_ids: Vec<String> = fetched.iter().filter_map(|message| message.ack_id.clone()).collect();
            if ack && !ack_ids.is_empty() {
                nats::settle(at, &ack_ids, Settlement::Done)?;
            }
            let messages: Vec<Value> = fetched.iter().map(|came| message(&stream, came)).collect();
            json!({
                "status": FOUND, "stream": stream, "consumer": consumer, "count": messages.len(), "messages": messages,
                "acked": if ack { ack_ids.len() } else { 0 }, "ack_ids": if ack { Vec::new() } else { ack_ids },
            })
        }
        Operation::GetMessage { stream, which } => match nats::get_message(at, &stream, &which)? {
            Some(found) => json!({"status": FOUND, "stream": stream, "message": message(&stream, &found)}),
            None => json!({"status": NOT_FOUND, "stream": stream, "message": null}),
        },
        Operation::StreamInfo { stream } => {
            let state = nats::stream_info(at, &stream)?;
            json!({
                "status": FOUND, "stream": state.name, "subjects": state.subjects, "messages": state.messages,
                "bytes": state.bytes, "first_seq": state.first_sequence, "last_seq": state.last_sequence,
                "consumers": state.consumers,
            })
        }
        Operation::ObjectGet { .. } | Operation::ObjectPut { .. } => {
            return Err(Failure::new("invalid_operation", "objects are read and written with their content"));
        }
    })
}

fn object_get(at: &Server, bucket: String, name: String, encoding: Encoding) -> Result<Response, Failure> {
    let Some(object) = nats::object_get(at, &bucket, &name)? else {
        return Response::json(&json!({"status": NOT_FOUND, "bucket": bucket, "name": name, "data": null}));
    };
    let size = object.size();
    let about = json!({"status": FOUND, "bucket": bucket, "name": name, "size": size});
    if encoding == Encoding::Reference || size > INLINE_BYTES {
        return Ok(Response::json(&about)?.with_body(object));
    }
    let bytes = object.bytes()?;
    let data = match encoding {
        Encoding::Base64 => Value::String(STANDARD.encode(&bytes)),
        Encoding::Auto | Encoding::Reference => shown(&bytes),
    };
    Response::json(&with(about, json!({"data": data})))
}

fn object_put(at: &Server, bucket: String, name: String, content: &Payload) -> Result<Response, Failure> {
    let put = nats::object_put(at, &bucket, &name, content)?;
    Response::json(&with(json!({"status": FOUND, "bucket": bucket}), details(&put)))
}

fn details(object: &nats::ObjectDetails) -> Value {
    json!({
        "name": object.name, "size": object.size, "chunks": object.chunks, "digest": object.digest,
        "modified_ms": object.modified_ms,
    })
}

fn with(mut fields: Value, more: Value) -> Value {
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, more) {
        fields.extend(more);
    }
    fields
}
