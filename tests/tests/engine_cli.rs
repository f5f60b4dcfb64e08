//! Playbooks through the real command: checked, run in one process, and run on a server.
//!
//! The playbooks use what comes with the engine only: `noop` answers with the `result` it is given, `playbook` runs another
//! one, `park` waits for somebody.
//!
//! The command is `$NOETL_BIN`, else the one beside these tests.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use noetl_tests::{Ran, Server, noetl_bin, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Branches, a parallel loop, a sub-playbook, variables.
const ORDERS: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: orders, path: demo/orders}
workload: {city: Oslo, limit: 3, items: [1, 2, 3]}
workflow:
  - step: start
    tool: {kind: noop, result: {city: "{{ city }}"}}
    set: {ctx.greeting: "hello {{ output.city }}"}
    next:
      arcs:
        - {step: each, when: "{{ limit > 1 }}"}
        - {step: small}
  - step: small
    tool: {kind: noop, result: {size: small}}
  - step: each
    loop: {in: "{{ items }}", iterator: item, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: noop, result: "{{ item }}"}
    next: child
  - step: child
    tool: {kind: playbook, path: demo/child, return_step: done, input: {from: "{{ greeting }}"}}
    next: finish
  - step: finish
    tool: {kind: noop, result: {greeting: "{{ greeting }}", limit: "{{ limit }}", city: "{{ city }}"}}
"#;

const CHILD: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: demo/child}
workload: {from: nobody}
workflow:
  - step: start
    tool: {kind: noop}
    next: done
  - step: done
    tool: {kind: noop, result: {from: "{{ from }}"}}
"#;

/// Fails in its second step.
const BROKEN: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: broken, path: demo/broken}
workload: {fail: true}
workflow:
  - step: start
    tool: {kind: noop, result: 1}
    next: risky
  - step: risky
    tool:
      kind: noop
      spec:
        policy:
          rules:
            - {when: "{{ fail }}", then: {do: fail}}
"#;

/// Waits for somebody.
const APPROVAL: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: approval, path: demo/approval}
workflow:
  - step: start
    tool: {kind: park, message: "ship it?"}
    next: ship
  - step: ship
    tool: {kind: noop, result: {answer: "{{ start.answer }}"}}
"#;

/// Two errors and a key nobody knows.
const WRONG: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: wrong}
wokload: {}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: finnish}]}
  - step: finish
    next: {arcs: [{step: start, when: "{{ 1 + }}"}]}
    tool: {kind: noop}
"#;

/// A folder with all the playbooks above.
struct Playbooks(TempDir);

impl Playbooks {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let files = [("orders", ORDERS), ("child", CHILD), ("broken", BROKEN), ("approval", APPROVAL)];
        for (name, text) in files {
            std::fs::write(folder.path().join(format!("{name}.yaml")), text).expect("write");
        }
        std::fs::write(folder.path().join("values.yaml"), "kind: Deployment\n").expect("write");
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn folder(&self) -> String {
        self.0.path().display().to_string()
    }
}

/// The command, with a cache that runs share and nothing of the outer environment that would change what it does.
fn noetl(data: &Path) -> Command {
    let mut command = Command::new(noetl_bin());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NOETL_") {
            command.env_remove(name);
        }
    }
    let cache: PathBuf = noetl_bin().parent().expect("a folder").join("engine-cli-cache");
    command.env("NOETL_DATA", data).env("XDG_CACHE_HOME", cache).stdin(Stdio::null());
    command
}

/// Without a server: the data folder is never made.
fn offline(args: &[&str]) -> Ran {
    run(noetl(Path::new("/nonexistent/noetl")).args(args))
}

fn on(server: &Server, args: &[&str]) -> Ran {
    run(noetl(server.data()).args(args))
}

