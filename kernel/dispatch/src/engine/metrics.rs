//! Numbers about the engine. All series are there at zero from the start, since an absent one cannot be told from a
//! broken exporter.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Seconds, from ten microseconds to ten.
const BUCKETS: [f64; 13] = [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.1, 1.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShardLabel {
    shard: u32,
}

pub struct EngineMetrics {
    pub started: Counter,
    ended: Family<Status, Counter>,
    pub events: Counter,
    pub commands: Counter,
    pub loads: Counter,
    pub contained: Counter,
    pub commit_failures: Counter,
    pub checkpoints: Counter,
    pub projected: Counter,
    pub projection_stale: Counter,
    pub published: Counter,
    /// Reads of the tables on a shard's thread. There is no such read; this counts if somebody adds one.
    pub table_reads: Counter,
    inputs: Counter,
    drives: Histogram,
    commits: Histogram,
    segments: Counter,
    live: Family<ShardLabel, Gauge<i64, AtomicI64>>,
    inbox: Family<ShardLabel, Gauge<i64, AtomicI64>>,
    queued: Family<ShardLabel, Gauge<i64, AtomicI64>>,
    pub projection_lag: Gauge<u64, AtomicU64>,
    pub outbox_lag: Gauge<u64, AtomicU64>,
    /// Inputs waiting on all shards, for admission.
    waiting: Vec<AtomicU64>,
}

impl EngineMetrics {
    pub fn register(registry: &mut Registry, shards: usize) -> Self {
        let metrics = Self {
            started: Counter::default(),
            ended: Family::default(),
            events: Counter::default(),
            commands: Counter::default(),
            loads: Counter::default(),
            contained: Counter::default(),
            commit_failures: Counter::default(),
            checkpoints: Counter::default(),
            projected: Counter::default(),
            projection_stale: Counter::default(),
            published: Counter::default(),
            table_reads: Counter::default(),
            inputs: Counter::default(),
            drives: Histogram::new(BUCKETS),
            commits: Histogram::new(BUCKETS),
            segments: Counter::default(),
            live: Family::default(),
            inbox: Family::default(),
            queued: Family::default(),
            projection_lag: Gauge::default(),
            outbox_lag: Gauge::default(),
            waiting: (0..shards).map(|_| AtomicU64::new(0)).collect(),
        };
        for status in ["completed", "failed", "cancelled"] {
            drop(metrics.ended.get_or_create(&Status { status: status.to_owned() }));
        }
        let mut counter = |name: &str, help: &str, counter: &Counter| registry.register(name, help, counter.clone());
        counter("noetl_executions_started", "Executions started", &metrics.started);
        counter("noetl_engine_events", "Events decided", &metrics.events);
        counter("noetl_engine_inputs", "Inputs driven", &metrics.inputs);
        counter("noetl_engine_commands", "Commands issued", &metrics.commands);
        counter("noetl_engine_segments", "Segments committed", &metrics.segments);
        counter("noetl_engine_state_loads", "States built from the log", &metrics.loads);
        counter("noetl_engine_contained", "Batches a service failed on and that were taken apart", &metrics.contained);
        counter("noetl_engine_commit_failures", "Commits the log refused", &metrics.commit_failures);
        counter("noetl_engine_checkpoints", "Checkpoints written", &metrics.checkpoints);
        counter("noetl_projected_segments", "Segments brought into the tables", &metrics.projected);
        counter("noetl_projection_stale_rows", "Rows older than what the tables had", &metrics.projection_stale);
        counter("noetl_published_segments", "Segments handed to the stream", &metrics.published);
        counter("noetl_event_hotpath_reads", "Reads of the tables while driving: always 0", &metrics.table_reads);
        registry.register("noetl_executions_ended", "Executions ended, by status", metrics.ended.clone());
        registry.register("noetl_engine_drive_seconds", "Time to drive a batch", metrics.drives.clone());
        registry.register("noetl_engine_commit_seconds", "Time until a commit is durable", metrics.commits.clone());
        registry.register("noetl_executions_live", "Executions that have not ended", metrics.live.clone());
        registry.register("noetl_engine_inbox", "Inputs that wait to be driven", metrics.inbox.clone());
        registry.register("noetl_engine_queued_commands", "Commands that wait for a slot", metrics.queued.clone());
        registry.register(
            "noetl_projection_lag",
            "Log positions not in the tables yet",
            metrics.projection_lag.clone(),
        );
        registry.register("noetl_outbox_lag", "Log positions not published yet", metrics.outbox_lag.clone());
        metrics
    }

    pub fn ended(&self, status: &str) {
        self.ended.get_or_create(&Status { status: status.to_owned() }).inc();
    }

    pub fn drive(&self, took: Duration, inputs: usize) {
        self.drives.observe(took.as_secs_f64());
        self.inputs.inc_by(inputs as u64);
    }

    pub fn commit(&self, took: Duration, segments: usize) {
        self.commits.observe(took.as_secs_f64());
        self.segments.inc_by(segments as u64);
    }

    pub fn observe(&self, shard: usize, live: usize, inbox: usize, queued: usize) {
        let label = ShardLabel { shard: shard as u32 };
        let set = |family: &Family<ShardLabel, Gauge<i64, AtomicI64>>, value: usize| {
            family.get_or_create(&label).set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        set(&self.live, live);
        set(&self.inbox, inbox);
        set(&self.queued, queued);
        self.waiting[shard].store((inbox + queued) as u64, Ordering::Relaxed);
    }

    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(|waiting| waiting.load(Ordering::Relaxed) as usize).sum()
    }
}
