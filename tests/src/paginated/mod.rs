//! The HTTP server that playbooks of the end-to-end suite talk to: pages, cursors, flaky and rate-limited endpoints, a
//! probe of concurrency, patient records, and stand-ins for public services.
//!
//! All state is in memory and belongs to one server on a port of its own. What an endpoint answers follows from the
//! request and the state alone: page counts come from MD5 ([`patients`]), so whoever checks a run computes what has to be
//! in its tables. An answer takes no time unless the request asks for a delay: ten thousand patients are a benchmark of
//! whoever asks, not of this.

mod chain;
mod lists;
pub mod patients;
mod probe;
mod stubs;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use wire::{Ask, Reply};

/// Requests a second to the endpoints of one patient, before 429.
const PATIENT_RATE: usize = 50;

/// A running server; gone when dropped.
pub struct Paginated {
    pub url: String,
    world: Arc<World>,
    serving: tokio::task::JoinHandle<()>,
}

/// Everything the server remembers.
#[derive(Default)]
pub(crate) struct World {
    /// Hits of flaky pages, by page.
    flaky: Mutex<BTreeMap<u64, u64>>,
    probe: Mutex<probe::Probe>,
    /// Moments of the last requests, by bucket.
    buckets: Mutex<BTreeMap<&'static str, Vec<Instant>>>,
    /// Requests so far, by method and path.
    seen: Mutex<BTreeMap<String, u64>>,
    /// Files served by their name alone.
    folder: Option<PathBuf>,
}

impl World {
    /// Whether one more request a second is within the limit, and how many there are with it. Times are a sliding window.
    fn admits(&self, bucket: &'static str, most: usize) -> (bool, usize) {
        let mut buckets = self.buckets.lock().expect("nobody panics here");
        let times = buckets.entry(bucket).or_default();
        let now = Instant::now();
        times.retain(|time| now.duration_since(*time) < Duration::from_secs(1));
        let admitted = times.len() < most;
        if admitted {
            times.push(now);
        }
        (admitted, times.len())
    }

    fn note(&self, ask: &Ask) {
        let key = format!("{} {}", ask.method, ask.path);
        *self.seen.lock().expect("nobody panics here").entry(key).or_default() += 1;
    }
}

impl Paginated {
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// A request for a script is answered with the file of that name in the folder.
    pub async fn start_with(folder: Option<&Path>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let world = Arc::new(World { folder: folder.map(Path::to_owned), ..World::default() });
        let shared = world.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Answers are small and are waited for.
                let _ = stream.set_nodelay(true);
                let world = shared.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| serve(request, world.clone()));
                    // A client that goes away is none of our business.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { url, world, serving }
    }

    /// Requests so far, by method and path: `GET /api/v1/flaky`.
    pub fn seen(&self) -> BTreeMap<String, u64> {
        self.world.seen.lock().expect("nobody panics here").clone()
    }

    /// How many requests there were to a method and path.
    pub fn count(&self, what: &str) -> u64 {
        self.seen().get(what).copied().unwrap_or(0)
    }

    /// Forgets everything, so that one run does not see another's.
    pub fn reset(&self) {
        self.world.flaky.lock().expect("nobody panics here").clear();
        self.world.buckets.lock().expect("nobody panics here").clear();
        self.world.seen.lock().expect("nobody panics here").clear();
        *self.world.probe.lock().expect("nobody panics here") = probe::Probe::default();
    }
}

impl Drop for Paginated {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(request: wire::Request, world: Arc<World>) -> Result<wire::Response, std::convert::Infallible> {
    let reply = match Ask::read(request).await {
        Ok(ask) => {
            world.note(&ask);
            answer(&ask, &world).await
        }
        Err(error) => Reply::error(400, &error),
    };
    Ok(reply.into_response())
}

async fn answer(ask: &Ask, world: &World) -> Reply {
    let parts: Vec<&str> = ask.path.split('/').filter(|part| !part.is_empty()).collect();
    match (ask.method.as_str(), parts.as_slice()) {
        ("GET", ["health" | "healthz"]) => Reply::json(&json!({"status": "ok"})),
        ("GET", ["api", "v1", "assessments"]) => lists::assessments(ask),
        ("GET", ["api", "v1", "users"]) => lists::users(ask),
        ("GET", ["api", "v1", "events"]) => lists::events(ask),
        ("GET", ["api", "v1", "flaky"]) => lists::flaky(ask, world),
        ("POST", ["api", "v1", "flaky", "reset"]) => {
            world.flaky.lock().expect("nobody panics here").clear();
            Reply::json(&json!({"status": "reset"}))
        }
        ("GET", ["api", "v1", "errors"]) => lists::errors(ask).await,
        ("GET", ["api", "v1", "rate-limited"]) => lists::rate_limited(ask, world),
        ("GET", ["api", "v1", "heavy"]) => lists::heavy(ask),
        ("GET", ["api", "v1", "heavy", "stats"]) => lists::heavy_stats(),
        ("GET", ["api", "v1", "reference-chain", "items"]) => chain::items(ask),
        ("GET", ["api", "v1", "reference-chain", "detail", id]) => chain::detail(id, ask),
        ("POST", ["api", "v1", "concurrency", "reset"]) => probe::reset(world),
        ("GET", ["api", "v1", "concurrency", "probe"]) => probe::visit(ask, world).await,
        ("GET", ["api", "v1", "concurrency", "stats"]) => probe::stats(world),
        ("GET", ["api", "v1", "patient-records"]) => patients::records(ask, world).await,
        ("GET", ["api", "v1", rest @ ..]) if patients::is_of_one(rest) => patients::of_one(rest, ask, world),
        ("GET", ["api", "v1", "pft", "batch", kind]) => patients::batch(kind, ask),
        _ => stubs::answer(ask, &parts, world).await,
    }
}

/// One page of so many items, and how to go on.
fn page_of(items: &[Value], page: u64, size: u64) -> Value {
    let (page, size) = (page.max(1), size.max(1));
    let from = usize::try_from((page - 1).saturating_mul(size)).unwrap_or(usize::MAX).min(items.len());
    let to = from.saturating_add(usize::try_from(size).unwrap_or(usize::MAX)).min(items.len());
    let paging = json!({"hasMore": to < items.len(), "page": page, "pageSize": size, "total": items.len()});
    json!({"data": &items[from..to], "paging": paging})
}

#[cfg(test)]
mod tests;