#[test]
fn a_playbook_is_checked_without_a_server() {
    let playbooks = Playbooks::new();
    offline(&["validate", &playbooks.folder()]).ok().says("demo/orders with 5 steps, no problems");

    let wrong = playbooks.file("wrong.yaml");
    std::fs::write(&wrong, WRONG).expect("write");
    let told = offline(&["validate", &wrong]).ends(1).says("did you mean `finish`?").says("did you mean `workload`?");
    assert!(told.stdout.contains(&format!("{wrong}:5:1: warning: wokload: ")), "{}", told.stdout);
    assert!(told.stdout.contains(&format!("{wrong}:9:")), "{}", told.stdout);
    assert!(!told.stdout.contains('\u{1b}'), "no colours in a pipe: {:?}", told.stdout);

    let all = offline(&["validate", &wrong, &playbooks.file("child.yaml"), "--json"]).ends(1).json();
    assert_eq!(
        (&all["valid"], &all["files"][0]["valid"], &all["files"][1]["valid"]),
        (&json!(false), &json!(false), &json!(true))
    );
    let problems = all["files"][0]["problems"].as_array().expect("a list");
    let errors = problems.iter().filter(|problem| problem["severity"] == "error").count();
    assert!(errors >= 2, "all problems at once: {problems:#?}");
    let coloured = offline(&["validate", &wrong, "--color", "always"]).ends(1);
    assert!(coloured.stdout.contains("\u{1b}[31merror"), "{:?}", coloured.stdout);

    let warned = ORDERS.replace("workload:", "wokload:");
    std::fs::write(&wrong, warned).expect("write");
    offline(&["validate", &wrong]).ok().says("1 warning");
    offline(&["validate", &wrong, "--strict"]).ends(1);
    offline(&["validate", "/no/such/file.yaml"]).ends(3);
    offline(&["validate"]).ends(2);
    let schema = offline(&["schema", "playbook"]).ok().json();
    assert!(schema["$defs"]["step"]["properties"]["tool"].is_object(), "{schema:#}");
}

