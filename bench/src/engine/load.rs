//! Callers that start a playbook, wait for its end, check the answer, and start the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::http::{Connection, JSON, Target};
use super::playbooks::Playbook;

const RUN: &str = "/api/execute?wait=30";
/// Numbers of one caller; the next caller's begin behind them, so that no answer can pass for another's.
const NUMBERS: u64 = 1_000_000;

/// What callers got done.
pub struct Load {
    pub executions: u64,
    pub took: Duration,
    pub times: Times,
}

/// So many callers for so long. Executions begun in that time are waited for.
pub async fn callers(target: &Arc<Target>, playbook: &Arc<Playbook>, count: u64, time: Duration) -> Result<Load> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(target.connect().await?);
    }
    let began = Instant::now();
    let callers: Vec<_> = (0_u64..)
        .zip(connections)
        .map(|(caller, connection)| {
            let (target, playbook) = (Arc::clone(target), Arc::clone(playbook));
            tokio::spawn(async move { until(began + time, &target, &playbook, connection, caller * NUMBERS).await })
        })
        .collect();
    let mut times = Vec::new();
    for caller in callers {
        times.extend(caller.await.context("a caller ended early")??);
    }
    Ok(Load { executions: times.len() as u64, took: began.elapsed(), times: Times::new(times) })
}

/// How long each execution took, in milliseconds.
async fn until(
    end: Instant,
    target: &Target,
    playbook: &Playbook,
    mut connection: Connection,
    first: u64,
) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let mut n = first;
    while Instant::now() < end {
        let request = target.post(RUN, JSON, playbook.request(n).as_bytes());
        let asked = Instant::now();
        let answer = connection.exchange(&request).await?;
        times.push(asked.elapsed().as_secs_f64() * 1e3);
        playbook.check(n, &answer)?;
        n += 1;
    }
    Ok(times)
}

/// Times, the shortest first.
pub struct Times(Vec<f64>);

impl Times {
    pub fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// The time that this part of them did not exceed; 0 of nothing.
    pub fn at(&self, part: f64) -> f64 {
        let rank = (part * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_time_that_was_measured() {
        let times = Times::new((1..=100).rev().map(f64::from).collect());
        assert_eq!((times.at(0.5), times.at(0.99), times.at(1.0)), (50.0, 99.0, 100.0));
        assert_eq!((times.at(0.0), times.at(0.001)), (1.0, 1.0));
    }

    #[test]
    fn few_times_have_percentiles_too() {
        assert_eq!(Times::new(vec![7.0]).at(0.99), 7.0);
        assert_eq!(Times::new(vec![2.0, 1.0]).at(0.5), 1.0);
        assert_eq!(Times::new(Vec::new()).at(0.5), 0.0);
    }
}
