//! Our turns and those of what a tool is beside.

use std::time::Instant;

use anyhow::Result;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::stand::{Playbook, REPEATED, Stand};
use crate::rows::{Better, Row};

/// Turns of single steps; each is short, so that many fit between two moods of the machine.
const ROUNDS: usize = 40;
/// Turns of loops.
const REPEATED_ROUNDS: usize = 5;

/// The work of a step without a server.
pub trait Bare {
    /// Does it once, and checks what comes of it.
    async fn turn(&self) -> Result<()>;
}

/// One step beside the bare work.
pub async fn single(stand: &Stand, playbook: &Playbook, bare: &impl Bare) -> Result<Row> {
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let ours = stand.run(playbook).await?;
        pairs.push((ours, timed(bare.turn()).await?));
    }
    Ok(row(&pairs))
}

/// A loop of steps beside as much bare work, so much of it at a time.
pub async fn repeated(stand: &Stand, playbook: &Playbook, bare: &impl Bare, at_once: usize) -> Result<Row> {
    let mut pairs = Vec::new();
    for _ in 0..=REPEATED_ROUNDS {
        let ours = stand.run(playbook).await?;
        let turns = stream::iter(0..REPEATED).map(|_| bare.turn()).buffer_unordered(at_once);
        pairs.push((ours, timed(turns.try_for_each(|()| async { Ok(()) })).await?));
    }
    Ok(row(&pairs))
}

/// Milliseconds that some work takes.
pub async fn timed(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let began = Instant::now();
    work.await?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// Of all turns but the first, which warm up.
fn row(pairs: &[(f64, f64)]) -> Row {
    Row::of_pairs(&pairs[1..], "ms", Better::Lower)
}
