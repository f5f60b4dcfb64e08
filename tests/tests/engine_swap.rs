//! The engine's services are replaced and broken while playbooks run. Executions go on under the new version, are led
//! by the one before where the new one fails, and a good push mends a service without a restart.
//!
//! All tests run the same waves of executions and count what reached the outside: so many requests, no more and no
//! fewer, whatever served at the time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::join_all;
use noetl_tests::load::{all_ended, check_execution, events, register};
use noetl_tests::{Api, Outside, Server, guest, system_guest, with_version};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;

const ENVIRONMENT: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];

const ORCHESTRATE: &str = "system/orchestrate";
const RUNNER: &str = "system/runner";
const SERVICES: [&str; 5] =
    [ORCHESTRATE, RUNNER, "system/state_builder", "system/projector", "system/outbox_publisher"];

/// The playbooks of a wave; how many idempotency keys the outside sees of each, in how many requests. The long one
/// sees to it that executions are under way at any moment.
const WAVE: [(&str, usize, usize); 7] = [
    ("load/linear", 2, 2),
    ("load/fanout", 6, 6),
    // Its first request is answered with 503 and made again; the child makes two more.
    ("load/retry", 3, 4),
    ("load/linear", 2, 2),
    ("load/fanout", 6, 6),
    ("load/retry", 3, 4),
    ("load/long", 30, 30),
];
const LONG: &str = include_str!("playbooks/long.yaml");
const EXECUTIONS: usize = 150;
/// Waves within which anything must have happened.
const MOST_WAVES: usize = 100;

/// Each test compiles large components and keeps a server busy; together they would only wait for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

struct Bench {
    server: Server,
    api: Api,
    outside: Outside,
    _alone: MutexGuard<'static, ()>,
}

/// An execution after its end.
struct Ended {
    status: String,
    /// The versions of the orchestrator that decided its events.
    deciders: BTreeSet<String>,
}

impl Bench {
    async fn start() -> Arc<Self> {
        let alone = ONE_AT_A_TIME.lock().await;
        let outside = Outside::start().await;
        let server = Server::start_with(&ENVIRONMENT);
        let api = server.admin();
        register(&api).await;
        let registered = api.post("/api/catalog/register", json!({"content": LONG})).await;
        assert!(registered.status < 300, "{}", registered.text());
        Arc::new(Self { server, api, outside, _alone: alone })
    }

    /// One execution of every row, all at once, to their ends. Afterwards everything about them can be read.
    async fn wave(&self) -> Vec<Value> {
        let bodies = WAVE.map(|(path, _, _)| json!({"path": path, "payload": {"url": self.outside.url}}));
        let answers = join_all(bodies.map(|body| self.api.post("/api/execute?wait=300", body))).await;
        let answers: Vec<Value> = answers.into_iter().map(|answer| answer.is(200).json()).collect();
        let first = id(&answers[0]);
        self.api.get("/health").await.is(200);
        self.api.get(&format!("/api/executions/{first}/why")).await.is(200);
        self.api.get(&format!("/api/executions/{first}?consistency=strong")).await.is(200);
        assert!(!events(&self.api, first).await.is_empty(), "{first} has no events");
        answers
    }

    /// Runs waves until one shows what is waited for.
    async fn until(&self, what: &str, shows: impl AsyncFn(&[Value]) -> bool) -> Vec<Value> {
        let mut answers = Vec::new();
        for _ in 0..MOST_WAVES {
            let wave = self.wave().await;
            let shown = shows(&wave).await;
            answers.extend(wave);
            if shown {
                return answers;
            }
        }
        panic!("{MOST_WAVES} waves, and still not: {what}\n{}", self.server.said())
    }

    /// What the server says of the push. The same version again is no error: it serves again.
    async fn push(&self, component: Vec<u8>) -> Value {
        let answer = self.api.push(component, "").await;
        assert!([200, 201].contains(&answer.status), "{} answered:\n{}", answer.what, answer.text());
        answer.json()
    }

    /// The version that serves.
    async fn stable(&self, path: &str) -> Value {
        self.api.get(&format!("/api/plugins/{path}")).await.is(200).json()["channels"]["stable"].clone()
    }

    /// Keys the outside has seen so far, and requests.
    fn asked(&self) -> (usize, usize) {
        let seen = self.outside.seen();
        (seen.len(), seen.values().map(Vec::len).sum())
    }

