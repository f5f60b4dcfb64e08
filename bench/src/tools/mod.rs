//! Steps of the tools that playbooks use most, each beside what one would write without a server: a process of `python3`,
//! a bare HTTP client, a bare SQL driver; and a large result on its way from step to step.
//!
//! A step is a whole playbook here, started over HTTP and waited for, with everything durable before it is acknowledged;
//! what it is beside does the work alone and forgets it. In a loop the price of an execution is shared by its steps. Both
//! sides take turns, and a wrong answer on either ends the bench.

mod http;
mod large;
mod postgres;
mod python;
mod stand;
mod turns;
mod upstream;

use anyhow::Result;

use crate::rows::Rows;
use stand::Stand;
use upstream::Upstream;

pub fn run() -> Result<Rows> {
    // The HTTP server that is asked has threads of its own, so that it does not wait for who asks.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Rows> {
    let mut rows = Rows::default();
    say("starting a server");
    let stand = Stand::start().await?;
    say("python");
    python::measure(&stand, &mut rows).await?;
    say("http");
    http::measure(&stand, &Upstream::start().await?, &mut rows).await?;
    say("postgres");
    postgres::measure(&stand, &mut rows).await?;
    drop(stand);
    say("a result of 256 MiB");
    large::measure(&mut rows).await?;
    Ok(rows)
}

/// The bench takes minutes; this says what they are spent on.
fn say(what: &str) {
    eprintln!("tools: {what}");
}
