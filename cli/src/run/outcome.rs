//! What an execution of this process came to, with its result whole.
//!
//! A small result is in the answer itself, a large one in the payload store: the answer then has an extract and says
//! where the rest is. The store of a run goes away with it, so the whole is read while it is there. Results of a loop that
//! are kept in chunks stay where they are, as in the API: `output` has their numbers and `output_ref` says where.

use noetl_contract::Digest;
use noetl_store::payloads::Payloads;
use serde_json::{Value, json};

/// Bytes of a result that is printed whole; of a larger one the extract is.
const MOST_BYTES: u64 = 256 << 20;

/// `status`, `output`, `error`, and `output_ref` when the output is not whole; `body` is the engine's answer.
pub async fn of(payloads: &Payloads, id: &str, status: &str, body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let data = &body["output"];
    let (output, elsewhere) = match whole(payloads, &data["reference"]).await {
        Some(whole) => (whole, None),
        None => {
            (data["value"].clone(), [&data["reference"], &data["chunks"]].into_iter().find(|place| !place.is_null()))
        }
    };
    let mut value = json!({ "execution_id": id, "status": status, "output": output, "error": body["error"] });
    if let Some(place) = elsewhere {
        value["output_ref"] = place.clone();
    }
    value
}

async fn whole(payloads: &Payloads, reference: &Value) -> Option<Value> {
    let digest: Digest = reference["sha256"].as_str()?.parse().ok()?;
    let bytes = payloads.read_at_most(&digest, MOST_BYTES).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_result_is_whole_or_says_where_the_rest_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let kept = payloads.put_bytes(b"[1,2,3]".to_vec().into()).await.expect("kept").digest;
        let outcome = async |output: Value| {
            let body = json!({ "output": output, "error": null }).to_string();
            of(&payloads, "7", "completed", &body).await
        };
        let small = outcome(json!({"value": {"n": 1}})).await;
        assert_eq!(small, json!({"execution_id": "7", "status": "completed", "output": {"n": 1}, "error": null}));
        let large = outcome(json!({"value": [1], "reference": {"sha256": kept.hex(), "size": 7}})).await;
        assert_eq!((&large["output"], large.get("output_ref")), (&json!([1, 2, 3]), None));
        let gone = json!({"sha256": "ab".repeat(32), "size": 7});
        let lost = outcome(json!({"value": [1], "reference": gone})).await;
        assert_eq!((&lost["output"], &lost["output_ref"]), (&json!([1]), &gone));
        let looped = outcome(json!({"value": {"count": 9}, "chunks": [gone]})).await;
        assert_eq!((&looped["output"], &looped["output_ref"]), (&json!({"count": 9}), &json!([gone])));
    }
}
