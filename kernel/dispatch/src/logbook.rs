//! What guests said, for the people who run them.
//!
//! A bounded ring in memory and a live feed; the server's own log gets every line too. Lines are masked by
//! `scrub` before anything keeps them. A plugin that floods is cut off by its own token bucket, and what
//! it lost is counted. The ring is bounded in lines and in bytes, and whoever has most of it loses its oldest
//! line first, so a tenant's noise costs nobody else their lines.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use noetl_contract::{PluginPath, Tenant, Version};
use noetl_host::Identity;
use noetl_host::caps::log::{Level, LogSink};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde::Serialize;
use tokio::sync::broadcast;

/// Lines a second one plugin may write for one tenant, and how many it may save up.
const RATE: f64 = 500.0;
const BURST: f64 = 2_000.0;
const FEED: usize = 1_024;
/// What a line of the ring may take on average.
const LINE_BYTES: usize = 1 << 10;

/// One line of one call.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    /// Grows by one a line; a string in JSON, like every id.
    #[serde(serialize_with = "as_string")]
    pub seq: u64,
    pub time_ms: u64,
    pub tenant: Tenant,
    pub path: PluginPath,
    pub version: Version,
    pub call: String,
    pub level: Level,
    pub message: String,
    pub fields: Vec<(String, String)>,
}

impl LogLine {
    fn weight(&self) -> usize {
        let fields = self.fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        size_of::<Self>() + self.message.len() + fields
    }
}

fn as_string<S: serde::Serializer>(seq: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(seq)
}

/// Which lines somebody wants.
#[derive(Debug, Clone, Default)]
pub struct LogFilter {
    pub path: Option<PluginPath>,
    /// None: every tenant's, for an administrator.
    pub tenant: Option<Tenant>,
    pub version: Option<Version>,
    pub level: Option<Level>,
    /// Only lines after this one.
    pub after: u64,
}

impl LogFilter {
    pub fn matches(&self, line: &LogLine) -> bool {
        line.seq > self.after
            && self.path.as_ref().is_none_or(|path| *path == line.path)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == line.tenant)
            && self.version.as_ref().is_none_or(|version| *version == line.version)
            && self.level.is_none_or(|level| line.level >= level)
    }
}

#[derive(Default)]
struct Kept {
    lines: HashMap<Tenant, Lines>,
    count: usize,
    bytes: usize,
    next: u64,
    buckets: HashMap<(Tenant, PluginPath), Bucket>,
}

/// One tenant's part of the ring, oldest first.
#[derive(Default)]
struct Lines {
    queue: VecDeque<Arc<LogLine>>,
    bytes: usize,
}

impl Kept {
    fn add(&mut self, line: Arc<LogLine>, most: usize) {
        let weight = line.weight();
        let lines = self.lines.entry(line.tenant.clone()).or_default();
        lines.queue.push_back(line);
        lines.bytes += weight;
        self.count += 1;
        self.bytes += weight;
        while self.count > most || self.bytes > most.saturating_mul(LINE_BYTES) {
            self.drop_one();
        }
    }

    fn drop_one(&mut self) {
        let Some((tenant, lines)) = self.lines.iter_mut().max_by_key(|(_, lines)| lines.bytes) else { return };
        if let Some(oldest) = lines.queue.pop_front() {
            lines.bytes -= oldest.weight();
            self.count -= 1;
            self.bytes -= oldest.weight();
        }
        if lines.queue.is_empty() {
            let gone = tenant.clone();
            self.lines.remove(&gone);
        }
    }
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let refill = now.duration_since(self.at).as_secs_f64() * RATE;
        self.tokens = (self.tokens + refill).min(BURST);
        self.at = now;
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

/// The lines of all plugins.
pub struct LogBook {
    kept: Mutex<Kept>,
    keep: usize,
    feed: broadcast::Sender<Arc<LogLine>>,
    pub(crate) dropped: Counter,
}

impl LogBook {
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            kept: Mutex::default(),
            keep: keep.max(1),
            feed: broadcast::channel(FEED).0,
            dropped: Counter::default(),
        }
    }

    /// The latest lines that match, oldest first.
    pub fn recent(&self, filter: &LogFilter, limit: usize) -> Vec<Arc<LogLine>> {
        let kept = self.kept.lock();
        let asked = |tenant: &Tenant| filter.tenant.as_ref().is_none_or(|only| only == tenant);
        let queues = kept.lines.iter().filter(|(tenant, _)| asked(tenant)).map(|(_, lines)| &lines.queue);
        let newest = |queue: &VecDeque<Arc<LogLine>>| -> Vec<_> {
            queue.iter().rev().filter(|line| filter.matches(line)).take(limit).cloned().collect()
        };
        let mut lines: Vec<_> = queues.flat_map(newest).collect();
        lines.sort_unstable_by_key(|line| line.seq);
        lines.split_off(lines.len().saturating_sub(limit))
    }

    /// Lines from now on; a reader that is too slow is told how many it missed.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<LogLine>> {
        self.feed.subscribe()
    }

    fn may_write(&self, who: &Identity) -> bool {
        let now = Instant::now();
        let mut kept = self.kept.lock();
        let bucket = kept.buckets.entry((who.tenant.clone(), who.path.clone()));
        bucket.or_insert(Bucket { tokens: BURST, at: now }).take(now)
    }

    fn keep(&self, who: &Identity, level: Level, message: &str, fields: &[(String, String)]) -> Option<Arc<LogLine>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if !self.may_write(who) {
            self.dropped.inc();
            return None;
        }
        // Masking takes time that the lines of others should not wait for.
        let mask = |text: &str| noetl_scrub::scrub_text_for(who.tenant.as_str(), text).into_owned();
        let masked = |(key, value): &(String, String)| (key.clone(), mask(value));
        let (message, fields) = (mask(message), fields.iter().map(masked).collect());
        let mut kept = self.kept.lock();
        kept.next += 1;
        let line = Arc::new(LogLine {
            seq: kept.next,
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            tenant: who.tenant.clone(),
            path: who.path.clone(),
            version: who.version.clone(),
            call: who.call.clone(),
            level,
            message,
            fields,
        });
        kept.add(line.clone(), self.keep);
        // Sent under the lock, so that the feed has the order of the sequence numbers.
        let _ = self.feed.send(line.clone());
        Some(line)
    }
}

