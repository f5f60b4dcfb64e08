//! Two hundred versions are pushed while clients call without pause.
//!
//! Each answer must come from a version that was live during its call: not older than the newest version
//! acknowledged before the call began, not newer than the newest push begun before it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use noetl_tests::{Server, guest, with_manifest, with_marker};

const PATH: &str = "main/swap/versioned";
const VERSIONS: u32 = 200;
const CLIENTS: usize = 4;

fn version(base: &[u8], number: u32) -> Vec<u8> {
    let manifest = format!("path = \"{PATH}\"\nversion = \"1.0.{number}\"\nworld = \"transform\"\n");
    with_manifest(&with_marker(base, number), &manifest)
}

struct Clock {
    begun: AtomicU32,
    acknowledged: AtomicU32,
    done: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_never_fail_and_never_see_a_version_that_was_not_live() {
    let server = Server::start();
    let admin = server.admin();
    let base = guest("versioned");
    admin.push(version(&base, 0), "").await.is(201);
    let clock =
        Arc::new(Clock { begun: AtomicU32::new(0), acknowledged: AtomicU32::new(0), done: AtomicBool::new(false) });
    let callers: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (api, clock) = (server.admin(), clock.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while !clock.done.load(Ordering::SeqCst) {
                    let oldest = clock.acknowledged.load(Ordering::SeqCst);
                    let started = Instant::now();
                    let answer = api.call(PATH, "x").await.is(200).json();
                    latencies.push(started.elapsed());
                    let newest = clock.begun.load(Ordering::SeqCst);
                    let marker: u32 = answer["marker"]
                        .as_str()
                        .and_then(|text| text.rsplit('-').next()?.parse().ok())
                        .expect("a marker");
                    assert!(
                        (oldest..=newest).contains(&marker),
                        "{marker} answered while {oldest} to {newest} were live"
                    );
                }
                latencies
            })
        })
        .collect();
    let mut resident_midway = 0;
    for number in 1..=VERSIONS {
        let bytes = version(&base, number);
        clock.begun.store(number, Ordering::SeqCst);
        admin.push(bytes, "").await.is(201);
        clock.acknowledged.store(number, Ordering::SeqCst);
        if number == VERSIONS / 2 {
            resident_midway = resident_bytes(server.pid());
        }
    }
    clock.done.store(true, Ordering::SeqCst);
    let mut latencies: Vec<Duration> = Vec::new();
    for caller in callers {
        latencies.extend(caller.await.expect("no call failed"));
    }
    latencies.sort();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "{} calls during {VERSIONS} swaps: p50 {:?}, p99 {:?}, longest pause {:?}",
        latencies.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    assert!(latencies.len() > VERSIONS as usize, "the clients must have been calling all the time");
    one_module_is_left(&server).await;
    let grown = resident_bytes(server.pid()).saturating_sub(resident_midway);
    println!("memory grew by {} KiB during the second hundred swaps", grown >> 10);
    assert!(grown < 32 << 20, "two hundred modules must not add up");
}

/// Retiring follows the switch, so the metrics are read until it has.
async fn one_module_is_left(server: &Server) {
    let api = server.admin();
    let series = format!("noetl_plugin_instances{{plugin=\"{PATH}\"");
    let mut seen = Vec::new();
    for _ in 0..2_000 {
        let text = api.get("/metrics").await.is(200).text();
        seen = text.lines().filter(|line| line.starts_with(&series)).map(str::to_owned).collect();
        if seen.len() == 1 && seen[0].ends_with(" 0") && seen[0].contains(&format!("1.0.{VERSIONS}")) {
            return;
        }
    }
    panic!("more than the newest module is alive: {seen:?}");
}

fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the server runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("every process has it");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}
