//! Answers with a marker that its own bytes carry, and with its input as text.
//!
//! Tests make many versions of this component without compiling: they replace the six digits of the marker, which is in
//! the component exactly once.

use noetl_sdk::Failure;
use serde_json::{Value, json};

noetl_sdk::transform!(run);

#[used]
static MARKER: [u8; 19] = *b"NOETL-MARKER-000000";

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    // The compiler must not know what it reads here, or it would spread copies of the marker through the code.
    let marker = std::hint::black_box(&MARKER);
    let answer: Value = json!({ "marker": String::from_utf8_lossy(marker), "echo": String::from_utf8_lossy(&input) });
    Ok(answer.to_string().into_bytes())
}
