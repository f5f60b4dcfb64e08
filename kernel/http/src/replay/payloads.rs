//! The payloads a state refers to: are they there, and what are they. Never the payloads themselves.
//!
//! A payload that is referred to many times is looked at once. Small ones are read and checked against their digest;
//! of large ones only the size is compared. The checksum covers what was found, in the order of the digests.

use std::collections::BTreeMap;

use noetl_contract::Digest;
use noetl_store::payloads::Payloads;
use serde_json::{Value, json};

/// Payloads that are looked at for one answer.
const MOST: usize = 1000;
/// Larger ones are not read.
const MOST_READ: u64 = 8 << 20;

/// `payload_resolution`, by digest, and `payload_resolution_summary`.
pub async fn resolve(payloads: &Payloads, state: &Value) -> (Value, Value) {
    let mut references = BTreeMap::new();
    collect(state, &mut references);
    let total: u64 = references.values().sum();
    let mut found = serde_json::Map::new();
    let mut resolved = 0_u64;
    for (digest, count) in references.iter().take(MOST) {
        let (summary, error) = look(payloads, digest).await;
        if error.is_none() {
            resolved += count;
        }
        let mut summary = summary;
        summary["references"] = (*count).into();
        summary["error"] = error.into();
        found.insert(digest.hex(), summary);
    }
    let found = Value::Object(found);
    let summary = json!({
        "total": total,
        "resolved": resolved,
        "unresolved": total - resolved,
        "unique": references.len(),
        "all_resolved": resolved == total,
        "checksum": Digest::of(found.to_string().as_bytes()).hex(),
    });
    (found, summary)
}

/// Every reference has the sha256 of what it refers to.
fn collect(value: &Value, references: &mut BTreeMap<Digest, u64>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Value::Object(members) => {
            let is_reference = members.contains_key("bytes") || members.contains_key("size");
            let digest = members.get("sha256").and_then(Value::as_str).and_then(|text| text.parse().ok());
            if let Some(digest) = digest.filter(|_| is_reference) {
                *references.entry(digest).or_default() += 1;
            }
            members.values().for_each(|member| collect(member, references));
        }
        _ => {}
    }
}

/// What is known of a payload, and what is wrong with it.
async fn look(payloads: &Payloads, digest: &Digest) -> (Value, Option<String>) {
    let Some(size) = payloads.size(digest) else {
        return (json!({"checksum": digest.hex()}), Some("it is not in the store".to_owned()));
    };
    let mut summary = json!({"checksum": digest.hex(), "size": size, "verified": false});
    if size > MOST_READ {
        return (summary, None);
    }
    match payloads.read_at_most(digest, MOST_READ).await {
        Ok(bytes) => {
            summary["verified"] = true.into();
            let value: Option<Value> = serde_json::from_slice(&bytes).ok();
            summary["type"] = value.as_ref().map_or("bytes", kind).into();
            summary["rows"] = value.as_ref().and_then(Value::as_array).map(Vec::len).into();
            (summary, None)
        }
        Err(error) => (summary, Some(error.to_string())),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_payload_is_looked_at_once_and_all_references_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        let kept = payloads.put_bytes(b"[1,2,3]".as_slice().into()).await.expect("kept");
        let (here, gone) = (kept.digest.hex(), Digest::of(b"gone").hex());
        let state = json!({
            "stages": {"a#1": {"reference": {"sha256": here, "bytes": 7}}, "b#1": {"sha256": here, "size": 7}},
            "execution": {"output": [{"sha256": gone, "bytes": 4}], "playbook": {"sha256": gone}},
        });
        let (found, summary) = resolve(&payloads, &state).await;
        assert_eq!(found[&here]["rows"], 3);
        assert_eq!((&found[&here]["type"], &found[&here]["references"]), (&json!("array"), &json!(2)));
        assert_eq!((&found[&here]["verified"], &found[&here]["error"]), (&json!(true), &Value::Null));
        assert!(found[&gone]["error"].is_string(), "{found}");
        for (name, wanted) in [("total", 3), ("resolved", 2), ("unresolved", 1), ("unique", 2)] {
            assert_eq!(summary[name], wanted, "{name}");
        }
        assert_eq!(summary["all_resolved"], false);
    }
}
