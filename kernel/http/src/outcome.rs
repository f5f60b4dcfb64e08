//! What an execution came to, as it is answered.
//!
//! The engine says a result as a value, or as an extract of a value that is a payload. Of the second kind the whole is
//! answered up to a bound; beyond it the answer has the extract and says where the whole is.

use noetl_contract::Digest;
use noetl_dispatch::engine::Ended;
use noetl_store::payloads::Payloads;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Largest result that is answered whole.
const MOST_WHOLE: u64 = 8 << 20;

/// How an execution ended.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct Outcome {
    /// Result of the last step.
    #[schema(value_type = Object)]
    pub output: Value,
    /// Where the whole is, when `output` is only an extract: `{sha256, size}`, or a list of them for a loop's results.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output_ref: Option<Value>,
    /// `{code, message, retryable}` of one that failed.
    #[schema(value_type = Object)]
    pub failure: Value,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    output: Data,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize, Default)]
struct Data {
    #[serde(default)]
    value: Value,
    reference: Option<Reference>,
    #[serde(default)]
    chunks: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    sha256: Digest,
    size: u64,
}

impl Reference {
    fn shown(&self) -> Value {
        json!({"sha256": self.sha256.hex(), "size": self.size})
    }
}

impl Outcome {
    /// What cannot be read is left out; the status says enough.
    pub async fn of(payloads: &Payloads, ended: &Ended) -> Self {
        let Ok(Body { output, error }) = serde_json::from_str::<Body>(&ended.body) else {
            tracing::warn!(status = ended.status, "the outcome of an execution cannot be read");
            return Self::default();
        };
        let (whole, elsewhere) = match &output.reference {
            Some(reference) => match whole(payloads, reference).await {
                Some(whole) => (Some(whole), None),
                None => (None, Some(reference.shown())),
            },
            None if output.chunks.is_empty() => (None, None),
            None => (None, Some(output.chunks.iter().map(Reference::shown).collect())),
        };
        Self { output: whole.unwrap_or(output.value), output_ref: elsewhere, failure: error }
    }
}

async fn whole(payloads: &Payloads, reference: &Reference) -> Option<Value> {
    if reference.size > MOST_WHOLE {
        return None;
    }
    let bytes = payloads.read_at_most(&reference.sha256, MOST_WHOLE).await.ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn outcome(payloads: &Payloads, body: Value) -> Outcome {
        Outcome::of(payloads, &Ended { status: "completed".to_owned(), body: body.to_string() }).await
    }

    #[tokio::test]
    async fn a_result_is_answered_whole_or_with_where_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let small = outcome(&payloads, json!({"output": {"value": {"n": 1}}, "error": null})).await;
        assert_eq!(small, Outcome { output: json!({"n": 1}), ..Outcome::default() });

        let kept = payloads.put_bytes(b"[1,2,3]".as_slice().into()).await.expect("kept");
        let reference = json!({"sha256": kept.digest.hex(), "size": 7});
        let resolved = outcome(&payloads, json!({"output": {"value": [1], "reference": reference}})).await;
        assert_eq!(resolved, Outcome { output: json!([1, 2, 3]), ..Outcome::default() });

        let gone = json!({"sha256": Digest::of(b"gone").hex(), "size": 4});
        let extract = outcome(&payloads, json!({"output": {"value": [1], "reference": gone}})).await;
        assert_eq!((extract.output, extract.output_ref), (json!([1]), Some(gone.clone())));
        let loops = outcome(&payloads, json!({"output": {"value": {"total": 9}, "chunks": [gone]}})).await;
        assert_eq!((loops.output, loops.output_ref), (json!({"total": 9}), Some(json!([gone]))));

        let failed = outcome(&payloads, json!({"error": {"code": "boom"}})).await;
        assert_eq!((failed.output, failed.failure), (Value::Null, json!({"code": "boom"})));
        assert_eq!(outcome(&payloads, json!("oops")).await, Outcome::default());
    }
}
