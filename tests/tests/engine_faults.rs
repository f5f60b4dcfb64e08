//! The machine goes wrong while playbooks run: its disk is full, so that commits fail after the drive decided them, and
//! its clock jumps. Executions go on by themselves, and each ends once. And it is stricter than usual: nothing on its disk
//! may be run.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use noetl_tests::load::{all_ended, check_execution, events, finish, register, start};
use noetl_tests::{Api, Outside, Server, SmallDisk, guest, made, noetl_bin, with_manifest};
use serde_json::json;
use tempfile::TempDir;

const ENVIRONMENT: [(&str, &str); 1] = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];

async fn metric(api: &Api, name: &str) -> f64 {
    let text = api.get("/metrics").await.is(200).text();
    let line = text.lines().find(|line| line.starts_with(&format!("{name}_total ")));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}

/// Executions that are found to be on their way when the disk is full.
const UNDER_WAY: u32 = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_holds_executions_up_and_loses_none() {
    let outside = Outside::start().await;
    // The machine code of the interpreters is put there with everything else that is compiled in.
    let disk = SmallDisk::new(256);
    let serve = || {
        let mut command = disk.inside(&Server::command(disk.folder.path(), &ENVIRONMENT));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Server::start_by(command, disk.folder.clone())
    };
    let server = serve();
    let api = server.admin();
    register(&api).await;
    let large = json!({"content": "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: load/large}
workload: {url: '', pad: ''}
workflow:
- step: start
  tool: {kind: http, url: '{{ url }}/large', spec: {retry_safe: true}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ pad }}{{ start.status_code }}'}
"});
    api.post("/api/catalog/register", large).await.is(201);
    for number in 0..UNDER_WAY {
        start(&api, &outside, number).await.expect("the server runs");
    }
    // Room for a few payloads only, then for none; and the log needs a new volume before long.
    disk.fill_but(256 * 1024);
    let (mut taken, mut refused) = (Vec::new(), 0_u32);
    while refused < 3 || metric(&api, "noetl_engine_commit_failures").await < 3.0 {
        let pad = format!("{:05}{}", taken.len(), "x".repeat(30_000));
        let body = json!({"path": "load/large", "payload": {"url": outside.url, "pad": pad},
            "dedup": {"key": format!("large-{}", taken.len()), "window_secs": 86_400}});
        let answer = api.post("/api/execute", body.clone()).await;
        match answer.status {
            200..300 => taken.push(body),
            500.. => {
                assert!(answer.text().contains("space"), "it says what is wrong: {}", answer.text());
                refused += 1;
            }
            _ => panic!("{}", answer.text()),
        }
    }
    // Reading goes on.
    api.get("/api/executions?limit=1").await.is(200);
    disk.empty();
    let mut wanted = Vec::new();
    for number in 0..UNDER_WAY {
        wanted.push(finish(&api, &outside, number).await);
    }
    for body in taken {
        let ended = api.post("/api/execute?wait=300", body).await.is(200).json();
        wanted.push(ended["execution_id"].as_str().expect("an id").to_owned());
    }
    let ended = all_ended(&api).await;
    let seen = outside.seen();
    for execution in &wanted {
        assert_eq!(ended.get(execution).map(String::as_str), Some("COMPLETED"), "{execution}");
    }
    for execution in ended.keys() {
        check_execution(execution, &events(&api, execution).await, &seen);
    }
    let failures = metric(&api, "noetl_engine_commit_failures").await;
    drop(api);
    server.stop();
    let mut verify = Command::new(noetl_bin());
    verify.args(["log", "verify", "--data"]).arg(disk.folder.path());
    let verified = disk.inside(&verify).output().expect("runs");
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let server = serve();
    assert_eq!(all_ended(&server.admin()).await, ended);
    println!("{failures} commits failed, {refused} starts were refused, {} executions completed", ended.len());
}

/// A server whose wall clock is what the file says, such as `-2d`.
fn serve_by(clock: &Path, folder: &Arc<TempDir>) -> Server {
    let mut command = Server::command(folder.path(), &ENVIRONMENT);
    // The loader puts the machine's own folder of libraries for `$LIB`.
    command.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1").env("FAKETIME_TIMESTAMP_FILE", clock);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Server::start_by(command, folder.clone())
}

/// The day the server believes it is.
async fn day(api: &Api) -> String {
    let answer = api.get("/api/executions?limit=1").await.is(200);
    answer.headers["date"].to_str().expect("text")[..16].to_owned()
}

/// The server takes the date of an answer when it begins to look at a connection, which may be before the request is
/// there: the first answer after a jump can have the day from before it. The hundredth cannot.
async fn is_another_day(api: &Api, before: &str) {
    for _ in 0..100 {
        if day(api).await != before {
            return;
        }
    }
    panic!("the clock does not jump: is Debian's `libfaketime` installed?");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_neither_stops_nor_ends_executions() {
    let outside = Outside::start().await;
    let folder = Arc::new(TempDir::new().expect("a folder"));
    let clock = folder.path().join("clock");
    // Whole or not at all: the server reads it whenever it asks for the time.
    let set = |text: &str| {
        let next = folder.path().join("clock.next");
        std::fs::write(&next, text).and_then(|()| std::fs::rename(&next, &clock)).expect("written");
    };
    set("+0");
    let mut server = serve_by(&clock, &folder);
    let api = server.admin();
    register(&api).await;
    let waiting = json!({"content": "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waits, path: load/waits}
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: ask}]}
- step: ask
  timeout: 3600
  tool: {kind: park, message: 'is it so?'}
"});
    api.post("/api/catalog/register", waiting).await.is(201);
    let parked = api.post("/api/execute", json!({"path": "load/waits"})).await.json();
    let parked = parked["execution_id"].as_str().expect("an id").to_owned();
    let mut number = 0;
    for jump in ["+1d", "-2d", "+3d"] {
        for _ in 0..6 {
            start(&api, &outside, number).await.expect("the server runs");
            number += 1;
        }
        let before = day(&api).await;
        set(jump);
        // The header's date never goes back, so only a jump forward shows there.
        if jump.starts_with('+') {
            is_another_day(&api, &before).await;
        }
        for number in 0..number {
            finish(&api, &outside, number).await;
        }
    }
    let asked = api.get(&format!("/api/executions/{parked}")).await.is(200).json();
    assert_eq!(asked["status"], "RUNNING", "an hour has not passed: {asked}");
    // The log has times of now; after the restart the clock is five days behind them.
    for _ in 0..6 {
        start(&api, &outside, number).await.expect("the server runs");
        number += 1;
    }
    server.kill();
    set("-5d");
    let server = serve_by(&clock, &folder);
    let api = server.admin();
    for number in 0..number {
        finish(&api, &outside, number).await;
    }
    api.post(&format!("/api/executions/{parked}/resume"), json!({"step": "ask", "value": true})).await.is(200);
    let ended = all_ended(&api).await;
    assert_eq!(ended.len() as u32, number + number / 3 + 1, "each ran once, a third of them with a child: {ended:?}");
    for (execution, status) in &ended {
        assert_eq!(status, "COMPLETED", "{execution}");
        let events = events(&api, execution).await;
        check_execution(execution, &events, &BTreeMap::new());
        let times: Vec<&str> = events.iter().filter_map(|event| event["created_at"].as_str()).collect();
        assert!(times.is_sorted(), "{execution}: time went back: {times:?}");
    }
}

#[tokio::test]
async fn components_run_from_a_disk_that_nothing_may_be_run_from() {
    let disk = SmallDisk::without_programs();
    let serve = || {
        let mut command = disk.inside(&Server::command(disk.folder.path(), &ENVIRONMENT));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Server::start_by(command, disk.folder.clone())
    };
    let ready = async |api: &Api| while api.get("/ready").await.status != 200 {};
    let server = serve();
    let api = server.admin();
    ready(&api).await;
    let component = with_manifest(&guest("echo"), &made::manifest("main/echo", &[], ""));
    api.push(component, "").await.is(201);
    assert_eq!(api.call("main/echo", "compiled").await.is(200).text(), "compiled");
    drop(server);
    let server = serve();
    let api = server.admin();
    ready(&api).await;
    assert_eq!(api.call("main/echo", "loaded").await.is(200).text(), "loaded");
}