#[test]
fn a_playbook_runs_without_a_server_and_shows_its_steps() {
    let playbooks = Playbooks::new();
    let file = playbooks.file("orders.yaml");
    let ran = offline(&["run", &file]).ok();
    assert_eq!(ran.json(), json!({"greeting": "hello Oslo", "limit": 3, "city": "Oslo"}));
    let lines: Vec<_> = ran.stderr.lines().collect();
    let has = |wanted: &str| assert!(lines.iter().any(|line| line.starts_with(wanted)), "{wanted} in {lines:#?}");
    has("▸ demo/orders version 1  execution ");
    has("→ start");
    has("✓ start ");
    has("· small skipped");
    has("  ▸ demo/child version 1");
    has("  ✓ done ");
    has("✓ child ");
    has("✓ completed ");
    assert!(lines.iter().any(|line| line.starts_with("✓ each ") && line.ends_with("3/3")), "{lines:#?}");
    assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\r'), "{:?}", ran.stderr);

    // Defaults go under the payload, the payload under what is set.
    let payload = r#"{"city": "Bergen", "limit": 7}"#;
    let ran = offline(&["run", &file, "--payload", payload, "--set", "limit=9", "--quiet"]).ok();
    assert_eq!(ran.json(), json!({"greeting": "hello Bergen", "limit": 9, "city": "Bergen"}));
    assert_eq!(ran.stderr, "", "nothing is said when quiet");

    let ran = offline(&["run", &file, "--set", "limit=1", "--json"]).ok();
    let value = ran.json();
    assert_eq!((&value["status"], &value["output"]), (&json!("completed"), &json!({"size": "small"})));
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_failed_run_says_why_and_a_wrong_playbook_is_not_started() {
    let playbooks = Playbooks::new();
    let file = playbooks.file("broken.yaml");
    let ran = offline(&["run", &file]).ends(1);
    assert_eq!(ran.stdout, "", "there is no result");
    let ran = ran
        .says("✓ start")
        .says("✗ risky")
        .says("✗ failed")
        .says("what led to it")
        .says("failed because step `risky` failed");
    assert!(ran.stderr.contains("tools/noop@"), "{}", ran.stderr);
    let ran = offline(&["run", &file, "--json"]).ends(1);
    assert_eq!(ran.json()["status"], "failed");
    let document: Value = serde_json::from_str(&ran.stderr).expect("errors are JSON too");
    assert_eq!((&document["code"], &document["exit_code"]), (&json!("execution_failed"), &json!(1)));
    offline(&["run", &file, "--set", "fail=false"]).ok();

    let wrong = playbooks.file("wrong.yaml");
    std::fs::write(&wrong, WRONG).expect("write");
    offline(&["run", &wrong]).ends(1).says("finnish").says("cannot run");
    offline(&["run", "/no/such/file.yaml"]).ends(3);
    offline(&["run", &file, "--set", "fail"]).ends(2).says("has no `=`");
    offline(&["run", &file, "--payload", "[1]"]).ends(2).says("one JSON object");
}

#[test]
fn a_run_can_be_kept_and_is_then_served() {
    let (playbooks, place) = (Playbooks::new(), TempDir::new().expect("a folder"));
    let folder = place.path().join("runs");
    let run = offline(&["run", &playbooks.file("broken.yaml"), "--data-dir", &folder.display().to_string(), "--json"]);
    let id = run.ends(1).json()["execution_id"].as_str().expect("an id").to_owned();
    let verified = self::run(noetl(&folder).args(["log", "verify", "--json"])).ok().json();
    assert_eq!(verified["problems"], json!([]));
    let mut child = Server::command(&folder, &[]).spawn().expect("starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("listening on ")));
    let shown = self::run(noetl(&folder).args(["status", &id, "--json"])).ok().json();
    assert_eq!((&shown["status"], &shown["path"]), (&json!("FAILED"), &json!("demo/broken")));
    let in_use = offline(&["run", &playbooks.file("child.yaml"), "--data-dir", &folder.display().to_string()]);
    in_use.ends(5).says("in use");
    child.kill().expect("it is our child");
    let _ = child.wait();
}

#[test]
fn ctrl_c_cancels_a_run() {
    let playbooks = Playbooks::new();
    let mut command = noetl(Path::new("/nonexistent/noetl"));
    command.args(["run", &playbooks.file("approval.yaml")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut said = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "‖ start parked: ship it?"), "the step parks");
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("kill is there").success());
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().expect("it is our child").code(), Some(1), "{rest:#?}");
    assert!(rest.iter().any(|line| line.starts_with("✗ cancelled ")), "{rest:#?}");
    assert!(rest.iter().any(|line| line.contains("interrupted")), "{rest:#?}");
}

#[test]
fn playbooks_are_registered_and_found_in_the_catalog() {
    let (server, playbooks) = (Server::start(), Playbooks::new());
    let registered = on(&server, &["register", &playbooks.folder(), "--json"]).ok().json();
    assert_eq!(registered["registered"].as_array().map(Vec::len), Some(4));
    on(&server, &["register", &playbooks.file("child.yaml")]).ok().says("demo/child version 1");
    let wrong = playbooks.file("wrong.yaml");
    std::fs::write(&wrong, WRONG).expect("write");
    // The right ones are registered all the same.
    std::fs::write(playbooks.file("child.yaml"), CHILD.replace("nobody", "somebody")).expect("write");
    let refused = on(&server, &["register", &playbooks.folder()]).ends(1).says("demo/child version 2").says("finnish");
    assert!(refused.stderr.contains(&format!("{wrong}:9:")), "{}", refused.stderr);

    on(&server, &["catalog", "list", "--prefix", "demo/"]).ok().says("demo/orders").says("demo/approval");
    let shown = on(&server, &["catalog", "show", "demo/child", "--version", "1"]).ok();
    assert_eq!(shown.stdout.trim(), CHILD.trim());
    let versions = on(&server, &["catalog", "versions", "demo/child", "--json"]).ok().json();
    assert!(versions.to_string().contains("demo/child@2"), "{versions:#}");
    on(&server, &["catalog", "delete", "demo/child"]).ok();
    on(&server, &["exec", "demo/child"]).ends(3).says("no playbook `demo/child`");
    on(&server, &["catalog", "restore", "demo/child"]).ok();
    let output = on(&server, &["exec", "demo/child", "--wait"]).ok().json();
    assert_eq!(output, json!({"from": "somebody"}));
    let output = on(&server, &["exec", "demo/child@1", "--wait", "60"]).ok().json();
    assert_eq!(output, json!({"from": "nobody"}));
    on(&server, &["catalog", "show", "../tokens"]).ends(2);
}