/// The sink the host writes to; a handle of its own, since the book outlives no host.
pub(crate) struct BookSink(pub(crate) Arc<LogBook>);

impl LogSink for BookSink {
    fn write(&self, who: &Identity, level: Level, message: &str, fields: &[(String, String)]) {
        let Some(line) = self.0.keep(who, level, message, fields) else { return };
        let (plugin, version, tenant, call) = (&line.path, &line.version, &line.tenant, &line.call);
        let text = &line.message;
        match level {
            Level::Trace => tracing::trace!(target: "plugin", %plugin, %version, %tenant, %call, "{text}"),
            Level::Debug => tracing::debug!(target: "plugin", %plugin, %version, %tenant, %call, "{text}"),
            Level::Info => tracing::info!(target: "plugin", %plugin, %version, %tenant, %call, "{text}"),
            Level::Warn => tracing::warn!(target: "plugin", %plugin, %version, %tenant, %call, "{text}"),
            Level::Error => tracing::error!(target: "plugin", %plugin, %version, %tenant, %call, "{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(tenant: &str) -> Identity {
        Identity {
            tenant: Tenant::new(tenant).expect("valid"),
            path: PluginPath::new("acme/a").expect("valid"),
            version: Version::new(1, 0, 0),
            call: "c1".into(),
            idempotency_key: "k".into(),
            attempt: 1,
        }
    }

    #[test]
    fn a_tenant_sees_its_own_lines_only_and_secrets_are_masked() {
        let book = LogBook::new(10);
        book.keep(&who("acme"), Level::Info, "sent Authorization: Bearer abcdefghijklmnop", &[]);
        book.keep(&who("other"), Level::Info, "hello", &[]);
        let filter = LogFilter { tenant: Some(Tenant::new("acme").expect("valid")), ..LogFilter::default() };
        let lines = book.recent(&filter, 10);
        assert_eq!(lines.len(), 1);
        assert!(!lines[0].message.contains("abcdefghijklmnop"), "{}", lines[0].message);
    }

    #[test]
    fn a_flood_is_cut_off_counted_and_leaves_others_their_lines() {
        let book = LogBook::new(100_000);
        let sent = 10 * BURST as u64;
        for _ in 0..sent {
            book.keep(&who("acme"), Level::Info, "x", &[]);
        }
        let kept = book.recent(&LogFilter::default(), usize::MAX).len() as u64;
        assert!(kept < sent && kept + book.dropped.get() == sent);
        assert!(book.keep(&who("other"), Level::Info, "y", &[]).is_some());
    }

    #[test]
    fn a_flood_takes_no_line_of_another_tenant_and_no_more_memory_than_the_ring_has() {
        let book = LogBook::new(50);
        book.keep(&who("quiet"), Level::Info, "the one line", &[]);
        for _ in 0..1_000 {
            book.keep(&who("loud"), Level::Info, &"x".repeat(8 << 10), &[]);
        }
        let quiet = LogFilter { tenant: Some(Tenant::new("quiet").expect("valid")), ..LogFilter::default() };
        assert_eq!(book.recent(&quiet, 10).len(), 1);
        let kept = book.kept.lock();
        assert!(kept.bytes <= 50 * LINE_BYTES && kept.count <= 50, "{} bytes, {} lines", kept.bytes, kept.count);
    }

    #[test]
    fn the_ring_keeps_the_newest() {
        let book = LogBook::new(2);
        for text in ["a", "b", "c"] {
            book.keep(&who("acme"), Level::Info, text, &[]);
        }
        let texts: Vec<_> = book.recent(&LogFilter::default(), 10).iter().map(|line| line.message.clone()).collect();
        assert_eq!(texts, ["b", "c"]);
    }
}
