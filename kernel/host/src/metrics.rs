//! Numbers about plugins: calls, faults by class, latency, time in the queue, memory, compile time,
//! instances and modules alive.
//!
//! A module holds handles on its own series, so a call touches no map. When a module goes, its series go
//! with it: two hundred pushes leave the series of one version. Every fault class is there from the first
//! call on at zero, since an absent series cannot be told from a broken exporter.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::error::FaultClass;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    plugin: String,
    version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    plugin: String,
    version: String,
    class: String,
}

/// Seconds, from ten microseconds to a minute.
const BUCKETS: [f64; 15] =
    [1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.05, 0.25, 1.0, 10.0, 60.0];

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

fn histograms() -> Histograms {
    Family::new_with_constructor(histogram as fn() -> Histogram)
}

/// All families, registered once.
#[derive(Clone)]
pub struct HostMetrics {
    calls: Family<Labels, Counter>,
    failures: Family<Labels, Counter>,
    faults: Family<FaultLabels, Counter>,
    duration: Histograms,
    queue: Histograms,
    memory: Family<Labels, Gauge>,
    compile: Family<Labels, Gauge>,
    instances: Family<Labels, Gauge>,
    modules: Gauge,
    compiles: Counter,
}

impl HostMetrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            calls: Family::default(),
            failures: Family::default(),
            faults: Family::default(),
            duration: histograms(),
            queue: histograms(),
            memory: Family::default(),
            compile: Family::default(),
            instances: Family::default(),
            modules: Gauge::default(),
            compiles: Counter::default(),
        };
        registry.register("noetl_plugin_calls", "Calls that ended, however they ended", metrics.calls.clone());
        registry.register(
            "noetl_plugin_failures",
            "Calls the plugin itself answered with a failure",
            metrics.failures.clone(),
        );
        registry.register("noetl_plugin_faults", "Calls ended by the host, by class", metrics.faults.clone());
        registry.register("noetl_plugin_call_seconds", "Time from start to end of a call", metrics.duration.clone());
        registry.register(
            "noetl_plugin_queue_seconds",
            "Time a call waited for memory and a slot",
            metrics.queue.clone(),
        );
        registry.register(
            "noetl_plugin_memory_high_water_bytes",
            "Most memory one call has used",
            metrics.memory.clone(),
        );
        registry.register(
            "noetl_plugin_compile_millis",
            "Time the compiler took; 0 from cache",
            metrics.compile.clone(),
        );
        registry.register("noetl_plugin_instances", "Instances alive", metrics.instances.clone());
        registry.register(
            "noetl_host_modules",
            "Modules alive, those still draining included",
            metrics.modules.clone(),
        );
        registry.register("noetl_host_compiles", "Compiler processes that succeeded", metrics.compiles.clone());
        metrics
    }

    pub(crate) fn module(&self, plugin: &str, version: &str) -> ModuleMetrics {
        let labels = Labels { plugin: plugin.to_owned(), version: version.to_owned() };
        let faults = FaultClass::ALL.map(|class| self.faults.get_or_create(&fault_labels(&labels, class)).clone());
        self.modules.inc();
        ModuleMetrics {
            calls: self.calls.get_or_create(&labels).clone(),
            failures: self.failures.get_or_create(&labels).clone(),
            duration: self.duration.get_or_create(&labels).clone(),
            queue: self.queue.get_or_create(&labels).clone(),
            memory: self.memory.get_or_create(&labels).clone(),
            compile: self.compile.get_or_create(&labels).clone(),
            instances: self.instances.get_or_create(&labels).clone(),
            faults,
            labels,
            all: self.clone(),
        }
    }

    /// Modules alive now.
    pub fn modules_alive(&self) -> i64 {
        self.modules.get()
    }
}

fn fault_labels(labels: &Labels, class: FaultClass) -> FaultLabels {
    FaultLabels { plugin: labels.plugin.clone(), version: labels.version.clone(), class: class.name().to_owned() }
}

/// One module's own series.
pub(crate) struct ModuleMetrics {
    calls: Counter,
    failures: Counter,
    duration: Histogram,
    queue: Histogram,
    memory: Gauge,
    compile: Gauge,
    instances: Gauge,
    faults: [Counter; FaultClass::ALL.len()],
    labels: Labels,
    all: HostMetrics,
}

/// How a call ended, for counting.
pub(crate) enum Ending {
    Answered,
    Failed,
    Faulted(FaultClass),
}

impl ModuleMetrics {
    pub(crate) fn compiled(&self, took: Option<Duration>) {
        self.compile.set(took.map_or(0, |took| i64::try_from(took.as_millis()).unwrap_or(i64::MAX)));
        if took.is_some() {
            self.all.compiles.inc();
        }
    }

    pub(crate) fn ended(&self, ending: &Ending, queue: Duration, duration: Duration, memory: u64) {
        self.calls.inc();
        self.queue.observe(queue.as_secs_f64());
        self.duration.observe(duration.as_secs_f64());
        let memory = i64::try_from(memory).unwrap_or(i64::MAX);
        if memory > self.memory.get() {
            self.memory.set(memory);
        }
        match ending {
            Ending::Answered => {}
            Ending::Failed => drop(self.failures.inc()),
            Ending::Faulted(class) => drop(self.faults[*class as usize].inc()),
        }
    }
}

/// Counts an instance while it lives.
pub(crate) struct LiveInstance(Arc<crate::module::Module>);

impl LiveInstance {
    pub(crate) fn new(module: &Arc<crate::module::Module>) -> Self {
        module.metrics.instances.inc();
        Self(module.clone())
    }
}

impl Drop for LiveInstance {
    fn drop(&mut self) {
        self.0.metrics.instances.dec();
    }
}

impl Drop for ModuleMetrics {
    fn drop(&mut self) {
        let all = &self.all;
        all.modules.dec();
        all.calls.remove(&self.labels);
        all.failures.remove(&self.labels);
        all.duration.remove(&self.labels);
        all.queue.remove(&self.labels);
        all.memory.remove(&self.labels);
        all.compile.remove(&self.labels);
        all.instances.remove(&self.labels);
        for class in FaultClass::ALL {
            all.faults.remove(&fault_labels(&self.labels, class));
        }
    }
}
