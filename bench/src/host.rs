//! A call through the host, against the same component called with bare wasmtime in the same run; and the
//! server itself: how fast it starts, what it holds when idle, how long a swap makes a caller wait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use futures::future::BoxFuture;
use noetl_contract::manifest::InstancePolicy;
use noetl_contract::{CapabilitySet, Digest, Limits, Manifest, PluginPath, Ring, Tenant, inspect};
use noetl_host::caps::files::Files;
use noetl_host::caps::http_client::{Outbound, OutboundError, OutboundRequest, OutboundResponse};
use noetl_host::caps::log::{Level, LogSink};
use noetl_host::caps::nats::Connections;
use noetl_host::caps::process::Programs;
use noetl_host::caps::sql::{Databases, SqlOptions};
use noetl_host::caps::{Drivers, metrics::CustomMetrics};
use noetl_host::compile::CompileOptions;
use noetl_host::egress::Addresses;
use noetl_host::{Call, Host, HostOptions, Identity, Input, Module, Script, Spec};
use noetl_store::index::Index;
use noetl_store::log::file::{FileLog, FileLogOptions};
use noetl_store::payloads::Payloads;
use prometheus_client::registry::Registry;
use tokio::runtime::Runtime;

use crate::extism::Extism;
use crate::rows::{Better, Row, Rows, median};
use crate::{bare, languages, server};

const ROUNDS: usize = 15;
const PEER_ROUNDS: usize = 5;
const CALLS: usize = 2_000;
/// Calls waiting for one shard at a time: a shard is fed in batches, never one by one.
const IN_FLIGHT: usize = 64;
const INPUT: &[u8] = b"hello";

pub fn run() -> Result<Rows> {
    let folder = server::folder()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let component = server::guest("probe-none")?;
    let mut rows = Rows::default();
    {
        let _inside = runtime.enter();
        let host = Arc::new(start(folder.path())?);
        let fresh = fresh(&runtime, &host, &component, &mut rows)?;
        let resident = resident(&runtime, &host, &component, &mut rows)?;
        beside_extism(&runtime, &host, [&fresh, &resident], &mut rows)?;
    }
    server::measure(&runtime, &mut rows)?;
    languages::measure(&runtime, &mut rows)?;
    Ok(rows)
}

fn fresh(runtime: &Runtime, host: &Arc<Host>, component: &[u8], rows: &mut Rows) -> Result<Arc<Module>> {
    let module = prepare(runtime, host, component, InstancePolicy::Fresh)?;
    let mut bare = bare::Fresh::new(component)?;
    let mut here = Vec::new();
    let mut across = Vec::new();
    for _ in 0..=ROUNDS {
        let ours = on_its_threads(runtime, host, &module)?;
        let baseline = micros(bare.calls(CALLS, INPUT)?);
        here.push((micros(ours), baseline));
        across.push((micros(runtime.block_on(many_at_once(host, &module))?), baseline));
    }
    let mut row = Row::of_pairs(&here[1..], "µs", Better::Lower);
    (row.floor, row.goal) = (Some(40.0), Some(10.0));
    rows.add("fresh component call through the host", row);
    rows.add("the same, called from another thread", Row::of_pairs(&across[1..], "µs", Better::Lower));
    Ok(module)
}

fn on_its_threads(runtime: &Runtime, host: &Arc<Host>, module: &Arc<Module>) -> Result<Duration> {
    let threads = host.threads().context("the host is running")?;
    let (host, module) = (host.clone(), module.clone());
    runtime.block_on(threads.spawn(async move { one_by_one(&host, &module).await }))?
}

/// Both ways to call, turn by turn with the same in another plugin system.
fn beside_extism(
    runtime: &Runtime,
    host: &Arc<Host>,
    [fresh, resident]: [&Arc<Module>; 2],
    rows: &mut Rows,
) -> Result<()> {
    let Some(extism) = Extism::installed() else {
        eprintln!("host: Extism is not installed (`NOETL_PEERS` names the folder it would be in)");
        return Ok(());
    };
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..PEER_ROUNDS {
        let ours = micros(on_its_threads(runtime, host, fresh)?);
        let ours_kept = micros(runtime.block_on(many_at_once(host, resident))?);
        let theirs = extism.turn().context("Extism")?;
        made.push((ours, theirs.made_and_called));
        kept.push((ours_kept, theirs.called));
    }
    let beside = |pairs: &[(f64, f64)]| Row::of_pairs(pairs, "µs", Better::Lower);
    rows.add("fresh call (beside an Extism plugin, made and called)", beside(&made));
    rows.add("resident call (beside an Extism plugin that is kept)", beside(&kept));
    Ok(())
}

fn resident(runtime: &Runtime, host: &Arc<Host>, component: &[u8], rows: &mut Rows) -> Result<Arc<Module>> {
    // Other bytes, so that the module is another one: the version is part of them.
    let module = prepare(runtime, host, &renamed(component)?, InstancePolicy::Resident)?;
    let mut bare = bare::Resident::new(component)?;
    let pairs: Vec<(f64, f64)> = (0..=ROUNDS)
        .map(|_| {
            let ours = runtime.block_on(many_at_once(host, &module))?;
            Ok((micros(ours), micros(bare.calls(CALLS, INPUT)?)))
        })
        .collect::<Result<_>>()?;
    let overhead = median(pairs[1..].iter().map(|(ours, bare)| ours - bare));
    let mut row = Row::of_pairs(&pairs[1..], "µs", Better::Lower);
    row.value = overhead;
    (row.floor, row.goal) = (Some(2.0), Some(0.3));
    rows.add("resident call, overhead over bare wasmtime", row);
    Ok(module)
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6 / CALLS as f64
}

