//! Playbooks on the real binary, started over HTTP, with everything durable before it is acknowledged.
//!
//! Callers and server share one machine; the callers are one thread. Whatever has a counterpart is measured in turns
//! with it: the disk alone, other engines, a server without history. Every answer is checked, and a wrong one ends the
//! bench.

mod alone;
mod busy;
mod history;
mod http;
mod length;
mod load;
mod parked;
pub(crate) mod peers;
mod playbooks;
mod process;
mod stand;
mod turn;

use anyhow::Result;
use clap::ValueEnum;

use crate::Options;
use crate::rows::{Better, Row, Rows};
use stand::Stand;

/// What can be measured alone, to see what a change does without waiting for the rest.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// One caller.
    Alone,
    /// Many callers.
    Busy,
    /// Playbooks of many steps.
    Length,
    /// Executions that wait.
    Parked,
    /// Executions that have ended.
    History,
}

pub fn run(options: Options) -> Result<Rows> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: Options) -> Result<Rows> {
    let mut rows = Rows::default();
    say("starting a server");
    let stand = Stand::start().await?;
    rows.add("memory, idle", bounded(stand.server.resident_mib()?, "MiB", (120.0, 40.0)));
    stand.prepare().await?;
    let wanted = |part| options.only.is_none_or(|only| only == part);
    if wanted(Part::Alone) {
        say("one caller");
        alone::measure(&stand, &mut rows).await?;
    }
    if wanted(Part::Busy) {
        busy::measure(&stand, &mut rows).await?;
    }
    if wanted(Part::Length) {
        say("playbooks of many steps");
        length::measure(&stand, &mut rows).await?;
    }
    if wanted(Part::Parked) {
        say("executions that wait");
        parked::measure(&mut rows).await?;
    }
    if wanted(Part::History) {
        say("executions that have ended");
        history::measure(&stand, options.finished, &mut rows).await?;
    }
    Ok(rows)
}

/// The bench takes minutes; this says what they are spent on.
fn say(what: &str) {
    eprintln!("engine: {what}");
}

/// A number of which less is better, with its floor and goal.
fn bounded(value: f64, unit: &'static str, (floor, goal): (f64, f64)) -> Row {
    let mut row = Row::new(value, unit, Better::Lower);
    (row.floor, row.goal) = (Some(floor), Some(goal));
    row
}
