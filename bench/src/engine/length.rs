//! What a step costs in playbooks of ten, a hundred and a thousand steps: the same, unless something looks at the whole.
//!
//! The cost is processor time of the server. A rate would say as much about how many executions fit into a commit.

use std::time::Duration;

use anyhow::Result;

use super::playbooks::Playbook;
use super::stand::{LENGTHS, Stand};
use super::turn::Turn;
use crate::rows::{Better, Row, Rows};

const CALLERS: u64 = 20;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(3);

pub async fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let mut costs: [Vec<f64>; LENGTHS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (costs, steps) in costs.iter_mut().zip(LENGTHS) {
            costs.push(Turn::take(stand, &Playbook::pure(steps), CALLERS, TIME).await?.cpu_us);
        }
    }
    for (of_these, steps) in costs.iter().zip(LENGTHS) {
        let pairs: Vec<(f64, f64)> = of_these.iter().copied().zip(costs[0].iter().copied()).collect();
        let row = Row::of_pairs(&pairs, "µs", Better::Lower);
        rows.add(format!("CPU of the server, a step of {steps}; baseline: a step of {}", LENGTHS[0]), row);
    }
    Ok(())
}
