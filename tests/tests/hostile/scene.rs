//! An attacker, a bystander, and a server between them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use noetl_tests::{Answer, Api, Server, guest, with_manifest};
use tokio::sync::{Mutex, MutexGuard};

/// Calls of the bystander before an attack, and at least that many during one.
const SAMPLES: usize = 60;
/// Path of the guest that attacks.
pub const HOSTILE: &str = "mallory/hostile";
const ECHO: &str = "alice/echo";

/// Attacks are measured one at a time: two at once would be each other's noise.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

pub struct Scene {
    pub server: Server,
    /// The attacker: a tenant's token with all that a tenant can have.
    pub mallory: Api,
    /// Another tenant.
    pub alice: Api,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub async fn start_with(environment: &[(&str, &str)]) -> Self {
        let alone = ONE_AT_A_TIME.lock().await;
        let server = Server::start_with(environment);
        let admin = server.admin();
        // Until then the built-in components are being compiled, which would be measured too.
        while admin.get("/ready").await.status != 200 {}
        let of = async |tenant: &str| server.with_token(&admin.token_for(tenant, "tenant").await);
        let (mallory, alice) = (of("mallory").await, of("alice").await);
        let manifest = format!("path = \"{ECHO}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = []\n");
        alice.push(with_manifest(&guest("echo"), &manifest), "").await.is(201);
        Self { server, mallory, alice, _alone: alone }
    }

    /// With the guest that attacks pushed.
    pub async fn with_guest() -> Self {
        let scene = Self::start().await;
        scene.mallory.push(guest("hostile"), "").await.is(201);
        scene
    }

    /// A call of the attacking guest that must end with this status and code; says so for the table.
    pub async fn call(&self, input: &str, status: u16, code: &str) -> String {
        ended(self.mallory.call(HOSTILE, input).await, status, code)
    }

    /// Runs an attack, over and over until the bystander has made enough calls, and writes down its row. `attack` says
    /// in which class it ended. Gives the number of calls the bystander was answered meanwhile.
    pub async fn attack<F: Future<Output = String>>(&self, name: &str, mut attack: impl FnMut() -> F) -> usize {
        let mut before = Bystander::start(&self.alice);
        before.enough().await;
        let before = before.stop().await;
        let during = Bystander::start(&self.alice);
        let began = Instant::now();
        let class = attack().await;
        let contained = began.elapsed();
        while !during.has_enough() {
            attack().await;
            // One that waits for nothing must not keep the bystander from its call.
            tokio::task::yield_now().await;
        }
        let during = during.stop().await;
        assert_eq!(self.alice.call(ECHO, "still here").await.is(200).text(), "still here");
        self.server.admin().get("/health").await.is(200);
        report(&format!(
            "| {name} | {class} | {} | {} → {} | {} → {} |",
            shown(contained),
            shown(percentile(&before, 50)),
            shown(percentile(&during, 50)),
            shown(percentile(&before, 99)),
            shown(percentile(&during, 99)),
        ));
        during.len()
    }
}

/// The code of a problem that is expected, for the table.
pub fn ended(answer: Answer, status: u16, code: &str) -> String {
    answer.problem(status, code);
    code.to_owned()
}

/// Somebody else's cheap calls, one after another on one connection. One that fails fails the test.
struct Bystander {
    calling: tokio::task::JoinHandle<Vec<Duration>>,
    made: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
}

impl Bystander {
    fn start(api: &Api) -> Self {
        let (api, made, over) = (api.clone(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, ends) = (made.clone(), over.clone());
        let calling = tokio::spawn(async move {
            let mut took = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let began = Instant::now();
                let answer = api.call(ECHO, "a bystander").await.is(200);
                took.push(began.elapsed());
                assert_eq!(answer.text(), "a bystander");
                count.fetch_add(1, Ordering::Relaxed);
            }
            took
        });
        Self { calling, made, over }
    }

    fn has_enough(&self) -> bool {
        self.made.load(Ordering::Relaxed) >= SAMPLES || self.calling.is_finished()
    }

    async fn enough(&mut self) {
        while !self.has_enough() {
            tokio::task::yield_now().await;
        }
    }

    async fn stop(self) -> Vec<Duration> {
        self.over.store(true, Ordering::Relaxed);
        let mut took = self.calling.await.expect("a bystander's call failed");
        took.sort_unstable();
        took
    }
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
