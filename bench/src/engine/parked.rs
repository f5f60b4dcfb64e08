//! Executions that wait for somebody: what each holds in memory, and how quickly one goes on among ten thousand.
//!
//! The server is a fresh one, because memory that earlier load has freed would be used again and not be seen.

use std::time::Instant;

use anyhow::{Result, ensure};

use super::http::JSON;
use super::load::Times;
use super::playbooks::{PARKED_STEP, Playbook};
use super::stand::Stand;
use crate::rows::{Better, Row, Rows};

const LIVE: u32 = 10_000;
/// Those of them that go on, one after the other.
const RESUMED: usize = 200;

pub async fn measure(rows: &mut Rows) -> Result<()> {
    let stand = Stand::start().await?;
    stand.prepare().await?;
    let before = stand.server.resident_mib()?;
    let ids = stand.start_many(&Playbook::parked(), LIVE).await?;
    stand.until_live(LIVE).await?;
    stand.settled().await?;
    let each = (stand.server.resident_mib()? - before) * 1024.0 / f64::from(LIVE);
    rows.add(format!("memory, a live execution of {LIVE}"), Row::new(each, "KiB", Better::Lower));

    let times = resume(&stand, &ids[..RESUMED]).await?;
    for (name, part) in [("p50", 0.5), ("p99", 0.99)] {
        let row = Row::new(times.at(part), "ms", Better::Lower);
        rows.add(format!("resume one of {LIVE}, one caller, {name}"), row);
    }
    Ok(())
}

async fn resume(stand: &Stand, ids: &[String]) -> Result<Times> {
    let body = format!("{{\"step\":\"{PARKED_STEP}\",\"value\":{{\"n\":1}}}}");
    let mut connection = stand.target.connect().await?;
    let mut times = Vec::new();
    for id in ids {
        let request = stand.target.post(&format!("/api/executions/{id}/resume"), JSON, body.as_bytes());
        let asked = Instant::now();
        let answer = connection.exchange(&request).await?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
        ensure!(answer.status == 200, "execution {id} does not go on: {}", answer.text());
    }
    Ok(Times::new(times))
}