    /// All of these completed, and the outside was asked exactly what their playbooks ask.
    fn completed_once(&self, during: &str, answers: &[Value], before: (usize, usize)) {
        for answer in answers {
            assert_eq!(answer["status"], "completed", "{during}: {answer}\n{}", self.server.said());
        }
        let waves = answers.len() / WAVE.len();
        let wanted = WAVE.iter().fold((0, 0), |(keys, requests), row| (keys + row.1 * waves, requests + row.2 * waves));
        let (keys, requests) = self.asked();
        assert_eq!((keys - before.0, requests - before.1), wanted, "{during}: keys and requests of {waves} waves");
    }

    /// The versions that decided these executions.
    async fn deciders(&self, answers: &[Value]) -> BTreeSet<String> {
        let mut deciders = BTreeSet::new();
        for answer in answers {
            deciders.extend(decided_by(&events(&self.api, id(answer)).await));
        }
        deciders
    }

    /// Checks every execution, children included.
    async fn verify(&self) -> BTreeMap<String, Ended> {
        let seen = self.outside.seen();
        let mut ended = BTreeMap::new();
        for (execution, status) in all_ended(&self.api).await {
            let events = events(&self.api, &execution).await;
            check_execution(&execution, &events, &seen);
            ended.insert(execution, Ended { status, deciders: decided_by(&events) });
        }
        ended
    }
}

fn id(answer: &Value) -> &str {
    answer["execution_id"].as_str().expect("an id")
}

fn decided_by(events: &[Value]) -> BTreeSet<String> {
    events.iter().filter_map(|event| event["meta"]["decided_by"].as_str()).map(str::to_owned).collect()
}

fn all_complete(ended: &BTreeMap<String, Ended>) {
    for (execution, ended) in ended {
        assert_eq!(ended.status, "COMPLETED", "{execution}");
    }
}

/// Waves one after the other, until it is enough.
struct Load {
    enough: Arc<AtomicBool>,
    running: JoinHandle<Vec<Value>>,
}

impl Load {
    fn begin(bench: &Arc<Bench>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (bench, told) = (bench.clone(), enough.clone());
        let running = tokio::spawn(async move {
            let mut answers = Vec::new();
            while !told.load(Ordering::SeqCst) {
                answers.extend(bench.wave().await);
            }
            answers
        });
        Self { enough, running }
    }

    async fn end(self) -> Vec<Value> {
        self.enough.store(true, Ordering::SeqCst);
        self.running.await.expect("every wave ended")
    }
}

/// A bad version of a service, and what becomes of it.
struct Bad {
    guest: &'static str,
    then: Then,
}

