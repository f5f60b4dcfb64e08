//! The built component in the real host.

use noetl_sdk::harness::{Harness, HarnessError};
use serde_json::{Value, json};

#[test]
fn the_component_greets() -> Result<(), HarnessError> {
    let mut plugin = Harness::build(env!("CARGO_MANIFEST_DIR"))?.start()?;

    let called = plugin.call_json(json!({ "name": "Ada" }))?;
    assert_eq!(called.json::<Value>().expect("the output is JSON"), json!({ "greeting": "Hello, Ada!" }));
    assert_eq!(called.logs[0].message, "greeting");

    let refused = plugin.call_json(json!({ "name": " " })).expect_err("an empty name is refused");
    assert_eq!(refused.code(), Some("invalid_input"));
    Ok(())
}
