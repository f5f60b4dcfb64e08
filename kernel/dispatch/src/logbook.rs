//! What guests said, for the people who run them.
//!
//! A bounded ring in memory and a live feed; the server's own log gets every line too. Lines are masked by
//! `scrub` before anything keeps them. A plugin that floods is cut off by its own token bucket, and what
//! it lost is counted, so its noise costs nobody else their lines.

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
    lines: VecDeque<Arc<LogLine>>,
    next: u64,
    buckets: HashMap<(Tenant, PluginPath), Bucket>,
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
        let mut lines: Vec<_> =
            kept.lines.iter().rev().filter(|line| filter.matches(line)).take(limit).cloned().collect();
        lines.reverse();
        lines
    }

    /// Lines from now on; a reader that is too slow is told how many it missed.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<LogLine>> {
        self.feed.subscribe()
    }

    fn keep(&self, who: &Identity, level: Level, message: &str, fields: &[(String, String)]) -> Option<Arc<LogLine>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut kept = self.kept.lock();
        let now = Instant::now();
        let bucket =
            kept.buckets.entry((who.tenant.clone(), who.path.clone())).or_insert(Bucket { tokens: BURST, at: now });
        if !bucket.take(now) {
            self.dropped.inc();
            return None;
        }
        kept.next += 1;
        let masked = |(key, value): &(String, String)| (key.clone(), noetl_scrub::scrub_text(value).into_owned());
        let line = Arc::new(LogLine {
            seq: kept.next,
            time_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            tenant: who.tenant.clone(),
            path: who.path.clone(),
            version: who.version.clone(),
            call: who.call.clone(),
            level,
            message: noetl_scrub::scrub_text(message).into_owned(),
            fields: fields.iter().map(masked).collect(),
        });
        if kept.lines.len() >= self.keep {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line.clone());
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
    fn the_ring_keeps_the_newest() {
        let book = LogBook::new(2);
        for text in ["a", "b", "c"] {
            book.keep(&who("acme"), Level::Info, text, &[]);
        }
        let texts: Vec<_> = book.recent(&LogFilter::default(), 10).iter().map(|line| line.message.clone()).collect();
        assert_eq!(texts, ["b", "c"]);
    }
}