#[test]
fn executions_are_started_seen_and_explained() {
    let (server, playbooks) = (Server::start(), Playbooks::new());
    on(&server, &["register", &playbooks.folder()]).ok();
    let followed = on(&server, &["exec", "demo/orders", "--set", "city=Bodø", "--follow"]).ok();
    assert_eq!(followed.json()["greeting"], "hello Bodø");
    let followed = followed.says("✓ start").says("  ▸ demo/child version 1").says("✓ completed");
    assert!(!followed.stderr.contains('\u{1b}'), "{:?}", followed.stderr);

    let failed = on(&server, &["exec", "demo/broken", "--wait", "--json"]).ends(1);
    let id = failed.json()["execution_id"].as_str().expect("an id").to_owned();
    assert_eq!(failed.json()["status"], "failed");
    on(&server, &["status", &id]).ok().says("demo/broken version 1").says("failed").says("risky");
    on(&server, &["executions", "--status", "failed"]).ok().says(&id);
    let none = on(&server, &["executions", "--status", "running", "--path", "demo/broken", "--json"]).ok().json();
    assert_eq!(none["executions"], json!([]));
    on(&server, &["why", &id])
        .ok()
        .says("failed because step `risky` failed")
        .says("step.enter")
        .says("from start, arc 0");
    what_happened(&server, &id);
    states(&server, &id);

    let again = on(&server, &["retry", &id, "--json"]).ok().json();
    let new = again["execution_id"].as_str().expect("an id").to_owned();
    on(&server, &["events", &new, "--follow"]).ok().says("execution.adopted");
    on(&server, &["status", "1"]).ends(3);
    on(&server, &["status", "nonsense"]).ends(2).says("digits only");
    on(&server, &["exec", "demo/nothing"]).ends(3);
}

fn what_happened(server: &Server, id: &str) {
    let all = on(server, &["events", id, "--json"]).ok().json();
    assert_eq!(all["complete"], true);
    let events = all["events"].as_array().expect("a list");
    let kinds: Vec<_> = events.iter().filter_map(|event| event["event_type"].as_str()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"playbook.initialized"), Some(&"playbook.failed")));
    let followed = on(server, &["events", id, "--follow", "--json"]).ok();
    let lines: Vec<Value> = followed.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(&lines, events, "the stream and the pages are the same");
    let half = events[events.len() / 2]["event_id"].as_str().expect("an id");
    let rest = on(server, &["events", id, "--after", half, "--json"]).ok().json();
    assert_eq!(rest["events"].as_array().expect("a list"), &events[events.len() / 2 + 1..]);
    let exits = on(server, &["events", id, "--type", "step.exit", "--json"]).ok().json();
    assert!(exits["events"].as_array().expect("a list").iter().all(|event| event["event_type"] == "step.exit"));
    on(server, &["events", id, "--type", "step.*"]).ok().says("step.enter").says("risky");
}

