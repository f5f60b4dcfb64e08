//! A result of 256 MiB from step to step: fetched over HTTP, kept as a payload, handed on by reference and sent out again,
//! the same bytes by their hash; beside a bare client with a synced file in the payload's place. And the most memory the
//! server ever had, which must not know how large a result is.
//!
//! The server is a fresh one, because the peak of a process is never forgotten. The bytes are others each time, since what
//! is there already would be stored once.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use bytes::Bytes;
use reqwest::{Body, Client};
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

use super::stand::Stand;
use super::turns::timed;
use super::upstream::Upstream;
use crate::rows::{Better, Row, Rows};
use crate::server;

const LARGE: usize = 256 << 20;
/// What the way is walked with once before.
const SMALL: usize = 1 << 20;
const ROUNDS: u64 = 3;
/// Bytes read from the file at once.
const PIECE: usize = 256 << 10;

pub async fn measure(rows: &mut Rows) -> Result<()> {
    let (stand, upstream, folder) = (Stand::start().await?, Upstream::start().await?, server::folder()?);
    let (from, to) = (format!("{}/large", upstream.url), format!("{}/digest", upstream.url));
    let fetch = json!({"kind": "http", "url": from, "response_type": "binary"});
    let send = json!({"kind": "http", "method": "POST", "url": to, "body_ref": "{{ start._ref }}"});
    let workflow = json!([
        {"step": "start", "tool": fetch, "next": {"arcs": [{"step": "send"}]}},
        {"step": "send", "tool": send},
    ]);
    let mut playbook = stand.playbook("large", &workflow, "/data", upstream.offer(noise(0, SMALL))).await?;
    let bare = Spool { client: server::client()?, from, to, file: folder.path().join("spool") };
    stand.run(&playbook).await?;
    bare.pass_on(&playbook.answer).await?;
    let before = stand.server.peak_mib()?;

    let mut pairs = Vec::new();
    for round in 1..=ROUNDS {
        playbook.answer = upstream.offer(noise(round, LARGE));
        let ours = stand.run(&playbook).await?;
        pairs.push((ours, timed(bare.pass_on(&playbook.answer)).await?));
    }
    let row = Row::of_pairs(&pairs, "ms", Better::Lower);
    rows.add("256 MiB from http by reference to http; baseline: bare reqwest with a synced file between", row);

    let mut row = Row::new(stand.server.peak_mib()?, "MiB", Better::Lower);
    (row.floor, row.goal) = (Some(250.0), Some(100.0));
    (row.baseline, row.ratio) = (Some(before), Some(row.value / before));
    rows.add("memory, most ever, 256 MiB from step to step; baseline: 1 MiB", row);
    Ok(())
}

/// Bytes that do not compress, others for every seed.
fn noise(seed: u64, bytes: usize) -> Bytes {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut noise = Vec::with_capacity(bytes);
    while noise.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    noise.into()
}

/// The same way without a server.
struct Spool {
    client: Client,
    from: String,
    to: String,
    file: PathBuf,
}

impl Spool {
    async fn pass_on(&self, wanted: &Value) -> Result<()> {
        let mut answer = self.client.get(&self.from).send().await?.error_for_status()?;
        let mut file = File::create(&self.file).await?;
        while let Some(piece) = answer.chunk().await? {
            file.write_all(&piece).await?;
        }
        file.sync_all().await?;
        let body = Body::wrap_stream(ReaderStream::with_capacity(File::open(&self.file).await?, PIECE));
        let said: Value = self.client.post(&self.to).body(body).send().await?.error_for_status()?.json().await?;
        ensure!(said == *wanted, "{said} arrived instead of {wanted}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_as_long_as_asked_for_and_other_for_every_round() {
        let rounds: Vec<Bytes> = (0..=ROUNDS).map(|round| noise(round, 64)).collect();
        assert!(rounds.iter().all(|bytes| bytes.len() == 64));
        assert!(rounds.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
