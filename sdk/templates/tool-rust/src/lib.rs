//! `{{path}}`: a tool that counts how often it was called for a name.

use noetl_sdk::tool::{Request, Response};
use noetl_sdk::{Failure, kv, log};
use serde::{Deserialize, Serialize};

noetl_sdk::tool!(call);

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

#[derive(Serialize)]
struct Output {
    name: String,
    calls: u64,
}

fn call(request: Request) -> Result<Response, Failure> {
    let Arguments { name } = request.parse()?;
    let key = key_of(&name)?;
    // The write is kept only if this call succeeds.
    let calls = kv::get_json::<u64>(&key)?.unwrap_or(0) + 1;
    kv::put_json(&key, &calls)?;
    log::info!("counted"; name = name, calls = calls);
    Response::json(&Output { name, calls })
}

fn key_of(name: &str) -> Result<String, Failure> {
    if name.is_empty() {
        return Err(Failure::invalid_input("`name` is empty"));
    }
    Ok(format!("calls/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_needs_a_name() {
        assert_eq!(key_of("Ada"), Ok("calls/Ada".to_owned()));
        assert!(key_of("").is_err());
    }
}