async fn one_by_one(host: &Host, module: &Arc<Module>) -> Result<Duration> {
    let who = identity(module);
    let started = Instant::now();
    for _ in 0..CALLS {
        call(host, module, &who).await?;
    }
    Ok(started.elapsed())
}

async fn many_at_once(host: &Host, module: &Arc<Module>) -> Result<Duration> {
    use futures::stream::{self, StreamExt, TryStreamExt};
    let who = identity(module);
    let started = Instant::now();
    let calls = stream::iter(0..CALLS).map(|_| call(host, module, &who)).buffer_unordered(IN_FLIGHT);
    calls.try_for_each(|()| async { Ok(()) }).await?;
    Ok(started.elapsed())
}

async fn call(host: &Host, module: &Arc<Module>, identity: &Arc<Identity>) -> Result<()> {
    let input = Input::Bytes(Bytes::from_static(INPUT));
    let finished =
        host.call(module, Call { identity: identity.clone(), capabilities: None, input, script: Script::Live }).await?;
    finished.outcome.map(drop).map_err(|failure| anyhow!("the guest failed: {}", failure.message))
}

fn identity(module: &Module) -> Arc<Identity> {
    let spec = module.spec();
    Arc::new(Identity {
        tenant: Tenant::main(),
        path: spec.path.clone(),
        version: spec.version.clone(),
        call: "bench".to_owned(),
        idempotency_key: "bench".to_owned(),
        attempt: 1,
    })
}

/// The same code under another version.
fn renamed(component: &[u8]) -> Result<Vec<u8>> {
    let changed = String::from_utf8_lossy(b"version = \"1.0.0\"").into_owned();
    let at = component.windows(changed.len()).position(|window| window == changed.as_bytes());
    let at = at.context("the guest's manifest says version 1.0.0")?;
    let mut bytes = component.to_vec();
    bytes[at..at + changed.len()].copy_from_slice(b"version = \"1.0.1\"");
    Ok(bytes)
}

fn prepare(runtime: &Runtime, host: &Host, component: &[u8], instance: InstancePolicy) -> Result<Arc<Module>> {
    let inspection = inspect::inspect(component)?;
    let manifest = Manifest::parse(inspection.manifest_text.as_deref().context("a manifest")?)
        .map_err(|problems| anyhow!("{problems}"))?;
    let spec = Spec {
        digest: Digest::of(component),
        // Only the platform's own components may be resident.
        path: PluginPath::new("system/bench")?,
        version: manifest.version,
        world: manifest.world,
        ring: Ring::Pure,
        capabilities: manifest.capabilities,
        limits: manifest.limits,
        instance,
        http: Arc::new(manifest.http),
        imports: inspection.imports,
        source: None,
    };
    let bytes = Bytes::copy_from_slice(component);
    Ok(runtime.block_on(host.prepare(spec, async || Ok(bytes)))?)
}

fn start(folder: &std::path::Path) -> Result<Host> {
    let log = FileLog::open(folder.join("log"), FileLogOptions::default()).context("open a log")?;
    let payloads = Payloads::open(folder.join("payloads"))?;
    let drivers = Drivers {
        log: Arc::new(Quiet),
        metrics: CustomMetrics::default(),
        index: Index::open(folder.join("index.db"), log)?,
        payloads,
        http: Arc::new(Quiet),
        nats: Connections::new(Addresses::default()),
        programs: Programs::new(None),
        wallet: Arc::new(noetl_store::wallet::Empty),
        seals: noetl_store::wallet::Seals::new([7; 32]),
        files: Files::default(),
        sql: Databases::new(Addresses::default(), SqlOptions::default()),
        max_payload: 1 << 30,
        max_temporary: 1 << 30,
    };
    let options = HostOptions {
        cache_dir: folder.join("cache"),
        threads: 1,
        shards: 1,
        memory_budget: 2 << 30,
        system_reserve: 0,
        ceiling: Limits { memory_bytes: 1 << 30, ..Limits::default() },
        max_modules: 16,
        max_instances: 64,
        compile: CompileOptions {
            program: server::noetl()?,
            arguments: vec!["compile".to_owned()],
            timeout: Duration::from_secs(60),
            memory_bytes: 2 << 30,
            jobs: 1,
        },
        denied: CapabilitySet::EMPTY,
    };
    Ok(Host::start(options, drivers, &mut Registry::default())?)
}

/// Nothing in these benches logs or goes out.
struct Quiet;

impl LogSink for Quiet {
    fn write(&self, _: &Identity, _: Level, _: &str, _: &[(String, String)]) {}
}

impl Outbound for Quiet {
    fn send(&self, _: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>> {
        Box::pin(async { Err(OutboundError::Failed("there is no way out of a bench".to_owned())) })
    }
}

/// Where guests and binary are; told by `cargo xtask bench`.
pub(crate) fn places() -> HashMap<&'static str, PathBuf> {
    ["NOETL_GUESTS_DIR", "NOETL_BIN"]
        .into_iter()
        .filter_map(|name| Some((name, PathBuf::from(std::env::var_os(name)?))))
        .collect()
}
