//! Uses the standard library as an ordinary program does and tells what it saw.
//!
//! A host that is right gives it a clock and randomness, an empty environment, no arguments, no files, and takes its
//! output as log lines.

use std::collections::HashMap;
use std::time::SystemTime;

use noetl_sdk::Failure;
use serde_json::{Value, json};

noetl_sdk::transform!(run);

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    println!("a line on standard output");
    eprintln!("a line on standard error");
    let mut counts: HashMap<u8, u32> = HashMap::new();
    for byte in &input {
        *counts.entry(*byte).or_default() += 1;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let answer: Value = json!({
        "distinct_bytes": counts.len(),
        "unix_seconds": now.map(|now| now.as_secs()).ok(),
        "environment": std::env::vars().collect::<Vec<_>>(),
        "arguments": std::env::args().collect::<Vec<_>>(),
        "passwd_bytes": std::fs::read("/etc/passwd").map(|content| content.len()).ok(),
        "root_entries": std::fs::read_dir("/").map(Iterator::count).ok(),
        "could_write": std::fs::write("/tmp/noetl-wasi-guest", "x").is_ok(),
    });
    Ok(answer.to_string().into_bytes())
}
