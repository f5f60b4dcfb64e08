//! Whether executions that have ended slow down those that run, and how quickly the newest of them are listed.
//!
//! A server with them takes turns with one that has none: before and after on one server would compare two moments of the
//! machine as well.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::bounded;
use super::load::Times;
use super::playbooks::Playbook;
use super::stand::Stand;
use super::turn::Turn;
use crate::rows::{Better, Row, Rows, median};

const CALLERS: u64 = 200;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);
/// First pages asked for.
const PAGES: usize = 50;
const ENDED: &str = "noetl_executions_ended_total{status=\"completed\"}";

pub async fn measure(stand: &Stand, finished: u32, rows: &mut Rows) -> Result<()> {
    finish(stand, finished).await?;
    slowdown(stand, finished, rows).await?;
    pages(stand, rows).await
}

/// Lets so many executions run to their end.
async fn finish(stand: &Stand, count: u32) -> Result<()> {
    let before = stand.metrics().await?.sum(ENDED);
    stand.start_many(&Playbook::pure(1), count).await?;
    stand.until_live(0).await?;
    let ended = stand.metrics().await?.sum(ENDED) - before;
    ensure!(ended == f64::from(count), "{ended} of {count} executions have completed");
    stand.settled().await
}

async fn slowdown(stand: &Stand, finished: u32, rows: &mut Rows) -> Result<()> {
    let fresh = Stand::start().await?;
    fresh.prepare().await?;
    let playbook = Playbook::pure(10);
    let mut pairs = Vec::new();
    for _ in 0..=ROUNDS {
        let with = Turn::take(stand, &playbook, CALLERS, TIME).await?.rate;
        let without = Turn::take(&fresh, &playbook, CALLERS, TIME).await?.rate;
        pairs.push((with, without));
    }
    // The first turns warm up.
    let pairs = &pairs[1..];
    let slower = median(pairs.iter().map(|(with, without)| (without / with - 1.0) * 100.0));
    let mut row = bounded(slower, "%", (10.0, 2.0));
    row.ratio = Some(median(pairs.iter().map(|(with, without)| with / without)));
    rows.add(format!("slowdown after {finished} finished executions, beside a fresh server"), row);
    Ok(())
}

async fn pages(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let count = stand.metrics().await?.sum("noetl_executions_started_total");
    let request = stand.target.get("/api/executions");
    let mut connection = stand.target.connect().await?;
    let mut times = Vec::new();
    for _ in 0..PAGES {
        let asked = Instant::now();
        let answer = connection.exchange(&request).await?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
        ensure!(answer.status == 200, "the list of executions: {}", answer.text());
    }
    let times = Times::new(times);
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let mut row = Row::new(times.at(part), "ms", Better::Lower);
        row.floor = Some(50.0);
        rows.add(format!("first page of {count} executions, {name}"), row);
    }
    Ok(())
}
