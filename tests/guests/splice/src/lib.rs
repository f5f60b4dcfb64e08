//! Makes, copies and joins objects of any size in a small, constant amount of memory.
//!
//! The input is one of
//! - `{"make": key, "mib": n}`: write n MiB, one at a time, each beginning with its number as eight bytes;
//! - `{"from": key, "to": key}`: name the same payload again, without reading it;
//! - `{"concat": [key, ...], "to": key}`: join payloads in the host.
//!
//! The answer is `{"key", "size", "digest"}` of the object that was put.

use noetl_sdk::Failure;
use noetl_sdk::objects::{self, ObjectInfo};
use noetl_sdk::payload::{Payload, Writer};
use serde::{Deserialize, Serialize};

noetl_sdk::transform_json!(run);

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Task {
    Make { make: String, mib: u64 },
    Copy { from: String, to: String },
    Join { concat: Vec<String>, to: String },
}

#[derive(Serialize)]
struct Done {
    key: String,
    size: u64,
    digest: String,
}

const MEDIA_TYPE: &str = "application/octet-stream";

fn run(task: Task) -> Result<Done, Failure> {
    let ObjectInfo { key, size, digest, .. } = match task {
        Task::Make { make, mib } => objects::put(&make, &filled(mib)?)?,
        Task::Copy { from, to } => objects::put(&to, &open(&from)?)?,
        Task::Join { concat, to } => objects::put(&to, &joined(&concat)?)?,
    };
    Ok(Done { key, size, digest })
}

fn open(key: &str) -> Result<Payload, Failure> {
    objects::open(key)?.ok_or_else(|| Failure::not_found(format_args!("there is no object `{key}`")))
}

fn filled(mib: u64) -> Result<Payload, Failure> {
    let mut writer = Writer::new(MEDIA_TYPE);
    let mut block = vec![0xa5; 1 << 20];
    for number in 0..mib {
        block[..8].copy_from_slice(&number.to_le_bytes());
        writer.append(&block)?;
    }
    Ok(writer.finish()?)
}

fn joined(keys: &[String]) -> Result<Payload, Failure> {
    let mut writer = Writer::new(MEDIA_TYPE);
    for key in keys {
        let part = open(key)?;
        writer.splice(&part, 0, part.size())?;
    }
    Ok(writer.finish()?)
}
