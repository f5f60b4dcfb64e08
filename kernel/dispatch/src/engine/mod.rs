//! The engine: what makes playbooks run on the kernel.
//!
//! The kernel keeps what must not fail: the inbox, the append, dispatch and pools, timers, recovery. What is decided,
//! how a command is run, how a state is built, what the tables show and what is published is each a component, called
//! as a pure function; the kernel does what they return.
//!
//! - `shard`: the thread that drives, with `cycle` (one commit), `decide` (the drive and its containment), `settle`
//!   (what a decision means), `turns` and `tools` (running commands), `recover`.
//! - `background`: projections, publishing, checkpoints, schedules.
//! - `queries`: events, replay, explanations.
//!
//! Invariant: nothing here reads an event, except that lines must be JSON with ids that go on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use noetl_contract::{Tenant, placeholder};
use noetl_host::services::orchestration::{Cancel, Happening, Report, Resume, Start};
use noetl_host::services::{chain, orchestration};
use noetl_registry::playbooks::{PlaybookEntry, PlaybookPath, Playbooks};
use noetl_store::log::file::FileLog;
use noetl_store::log::{Log, ReadError};
use noetl_store::projections::Projections;
use noetl_store::wallet::Seals;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::sync::{Notify, oneshot, watch};

use crate::Kernel;
use crate::error::StartError;

pub mod api;
mod background;
mod children;
mod clock;
mod cycle;
mod decide;
mod hub;
mod ids;
mod inbox;
mod message;
mod metrics;
mod pools;
mod queries;
mod recover;
mod register;
mod segment;
mod services;
mod settle;
mod shard;
mod start;
mod tasks;
mod timers;
mod tools;
mod turns;

pub use api::{Cutoff, Dedup, Ended, EngineError, EventPage, Execute, Started};
pub use background::outbox::OutboxRow;
pub use ids::{ExecutionId, NotAnExecution};
pub use register::Registered;

use background::Background;
use clock::Clock;
use hub::Hub;
use ids::Mint;
use message::{Message, Queued, Reply};
use metrics::EngineMetrics;
use segment::{for_services, stream_of};

/// How the engine is set up.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Threads that drive executions; 0 is half of the processors.
    pub shards: usize,
    /// Pools and how many commands each runs at once.
    pub pools: Vec<(String, usize)>,
    /// What `executor.spec.policy.failures` is where a playbook does not say.
    pub lenient: bool,
    /// Environment variables playbooks may see.
    pub environment: Vec<String>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let pools = vec![(pools::SHARED.to_owned(), 64), (pools::SYSTEM.to_owned(), 16)];
        Self { shards: 0, pools, lenient: false, environment: Vec::new() }
    }
}

/// Inputs that wait before a start is refused.
const MOST_WAITING: usize = 200_000;
/// What the names of the threads that drive begin with.
const SHARD_THREAD: &str = "engine-shard-";
/// Segments read from a chain at once.
const PAGE: usize = 512;

/// What shards, background work and callers share.
pub struct Shared {
    log: Arc<FileLog>,
    playbooks: Arc<Playbooks>,
    projections: Arc<Projections>,
    clock: Clock,
    mint: Mint,
    metrics: EngineMetrics,
    hub: Hub,
    environment: Vec<(String, String)>,
    seals: Seals,
    lenient: bool,
    /// Somebody waits for the tables.
    hurry: Notify,
    /// Executions whose chain has grown enough for a checkpoint.
    checkpoints: UnboundedSender<ExecutionId>,
}

/// A chain as it is needed to build a state.
pub(crate) struct Chain {
    pub(crate) checkpoint: Option<Vec<u8>>,
    pub(crate) segments: Vec<chain::Segment>,
}

/// A running engine.
pub struct Engine {
    shared: Arc<Shared>,
    shards: Vec<UnboundedSender<Message>>,
    background: Background,
    stopping: watch::Sender<bool>,
    kernel: Back,
}

impl Shared {
    /// The start of an execution of a playbook.
    fn start(
        &self,
        entry: &PlaybookEntry,
        tenant: &Tenant,
        payload: String,
        parent: Option<orchestration::Parent>,
        root: ExecutionId,
        requested_by: String,
    ) -> Start {
        // What was given is data: a secret in it goes on as its placeholder, and is in no event.
        let payload = crate::heard::come_in(tenant, payload);
        // Whoever renders the playbook writes placeholders, and nothing else can: not what it reads.
        let seal = (placeholder::SEAL.to_owned(), self.seals.of(tenant).text().to_owned());
        Start {
            tenant: tenant.to_string(),
            path: entry.path.as_str().to_owned(),
            version: entry.version,
            digest: entry.digest.hex(),
            payload,
            parent,
            root: root.0,
            pool: None,
            environment: self.environment.iter().cloned().chain([seal]).collect(),
            lenient: self.lenient,
            trace: None,
            requested_by,
            again: None,
            returns: None,
        }
    }

