//! The built component in the real host.

use noetl_sdk::harness::{Harness, HarnessError};
use serde_json::{Value, json};

#[test]
fn the_component_counts() -> Result<(), HarnessError> {
    let mut plugin = Harness::build(env!("CARGO_MANIFEST_DIR"))?.start()?;
    plugin.kv_set("calls/Ada", b"41")?;

    let called = plugin.call_json(json!({ "name": "Ada" }))?;
    assert_eq!(called.json::<Value>().expect("the output is JSON"), json!({ "name": "Ada", "calls": 42 }));
    assert_eq!(plugin.kv_get("calls/Ada")?.as_deref(), Some(&b"42"[..]));

    let refused = plugin.call_json(json!({})).expect_err("a name is missing");
    assert_eq!(refused.code(), Some("invalid_input"));
    assert_eq!(plugin.kv_get("calls/Ada")?.as_deref(), Some(&b"42"[..]), "a failed call writes nothing");
    Ok(())
}
