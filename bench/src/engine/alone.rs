//! One caller, one execution at a time: how long a playbook takes when nobody else wants anything.
//!
//! Beside each median stands what one record costs, written and synced by itself in the same seconds.

use std::time::Duration;

use anyhow::Result;

use super::bounded;
use super::load::{self, Times};
use super::playbooks::Playbook;
use super::stand::Stand;
use crate::log::Raw;
use crate::rows::{Rows, median};
use crate::server;

const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(2);

pub async fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let folder = server::folder()?;
    let mut raw = Raw::new(folder.path())?;
    raw.rate(1)?;
    let (one, ten) = (Playbook::pure(1), Playbook::pure(10));
    let (mut ones, mut tens, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ones.push(load::callers(&stand.target, &one, 1, TIME).await?.times);
        syncs.push(1e3 / raw.rate(1)?);
        tens.push(load::callers(&stand.target, &ten, 1, TIME).await?.times);
    }
    stand.settled().await?;
    let sync = median(syncs);
    let at = |rounds: &[Times], part: f64| median(rounds.iter().map(|times| times.at(part)));
    for (name, value, bounds) in [
        ("one step, one caller, p50; baseline: one sync", at(&ones, 0.5), (2.0, 0.5)),
        ("one step, one caller, p99; baseline: one sync", at(&ones, 0.99), (6.0, 1.2)),
        ("ten steps, one caller, p50; baseline: one sync", at(&tens, 0.5), (6.0, 2.0)),
    ] {
        let mut row = bounded(value, "ms", bounds);
        (row.baseline, row.ratio) = (Some(sync), Some(value / sync));
        rows.add(name, row);
    }
    Ok(())
}
