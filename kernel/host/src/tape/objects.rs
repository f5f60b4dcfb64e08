//! Objects on a tape: what is opened is written down with its content.

use bytes::Bytes;
use noetl_store::payloads::Payloads;
use serde_json::{Value, json};
use wasmtime::component::Resource;

use super::Taped;
use super::values::bytes_value;
use crate::bindings::noetl::objects::objects as wit;
use crate::caps::payload::Payload;
use crate::state::CallState;

/// Larger contents are written down by size and digest only. A case in which the host answered with such a one cannot be
/// played; what the plugin itself handed over is compared by its digest.
pub const LARGEST_CONTENT: u64 = 1 << 20;

/// A payload with its content.
pub(super) async fn content(payloads: Payloads, payload: &Payload) -> Value {
    let (media_type, size) = (payload.media_type(), payload.size());
    if size <= LARGEST_CONTENT
        && let Ok(bytes) = payload.read(&payloads, 0, size).await
    {
        return json!({ "media_type": media_type, "content": bytes_value(&bytes) });
    }
    json!({ "media_type": media_type, "size": size, "digest": payload.digest().hex() })
}

/// The size of a content that an answer has only the digest of, if there is one. What is told of a stored object has a
/// digest too, and its key beside it.
pub fn left_out(answer: &Value) -> Option<u64> {
    match answer {
        Value::Array(items) => items.iter().find_map(left_out),
        Value::Object(fields) => match (fields.get("size"), fields.get("digest"), fields.get("media_type")) {
            (Some(size), Some(_), Some(_)) if fields.len() == 3 => size.as_u64(),
            _ => fields.values().find_map(left_out),
        },
        _ => None,
    }
}

impl CallState {
    /// A payload as a case has it.
    pub(super) fn payload_of(value: &Value) -> Option<Payload> {
        let bytes = <Vec<u8>>::read(value.get("content")?)?;
        Some(Payload::memory(Bytes::from(bytes), value.get("media_type")?.as_str()?))
    }

    pub(crate) async fn open_taped(
        &mut self,
        key: String,
    ) -> wasmtime::Result<Result<Option<Resource<Payload>>, wit::ObjectError>> {
        const CALL: &str = "objects.open";
        let with = json!({ "key": key });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            let Some(found) = answer.get("ok") else {
                return match <Result<(), wit::ObjectError>>::read(&answer) {
                    Some(Err(error)) => Ok(Err(error)),
                    _ => Err(self.no_answer(CALL).into()),
                };
            };
            if found.is_null() {
                return Ok(Ok(None));
            }
            let payload = Self::payload_of(found).ok_or_else(|| self.no_answer(CALL))?;
            return Ok(Ok(Some(self.hand_out(payload)?)));
        }
        let answer = self.open_live(key).await?;
        let written = match &answer {
            Ok(Some(handle)) => {
                let payload = self.table.get(handle)?.clone();
                json!({ "ok": content(self.drivers.payloads.clone(), &payload).await })
            }
            Ok(None) => json!({ "ok": null }),
            Err(error) => json!({ "error": error.write() }),
        };
        self.recorded(CALL, with, written)?;
        Ok(answer)
    }

    pub(crate) async fn put_taped(
        &mut self,
        key: String,
        handle: Resource<Payload>,
    ) -> wasmtime::Result<Result<wit::ObjectInfo, wit::ObjectError>> {
        const CALL: &str = "objects.put";
        let payload = self.table.get(&handle)?.clone();
        let with = json!({ "key": key, "content": content(self.drivers.payloads.clone(), &payload).await });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return Taped::read(&answer).ok_or_else(|| self.no_answer(CALL).into());
        }
        let answer = self.put_live(key, handle).await?;
        self.recorded(CALL, with, answer.write())?;
        Ok(answer)
    }

    pub(crate) async fn delete_taped(&mut self, key: String) -> wasmtime::Result<Result<(), wit::ObjectError>> {
        const CALL: &str = "objects.delete";
        let with = json!({ "key": key });
        if let Some(answer) = self.played(CALL, &|| with.clone())? {
            return Taped::read(&answer).ok_or_else(|| self.no_answer(CALL).into());
        }
        let answer = self.delete_live(key).await?;
        self.recorded(CALL, with, answer.write())?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_content_that_is_left_out_is_found_in_every_answer_that_can_have_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("opens");
        let of = async |size: u64| {
            let bytes = Bytes::from(vec![b'a'; usize::try_from(size).expect("small")]);
            content(payloads.clone(), &Payload::memory(bytes, "text/plain")).await
        };
        let (whole, large) = (of(LARGEST_CONTENT).await, of(LARGEST_CONTENT + 1).await);
        for (body, size) in [(whole, None), (large, Some(LARGEST_CONTENT + 1))] {
            assert_eq!(left_out(&json!({ "ok": body })), size);
            assert_eq!(left_out(&json!({ "ok": { "status": 200, "headers": [{ "size": "1" }], "body": body } })), size);
            assert_eq!(left_out(&json!({ "ok": [{ "rows": { "table": body } }] })), size);
        }
        let stored = json!({ "key": "a", "size": 9, "digest": "00", "media_type": "text/plain" });
        assert_eq!(left_out(&json!({ "ok": [stored] })), None);
    }
}