    fn playbook(&self, tenant: &Tenant, path: &str, version: Option<u32>) -> Option<Arc<PlaybookEntry>> {
        self.playbooks.resolve(tenant, &PlaybookPath::new(path).ok()?, version)
    }

    /// The newest checkpoint and what came after it. The keyed reads of the log, never the tables.
    fn chain(&self, execution: ExecutionId) -> Result<Chain, ReadError> {
        let checkpoint = self.projections.checkpoint(execution.0).ok().flatten();
        let (from, bytes) = checkpoint.map_or((0, None), |found| (found.version, Some(found.bytes.to_vec())));
        Ok(Chain { checkpoint: bytes, segments: self.segments(execution, from)? })
    }

    fn whole_chain(&self, execution: ExecutionId) -> Result<Vec<chain::Segment>, ReadError> {
        self.segments(execution, 0)
    }

    /// The segments after a version.
    fn segments(&self, execution: ExecutionId, after: u64) -> Result<Vec<chain::Segment>, ReadError> {
        let stream = stream_of(execution);
        let mut segments = Vec::new();
        let mut from = after + 1;
        loop {
            let read = self.log.read_stream(&stream, from, PAGE)?;
            let count = read.len();
            segments.extend(read.iter().filter_map(for_services));
            if count < PAGE {
                return Ok(segments);
            }
            from += count as u64;
        }
    }

    fn consider_checkpoint(&self, execution: ExecutionId, version: u64) {
        if version.is_multiple_of(background::CHECKPOINT_EVERY) {
            // Background work is gone only when the server is.
            let _ = self.checkpoints.send(execution);
        }
    }
}

impl Engine {
    pub(crate) fn open(kernel: &Arc<Kernel>, options: &EngineOptions) -> Result<Self, StartError> {
        start::open(kernel, options)
    }

    pub fn playbooks(&self) -> &Arc<Playbooks> {
        &self.shared.playbooks
    }

