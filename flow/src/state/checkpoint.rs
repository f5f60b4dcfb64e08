//! A state in bytes, and its checksum.
//!
//! A checkpoint is a shortcut and never the truth: one made by a fold of another version is refused, and the chain is
//! folded from its first event instead.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Broken, State};

/// Raised whenever the same events fold to another state, or a state is written differently.
pub const FOLD_VERSION: u32 = 2;

#[derive(Serialize)]
struct Written<'a> {
    fold: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct Version {
    fold: u32,
}

#[derive(Deserialize)]
struct Read {
    state: State,
}

pub fn checkpoint(state: &State) -> Vec<u8> {
    serde_json::to_vec(&Written { fold: FOLD_VERSION, state }).expect("a state has text keys only")
}

pub fn restore(bytes: &[u8]) -> Result<State, Broken> {
    let version: Version =
        serde_json::from_slice(bytes).map_err(|error| Broken(format!("not a checkpoint: {error}")))?;
    if version.fold != FOLD_VERSION {
        let problem = format!("the checkpoint is of fold {}, this is fold {FOLD_VERSION}", version.fold);
        return Err(Broken(problem + ": fold the chain from its first event"));
    }
    let read: Read = serde_json::from_slice(bytes).map_err(|error| Broken(format!("not a checkpoint: {error}")))?;
    Ok(read.state)
}

/// The sha256 of the state as JSON with sorted keys, in hexadecimal.
pub fn checksum(state: &State) -> String {
    let value = serde_json::to_value(state).expect("a state has text keys only");
    hex::encode(Sha256::digest(canonical(&value)))
}

fn canonical(value: &serde_json::Value) -> Vec<u8> {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    serde_json::to_vec(&sorted).expect("JSON values are written without fail")
}