fn states(server: &Server, id: &str) {
    let state = on(server, &["replay", id, "--json"]).ok().json();
    assert_eq!(state["execution"]["status"], "FAILED");
    let again = on(server, &["replay", id, "--json"]).ok().json();
    assert_eq!(state["checksum"], again["checksum"]);
    let events = on(server, &["events", id, "--type", "step.exit", "--json"]).ok().json();
    let first = events["events"][0]["event_id"].as_str().expect("an id");
    let earlier = on(server, &["replay", id, "--at-event", first, "--json"]).ok().json();
    assert_eq!(earlier["execution"]["status"], "RUNNING");
    assert_ne!(state["checksum"], earlier["checksum"]);
    let past = on(server, &["replay", id, "--at-time", "2001-01-01T00:00:00Z"]).ok();
    past.says("had no events yet");
    on(server, &["replay", id]).ok().says("business_objects").says("checksum ");
    on(server, &["replay", id, "--at-event", "1", "--at-position", "1"]).ends(2);
}

#[test]
fn a_parked_execution_is_resumed_or_cancelled() {
    let (server, playbooks) = (Server::start(), Playbooks::new());
    on(&server, &["register", &playbooks.file("approval.yaml")]).ok();
    let started = on(&server, &["exec", "demo/approval"]).ok();
    let id = started.stdout.trim().to_owned();
    // The wait has a limit, and the execution goes on.
    on(&server, &["exec", "demo/approval", "--wait", "1"]).ends(1).says("still runs");
    on(&server, &["why", &id]).ok().says("start waits to be resumed: ship it?");
    on(&server, &["resume", &id, "nothing"]).ends(5);
    on(&server, &["resume", &id, "start", "--value", "{"]).ends(2);
    on(&server, &["resume", &id, "start", "--value", r#"{"answer": "yes"}"#]).ok().says("goes on");
    on(&server, &["events", &id, "--follow"]).ok().says("step.resumed");
    let shown = on(&server, &["status", &id, "--json"]).ok().json();
    assert_eq!((&shown["status"], &shown["output"]), (&json!("COMPLETED"), &json!({"answer": "yes"})));

    let other = on(&server, &["exec", "demo/approval", "--json"]).ok().json();
    let other = other["execution_id"].as_str().expect("an id").to_owned();
    on(&server, &["cancel", &other, "--reason", "wrong day"]).ok().says("is being cancelled");
    on(&server, &["events", &other, "--follow"]).ok();
    on(&server, &["why", &other]).ok().says("wrong day");
    on(&server, &["status", &other]).ok().says("cancelled");
    on(&server, &["cancel", &other]).ends(5);
}

#[test]
fn the_examples_run_as_they_are() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/engine/orders.yaml");
    let ran = offline(&["run", file, "--set", "customer=Grace"]).ok();
    assert_eq!(ran.json(), json!({"customer": "Grace", "total": 400, "label": "3 parcels for Grace"}));
}

#[test]
fn a_loop_of_ten_thousand_is_run_and_explained() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("long.yaml");
    let text = "apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: long, path: demo/long}
workflow:
- step: start
  loop: {in: '{{ range(10000) | list }}', iterator: i, spec: {mode: parallel, max_in_flight: 50}}
  tool: {kind: noop, result: '{{ i }}'}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: '{{ start.stats.success }}'}
";
    std::fs::write(&file, text).expect("written");
    let data = Arc::new(TempDir::new().expect("a folder"));
    let kept = data.path().to_str().expect("text");
    let ran = offline(&["run", file.to_str().expect("text"), "-q", "--json", "--data-dir", kept]).ok().json();
    assert_eq!(ran["output"], 10_000, "{ran}");
    let server = Server::start_on(data.clone(), &[]);
    let id = ran["execution_id"].as_str().expect("an id");
    on(&server, &["why", id]).ok().says("every step that ran succeeded");
    let replayed = on(&server, &["replay", id, "--json"]).ok().json();
    assert_eq!(replayed["execution_id"], id, "{replayed}");
}
