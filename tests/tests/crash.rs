//! kill -9 while versions are pushed and channels moved: what was acknowledged is there, nothing half-done
//! can be seen, and the log verifies.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use noetl_contract::Digest;
use noetl_tests::{Api, Server, guest, noetl_bin, with_manifest, with_marker};
use tempfile::TempDir;

const PATHS: [&str; 2] = ["main/crash/a", "main/crash/b"];

/// The same moments every run, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % bound
    }
}

fn rounds() -> u32 {
    if std::env::var_os("NOETL_TEST_LONG").is_some() { 200 } else { 20 }
}

fn version(base: &[u8], path: &str, number: u32) -> Vec<u8> {
    let manifest = format!("path = \"{path}\"\nversion = \"1.0.{number}\"\nworld = \"transform\"\n");
    with_manifest(&with_marker(base, number), &manifest)
}

/// What one writer knows of its path.
#[derive(Default, Clone)]
struct Known {
    /// version → digest, acknowledged.
    pushed: BTreeMap<String, String>,
    /// Where the channel is, acknowledged.
    stable: Option<String>,
    /// Where it may be instead, because the answer never came.
    maybe: Option<String>,
    next: u32,
}

/// Pushes and moves until the server dies under it.
async fn write(
    api: Api,
    base: Arc<Vec<u8>>,
    path: &'static str,
    mut known: Known,
    acknowledged: Arc<AtomicU32>,
) -> Known {
    loop {
        let number = known.next;
        known.next += 1;
        let name = format!("1.0.{number}");
        known.maybe = Some(name.clone());
        let bytes = version(&base, path, number);
        let digest = Digest::of(&bytes).to_string();
        let Some(201) = send(&api, "/api/plugins", bytes).await else { return known };
        known.pushed.insert(name.clone(), digest);
        known.stable = Some(name);
        acknowledged.fetch_add(1, Ordering::SeqCst);
        let before = known.pushed.keys().rev().find(|version| Some(*version) != known.stable.as_ref()).cloned();
        if let Some(back) = before.filter(|_| number % 3 == 2) {
            known.maybe = Some(back.clone());
            let body = serde_json::json!({"channel": "stable", "version": back, "reason": "test"}).to_string();
            let Some(200) = send(&api, &format!("/api/plugins/{path}:channel"), body.into_bytes()).await else {
                return known;
            };
            known.stable = Some(back);
            acknowledged.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// None when the connection died, which is what the test is about.
async fn send(api: &Api, path: &str, body: Vec<u8>) -> Option<u16> {
    let request = api.request(reqwest::Method::POST, path).header("content-type", "application/json").body(body);
    let answer = request.send().await.ok()?;
    let status = answer.status().as_u16();
    let text = answer.text().await.ok()?;
    assert!(status < 300, "{path} answered {status}: {text}");
    Some(status)
}

async fn check(server: &Server, path: &str, known: &mut Known) {
    let api = server.admin();
    if known.pushed.is_empty() && known.maybe.is_none() {
        return;
    }
    let answer = api.get(&format!("/api/plugins/{path}")).await;
    if answer.status == 404 {
        assert!(known.pushed.is_empty(), "{path} is gone, {:?} were acknowledged", known.pushed);
        return;
    }
    let shown = answer.is(200).json();
    let listed: BTreeMap<String, String> = shown["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|version| {
            let text = |key: &str| version["entry"][key].as_str().expect("text").to_owned();
            (text("version"), text("digest"))
        })
        .collect();
    for (version, digest) in &known.pushed {
        assert_eq!(listed.get(version), Some(digest), "{path} {version} was acknowledged");
    }
    for (version, digest) in &listed {
        // Whatever can be seen can be had whole, acknowledged or not.
        let bytes = api.get(&format!("/api/plugins/{path}:fetch?version={version}")).await.is(200).bytes;
        assert_eq!(Digest::of(&bytes).to_string(), *digest, "{path} {version}");
    }
    let stable = shown["channels"]["stable"].as_str().map(str::to_owned);
    assert!(
        stable == known.stable || stable == known.maybe,
        "stable is {stable:?}; acknowledged was {:?}, asked for {:?}",
        known.stable,
        known.maybe
    );
    let answered = api.call(path, "x").await.is(200);
    assert_eq!(Some(answered.header("noetl-plugin-version").to_owned()), stable);
    known.pushed = listed;
    known.stable = stable;
    known.maybe = None;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let base = Arc::new(guest("versioned"));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let mut known = PATHS.map(|_| Known::default());
    let mut total = 0;
    for round in 0..rounds() {
        let mut server = Server::start_on(folder.clone(), &[]);
        for (path, known) in PATHS.iter().zip(&mut known) {
            check(&server, path, known).await;
        }
        let acknowledged = Arc::new(AtomicU32::new(0));
        let writers: Vec<_> = PATHS
            .iter()
            .zip(&known)
            .map(|(path, known)| {
                tokio::spawn(write(server.admin(), base.clone(), path, known.clone(), acknowledged.clone()))
            })
            .collect();
        // Somewhere between the first requests and a few acknowledgements, at no particular instruction.
        let enough = random.below(4);
        let spins = random.below(20_000);
        let mut spun = 0;
        while acknowledged.load(Ordering::SeqCst) < enough || spun < spins {
            spun += 1;
            tokio::task::yield_now().await;
        }
        server.kill();
        for (writer, known) in writers.into_iter().zip(&mut known) {
            *known = writer.await.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        total += acknowledged.load(Ordering::SeqCst);
        drop(server);
        let verified =
            Command::new(noetl_bin()).args(["log", "verify", "--data"]).arg(folder.path()).output().expect("runs");
        assert!(verified.status.success(), "round {round}: {}", String::from_utf8_lossy(&verified.stderr));
    }
    let server = Server::start_on(folder.clone(), &[]);
    for (path, known) in PATHS.iter().zip(&mut known) {
        check(&server, path, known).await;
    }
    println!("{} kills, {total} acknowledged changes, none lost", rounds());
    assert!(total > 0, "nothing was acknowledged, so nothing was tested");
}

/// Compiler processes that work for this data folder.
fn compilers(data: &std::path::Path) -> usize {
    let data = data.to_str().expect("text");
    let of = |process: std::fs::DirEntry| std::fs::read_to_string(process.path().join("cmdline")).ok();
    let lines = std::fs::read_dir("/proc").expect("Linux").filter_map(|process| of(process.ok()?));
    lines.filter(|line| line.contains("\0compile\0") && line.contains(data)).count()
}

#[test]
fn a_killed_server_leaves_no_compiler_behind() {
    let empty = TempDir::new().expect("a folder");
    let nothing_compiled = [("XDG_CACHE_HOME", empty.path().to_str().expect("text"))];
    let mut server = Server::start_with(&nothing_compiled);
    while compilers(server.data()) == 0 {
        std::thread::yield_now();
    }
    server.kill();
    while compilers(server.data()) > 0 {
        std::thread::yield_now();
    }
}