enum Then {
    /// It is taken back by itself; the reason has this in it.
    TakenBack(&'static str),
    /// It goes on serving: what is wrong with it harms nobody.
    Serves,
}

/// Pushes the bad version under load, sees what becomes of it, and heals the service.
async fn survives(bench: &Arc<Bench>, path: &str, version: &str, bad: &Bad) {
    let before = bench.asked();
    let load = Load::begin(bench);
    let pushed = bench.push(with_version(&guest(bad.guest), version)).await;
    let mut answers = match bad.then {
        Then::TakenBack(reason) => {
            let previous = &pushed["previous"];
            let back = async |_: &[Value]| bench.stable(path).await == *previous;
            let answers = bench.until(&format!("{} is taken back", bad.guest), back).await;
            let history = bench.api.get(&format!("/api/plugins/{path}:history")).await.is(200).text();
            let said = format!("{version} faulted 5 times within its first 20 calls");
            assert!(history.contains(&said) && history.contains(reason), "{}: {history}", bad.guest);
            answers
        }
        Then::Serves => {
            let alone = BTreeSet::from([digest(&pushed)]);
            let serves = async |wave: &[Value]| bench.deciders(wave).await == alone;
            let answers = bench.until(&format!("{} serves", bad.guest), serves).await;
            assert_eq!(bench.stable(path).await, version, "{} was taken back", bad.guest);
            answers
        }
    };
    answers.extend(heal(bench, path).await);
    answers.extend(load.end().await);
    bench.completed_once(bad.guest, &answers, before);
}

/// Pushes the platform's own code as a version of its own, and runs waves until it serves.
async fn heal(bench: &Bench, path: &str) -> Vec<Value> {
    let good = bench.push(with_version(&system_guest(path), "0.9.0")).await;
    let alone = BTreeSet::from([digest(&good)]);
    // Only what the orchestrator did can be told by the events; of the others it is enough that all goes well.
    let serves = async |wave: &[Value]| match path {
        ORCHESTRATE => bench.deciders(wave).await == alone,
        _ => wave.iter().all(|answer| answer["status"] == "completed"),
    };
    let answers = bench.until(&format!("the good version of {path} serves"), serves).await;
    assert_eq!(bench.stable(path).await, "0.9.0");
    answers
}

fn digest(pushed: &Value) -> String {
    pushed["digest"].as_str().expect("a digest").trim_start_matches("sha256:").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_is_swapped_under_load() {
    let bench = Bench::start().await;
    let rounds = if std::env::var_os("NOETL_TEST_LONG").is_some() { 20 } else { 3 };
    let before = bench.asked();
    let load = Load::begin(&bench);
    for round in 0..rounds {
        for path in SERVICES {
            bench.push(with_version(&system_guest(path), &format!("0.{}.0", round + 2))).await;
        }
    }
    let mut answers = load.end().await;
    while answers.len() < EXECUTIONS {
        answers.extend(bench.wave().await);
    }
    bench.completed_once("swaps", &answers, before);
    for path in SERVICES {
        assert_eq!(bench.stable(path).await, format!("0.{}.0", rounds + 1), "{path} was taken back");
    }
    let ended = bench.verify().await;
    all_complete(&ended);
    let met = ended.values().filter(|ended| ended.deciders.len() > 1).count();
    assert!(met > 0, "no execution met a swap of the orchestrator");
    println!(
        "{} executions during {} swaps, {met} of them decided by more than one version",
        ended.len(),
        rounds * SERVICES.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_orchestrator_is_contained_and_a_good_push_heals() {
    let bench = Bench::start().await;
    let bad = [
        Bad { guest: "sick-orchestrator-trap", then: Then::TakenBack("") },
        Bad { guest: "sick-orchestrator-hang", then: Then::TakenBack("`timeout`") },
        Bad { guest: "sick-orchestrator-garbage", then: Then::TakenBack("") },
        Bad { guest: "sick-orchestrator-short", then: Then::TakenBack("") },
        // A wave takes several times the memory it may have: its instances are made anew in time.
        Bad { guest: "odd-orchestrator-grow", then: Then::Serves },
        Bad { guest: "odd-orchestrator-twice", then: Then::Serves },
    ];
    for (number, bad) in bad.iter().enumerate() {
        survives(&bench, ORCHESTRATE, &format!("9.{number}.0"), bad).await;
    }
    all_complete(&bench.verify().await);
    assert!(bench.server.said().contains("issued a command twice"), "the doubled commands were not seen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_runner_is_contained_and_a_good_push_heals() {
    let bench = Bench::start().await;
    let bad = [
        Bad { guest: "sick-runner-trap", then: Then::TakenBack("") },
        Bad { guest: "sick-runner-hang", then: Then::TakenBack("`timeout`") },
        Bad { guest: "sick-runner-short", then: Then::TakenBack("") },
    ];
    for (number, bad) in bad.iter().enumerate() {
        survives(&bench, RUNNER, &format!("9.{number}.0"), bad).await;
    }
    all_complete(&bench.verify().await);
    // Of a report that makes no sense only the orchestrator can tell: the command fails, and with it what relies on it.
    let load = Load::begin(&bench);
    bench.push(with_version(&guest("sick-runner-garbage"), "9.9.0")).await;
    let fails = async |wave: &[Value]| wave[0]["status"] == "failed";
    let failed = bench.until("commands fail", fails).await;
    let told = events(&bench.api, id(&failed[failed.len() - WAVE.len()])).await;
    assert!(told.iter().any(|event| event.to_string().contains("report cannot be read")), "{told:#?}");
    heal(&bench, RUNNER).await;
    for answer in load.end().await {
        assert!(answer["status"] == "completed" || answer["status"] == "failed", "{answer}");
    }
    for (execution, ended) in bench.verify().await {
        assert!(["COMPLETED", "FAILED"].contains(&ended.status.as_str()), "{execution}: {}", ended.status);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_projector_or_state_builder_holds_up_nobody() {
    let bench = Bench::start().await;
    for (path, guest) in [
        ("system/projector", "sick-projector"),
        ("system/state_builder", "sick-state-builder"),
        ("system/outbox_publisher", "sick-publisher"),
    ] {
        // Executions complete and every wave is read back while it serves: the version before stands in.
        survives(&bench, path, "9.0.0", &Bad { guest, then: Then::TakenBack("") }).await;
    }
    let ended = bench.verify().await;
    all_complete(&ended);
    let waves = bench.asked().0 / WAVE.iter().map(|row| row.1).sum::<usize>();
    // Two executions of a wave have a child.
    assert_eq!(ended.len(), waves * (WAVE.len() + 2), "the tables have every execution");
}
