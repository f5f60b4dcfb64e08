//! Uses exactly the capabilities that are enabled as features, each for real, and answers with what came back.
//!
//! With one feature the answer is that capability's; with several they are joined by line breaks; with none the input
//! comes back and the component imports no capability at all. Each probe fails loudly when the capability answers
//! something else than it should.

#[cfg(feature = "clock")]
mod clock;
#[cfg(feature = "files")]
mod files;
#[cfg(feature = "http_client")]
mod http_client;
#[cfg(feature = "kv")]
mod kv;
#[cfg(feature = "log")]
mod log;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "objects")]
mod objects;
#[cfg(feature = "payload")]
mod payload;
#[cfg(feature = "process")]
mod process;
#[cfg(feature = "random")]
mod random;
#[cfg(feature = "secrets")]
mod secrets;
#[cfg(feature = "sql")]
mod sql;

use noetl_sdk::Failure;

noetl_sdk::transform!(run);

fn run(input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let probes: &[fn(&[u8]) -> Result<Vec<u8>, Failure>] = &[
        #[cfg(feature = "log")]
        log::probe,
        #[cfg(feature = "metrics")]
        metrics::probe,
        #[cfg(feature = "clock")]
        clock::probe,
        #[cfg(feature = "random")]
        random::probe,
        #[cfg(feature = "kv")]
        kv::probe,
        #[cfg(feature = "objects")]
        objects::probe,
        #[cfg(feature = "payload")]
        payload::probe,
        #[cfg(feature = "http_client")]
        http_client::probe,
        #[cfg(feature = "secrets")]
        secrets::probe,
        #[cfg(feature = "files")]
        files::probe,
        #[cfg(feature = "sql")]
        sql::probe,
        #[cfg(feature = "nats")]
        nats::probe,
        #[cfg(feature = "process")]
        process::probe,
    ];
    if probes.is_empty() {
        return Ok(input);
    }
    let answers = probes.iter().map(|probe| probe(&input)).collect::<Result<Vec<_>, _>>()?;
    Ok(answers.join(&b'\n'))
}