    /// The tables. Driving never looks at them, and a counter says if it ever does.
    pub fn projections(&self) -> &Arc<Projections> {
        if std::thread::current().name().is_some_and(|name| name.starts_with(SHARD_THREAD)) {
            self.shared.metrics.table_reads.inc();
        }
        &self.shared.projections
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn send(&self, root: ExecutionId, message: Message) -> Result<(), EngineError> {
        let shard = shard_of(root, self.shards.len());
        self.shards[shard].send(message).map_err(|_| EngineError::Stopping)
    }

    /// Starts an execution; it is in the log when this answers.
    pub async fn execute(&self, execute: Execute) -> Result<Started, EngineError> {
        let (started, recorded) = self.begin(execute, Reply::Recorded).await?;
        if let Some(recorded) = recorded {
            recorded.await.map_err(|_| EngineError::Stopping)??;
        }
        Ok(started)
    }

    /// Starts an execution and waits for its end, at most this long.
    pub async fn execute_and_wait(
        &self,
        execute: Execute,
        timeout: Duration,
    ) -> Result<(Started, Option<Ended>), EngineError> {
        let (started, ended) = self.begin(execute, Reply::Ended).await?;
        let Some(ended) = ended else { return Ok((started, self.wait(started.execution, timeout).await?)) };
        match tokio::time::timeout(timeout, ended).await {
            Ok(ended) => Ok((started, Some(ended.map_err(|_| EngineError::Stopping)??))),
            // An id is handed out only for what is in the log.
            Err(_) => self.header(started.execution).map(|_| (started, None)).map_err(|error| match error {
                EngineError::ExecutionNotFound(_) => EngineError::Overloaded { waiting: self.shared.metrics.waiting() },
                error => error,
            }),
        }
    }

    async fn begin<T>(
        &self,
        execute: Execute,
        reply: impl FnOnce(oneshot::Sender<T>) -> Reply,
    ) -> Result<(Started, Option<oneshot::Receiver<T>>), EngineError> {
        let Execute { tenant, path, version, payload, pool, trace, requested_by, dedup } = execute;
        let waiting = self.shared.metrics.waiting();
        if waiting > MOST_WAITING {
            return Err(EngineError::Overloaded { waiting });
        }
        let entry = self.shared.playbook(&tenant, &path, version);
        let entry = entry.ok_or(EngineError::PlaybookNotFound { path, version })?;
        let execution = match dedup {
            Some(dedup) => match self.once(&tenant, entry.path.as_str(), dedup).await? {
                (execution, true) => return Ok((Started { execution, duplicate: true }, None)),
                (execution, false) => execution,
            },
            None => self.shared.mint.next(),
        };
        let mut start = self.shared.start(&entry, &tenant, payload, None, execution, requested_by);
        start.pool = pool;
        start.trace = trace;
        let (answer, answered) = oneshot::channel();
        let queued = Queued::new(execution, tenant, Happening::Start(start), reply(answer));
        self.send(execution, Message::Input(Box::new(queued)))?;
        Ok((Started { execution, duplicate: false }, Some(answered)))
    }

    /// Waits for an execution to end, at most this long.
    pub async fn wait(&self, execution: ExecutionId, timeout: Duration) -> Result<Option<Ended>, EngineError> {
        let root = self.header(execution)?.root;
        let (answer, ended) = oneshot::channel();
        self.send(root, Message::Wait(execution, answer))?;
        match tokio::time::timeout(timeout, ended).await {
            Err(_) => Ok(None),
            Ok(Ok(Ok(ended))) => Ok(Some(ended)),
            // Not live any more: its end is in its chain.
            Ok(Ok(Err(EngineError::ExecutionNotFound(_)))) => self.ended(execution).await.map(Some),
            Ok(Ok(Err(error))) => Err(error),
            Ok(Err(_)) => Err(EngineError::Stopping),
        }
    }

    pub async fn cancel(&self, execution: ExecutionId, reason: &str, by: &str) -> Result<(), EngineError> {
        let reason = noetl_scrub::known::mask_for(self.header(execution)?.tenant.as_str(), reason).into_owned();
        let cancel = Cancel { reason, requested_by: by.to_owned() };
        self.tell(execution, Happening::Cancel(cancel)).await.map(|_| ())
    }

    /// Goes on with a parked step, whose result is the value.
    pub async fn resume(&self, execution: ExecutionId, step: &str, value: &str, by: &str) -> Result<(), EngineError> {
        let value = crate::heard::come_in(&self.header(execution)?.tenant, value.to_owned());
        let resume = Resume { step: step.to_owned(), value, requested_by: by.to_owned() };
        self.tell(execution, Happening::Resume(resume)).await.map(|_| ())
    }

    /// The result of a command from outside. False when it was known already.
    pub async fn report(
        &self,
        execution: ExecutionId,
        command: &str,
        result: &str,
        error: Option<(String, String, bool)>,
    ) -> Result<bool, EngineError> {
        let value: serde_json::Value = serde_json::from_str(result)
            .map_err(|error| EngineError::InvalidRequest(format!("the result is not JSON: {error}")))?;
        let error = error.map(
            |(code, message, retryable)| serde_json::json!({"code": code, "message": message, "retryable": retryable}),
        );
        let body = serde_json::json!({"data": {"value": value}, "error": error}).to_string();
        let body = crate::heard::come_in(&self.header(execution)?.tenant, body).into_bytes();
        let report = Report { command: command.to_owned(), body, stored: None };
        self.tell(execution, Happening::Report(report)).await
    }

    /// Runs a failed execution again from a failed step, as a new execution that takes over what was finished.
    pub async fn retry(&self, execution: ExecutionId, step: Option<&str>, by: &str) -> Result<Started, EngineError> {
        let header = self.header(execution)?;
        let segments = self.shared.whole_chain(execution).map_err(|error| EngineError::Store(error.to_string()))?;
        let (path, version) = self.playbook_of(execution).await?;
        let entry = self.shared.playbook(&header.tenant, &path, Some(version));
        let entry = entry.ok_or(EngineError::PlaybookNotFound { path, version: Some(version) })?;
        let id = self.shared.mint.next();
        let mut start = self.shared.start(&entry, &header.tenant, "{}".to_owned(), None, id, by.to_owned());
        let step = step.map(str::to_owned);
        start.again = Some(orchestration::Again { execution: execution.0, step, segments });
        let (answer, recorded) = oneshot::channel();
        let queued = Queued::new(id, header.tenant, Happening::Start(start), Reply::Recorded(answer));
        self.send(id, Message::Input(Box::new(queued)))?;
        recorded.await.map_err(|_| EngineError::Stopping)??;
        Ok(Started { execution: id, duplicate: false })
    }

    async fn tell(&self, execution: ExecutionId, what: Happening) -> Result<bool, EngineError> {
        let header = self.header(execution)?;
        let (answer, recorded) = oneshot::channel();
        let queued = Queued::new(execution, header.tenant, what, Reply::Recorded(answer));
        self.send(header.root, Message::Input(Box::new(queued)))?;
        recorded.await.map_err(|_| EngineError::Stopping)?
    }

    /// Something that serves may have changed.
    pub(crate) async fn refresh(&self) {
        for shard in &self.shards {
            // A shard that is gone needs no news.
            let _ = shard.send(Message::Refresh);
        }
        self.background.release().await;
    }

    /// Ends in order: commits in flight are awaited, nothing new begins.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        for shard in &self.shards {
            let (done, stopped) = oneshot::channel();
            if shard.send(Message::Stop(done)).is_ok() {
                let _ = stopped.await;
            }
        }
    }
}

/// All executions of a tree are on one shard, so that parent and child commit together.
fn shard_of(root: ExecutionId, shards: usize) -> usize {
    // The low bits are a sequence; a multiplication spreads them.
    (root.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % shards.max(1)
}

/// A way back to the kernel that does not keep it alive.
type Back = Weak<Kernel>;

fn channel() -> (UnboundedSender<Message>, mpsc::UnboundedReceiver<Message>) {
    mpsc::unbounded_channel()
}
