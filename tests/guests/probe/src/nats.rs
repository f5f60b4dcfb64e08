//! Asks for a value with a credential that nobody has, and answers with what was said of it.

use noetl_sdk::{Failure, nats};

pub fn probe(_: &[u8]) -> Result<Vec<u8>, Failure> {
    let at = nats::Server {
        credential: Some("nobody's credential".to_owned()),
        url: None,
        user: None,
        password: None,
        token: None,
    };
    match nats::kv_get(&at, "bucket", "key") {
        Err(nats::Error::Credential(said)) => Ok(said.into_bytes()),
        other => Err(Failure::new("unexpected", format_args!("{:?}", other.err()))),
    }
}
