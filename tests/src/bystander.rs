//! Somebody else, who goes on with calls of its own while something is done to the server, and the row of a table that
//! says what that did to them. Times are shown and never judged; a call that fails fails the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::api::Api;

/// The call that is made over and over.
#[derive(Debug, Clone)]
pub struct Errand {
    /// The plugin.
    pub path: &'static str,
    pub input: String,
    /// What it has to answer.
    pub answer: String,
    /// Calls that are enough to say how long one takes.
    pub samples: usize,
}

/// Calls one after another on one connection.
pub struct Bystander {
    calling: tokio::task::JoinHandle<Vec<Duration>>,
    made: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    samples: usize,
}

impl Bystander {
    pub fn start(api: &Api, errand: &Errand) -> Self {
        let (made, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ends, samples) = (made.clone(), over.clone(), errand.samples);
        let (api, errand) = (api.clone(), errand.clone());
        let calling = tokio::spawn(async move {
            let mut took = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let began = std::time::Instant::now();
                let answer = api.call(errand.path, &errand.input).await.is(200);
                took.push(began.elapsed());
                assert_eq!(answer.text(), errand.answer);
                count.fetch_add(1, Ordering::Relaxed);
            }
            took
        });
        Self { calling, made, over, samples }
    }

    /// Whether it has made enough calls, or will make no more.
    pub fn has_enough(&self) -> bool {
        self.made.load(Ordering::Relaxed) >= self.samples || self.calling.is_finished()
    }

    pub async fn enough(&self) {
        while !self.has_enough() {
            tokio::task::yield_now().await;
        }
    }

    /// What each call took, the shortest first.
    pub async fn stop(self) -> Vec<Duration> {
        self.over.store(true, Ordering::Relaxed);
        let mut took = self.calling.await.expect("a bystander's call failed");
        took.sort_unstable();
        took
    }
}

/// The row of an attack: how it ended, how soon, and what a bystander's calls took before it and during it.
pub fn row(name: &str, class: &str, contained: Duration, before: &[Duration], during: &[Duration]) -> String {
    format!(
        "| {name} | {class} | {} | {} → {} | {} → {} |",
        shown(contained),
        shown(percentile(before, 50)),
        shown(percentile(during, 50)),
        shown(percentile(before, 99)),
        shown(percentile(during, 99)),
    )
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.1} ms", seconds * 1e3),
    }
}

/// A row for people, and for the table at the end where somebody collects one.
pub fn report(row: &str) {
    println!("{row}");
    if let Some(file) = std::env::var_os("NOETL_TEST_REPORT") {
        use std::io::Write as _;
        let appended = std::fs::OpenOptions::new().create(true).append(true).open(file);
        appended.and_then(|mut file| writeln!(file, "{row}")).expect("the report can be written");
    }
}
