//! Starting the engine: open what it stands on, start its threads, and take up what was running.

use std::sync::Arc;

use noetl_registry::playbooks::Playbooks;
use noetl_store::log::{Log, ReadError};
use noetl_store::projections::Projections;
use tokio::sync::{Notify, mpsc, watch};

use super::background::{self, Background};
use super::clock::Clock;
use super::hub::Hub;
use super::ids::Mint;
use super::message::Message;
use super::metrics::EngineMetrics;
use super::pools::Pools;
use super::shard::Shard;
use super::{Engine, EngineOptions, SHARD_THREAD, Shared, channel, recover, shard_of};
use crate::Kernel;
use crate::error::StartError;

pub fn open(kernel: &Arc<Kernel>, options: &EngineOptions) -> Result<Engine, StartError> {
    let log = kernel.log.clone();
    let port: Arc<dyn Log> = log.clone();
    let failed = |what: &'static str| {
        move |error: Box<dyn std::error::Error + Send + Sync>| StartError::Engine { what, source: error }
    };
    let playbooks =
        Playbooks::open(port, kernel.payloads.clone()).map_err(|error| failed("the playbooks")(error.into()))?;
    let tip = *log.tip().borrow();
    let projections = Projections::open(kernel.folder.projections_file(), tip)
        .map_err(|error| failed("the projections")(error.into()))?;
    let count = shard_count(options);
    let metrics = kernel.register_metrics(|registry| EngineMetrics::register(registry, count));
    let newest = newest_time(&*log, tip).map_err(|error| failed("the log")(error.into()))?;
    let (checkpoints, due) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        log,
        playbooks,
        projections,
        clock: Clock::start(newest),
        mint: Mint::new(kernel.boot),
        metrics,
        hub: Hub::new(),
        environment: environment(options),
        seals: kernel.wallet().seals().clone(),
        lenient: options.lenient,
        hurry: Notify::new(),
        checkpoints,
    });
    let (stopping, _) = watch::channel(false);
    let shards = (0..count)
        .map(|number| start_shard(kernel, &shared, options, number, count))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed("a thread")(error.into()))?;
    let open = recover::open_executions(&shared).map_err(|error| failed("the log")(error.into()))?;
    for (execution, tenant, root) in open {
        // The shard has just been started, and nobody else knows it yet.
        let _ = shards[shard_of(root, count)].send(Message::Recover { execution, tenant, root });
    }
    for shard in &shards {
        let _ = shard.send(Message::Recovered);
    }
    let background = Background::start(kernel, &shared, due, stopping.subscribe())
        .map_err(|error| failed("a thread")(error.into()))?;
    Ok(Engine { shared, shards, background, stopping, kernel: Arc::downgrade(kernel) })
}

fn shard_count(options: &EngineOptions) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if options.shards == 0 { (cores / 2).max(1) } else { options.shards }
}

fn environment(options: &EngineOptions) -> Vec<(String, String)> {
    let known = options.environment.iter();
    known.filter_map(|name| std::env::var(name).ok().map(|value| (name.clone(), value))).collect()
}

/// Time of the newest segment; the clock may have been set back since.
fn newest_time(log: &dyn Log, tip: u64) -> Result<u64, ReadError> {
    let last = log.read_all(tip.saturating_sub(1), 1)?;
    Ok(last.last().map_or(0, |segment| segment.time_ms))
}

fn start_shard(
    kernel: &Arc<Kernel>,
    shared: &Arc<Shared>,
    options: &EngineOptions,
    number: usize,
    count: usize,
) -> std::io::Result<mpsc::UnboundedSender<Message>> {
    let (sender, receiver) = channel();
    let shard = Shard {
        number,
        kernel: Arc::downgrade(kernel),
        shared: shared.clone(),
        sender: sender.clone(),
        residents: kernel.host.residents(),
        orchestrator: None,
        runner: None,
        inline: Default::default(),
        inbox: Default::default(),
        live: Default::default(),
        tasks: Default::default(),
        pools: Pools::new(&options.pools, count),
        turns: Vec::new(),
        timers: Default::default(),
        in_flight: None,
        evict: Vec::new(),
        unaccounted: Vec::new(),
        paused: false,
    };
    background::thread(format!("{SHARD_THREAD}{number}"), shard.run(receiver))?;
    Ok(sender)
}
