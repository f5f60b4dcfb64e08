//! What an author does from an empty folder to a live plugin, through the real command and a real server.
//!
//! The projects are those of `noetl plugin new`, unchanged where the claim is that they work as they are. Building
//! guests takes most of the time, so each test makes one project and takes it through the whole loop.
//!
//! The command is `$NOETL_BIN`, else the one beside these tests.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use noetl_tests::{Ran, noetl_bin, run};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server on a folder and port of its own; it ends with the test.
struct Server {
    process: Child,
    data: TempDir,
    _talk: Lines<BufReader<ChildStderr>>,
}

impl Server {
    fn start() -> Self {
        let data = TempDir::new().expect("a folder");
        let mut process = command(data.path())
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("NOETL_LOG_LEVEL", "error")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut talk = BufReader::new(process.stderr.take().expect("piped")).lines();
        let mut said = Vec::new();
        while said.last().is_none_or(|line: &String| !line.starts_with("listening on ")) {
            match talk.next() {
                Some(Ok(line)) => said.push(line),
                _ => panic!("the server ended before it listened:\n{}", said.join("\n")),
            }
        }
        Self { process, data, _talk: talk }
    }

    fn command(&self) -> Command {
        command(self.data.path())
    }

    fn run(&self, args: &[&str]) -> Ran {
        run(self.command().args(args))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command with a data folder and nothing of the outer environment that would change what it does.
fn command(data: &Path) -> Command {
    let mut command = Command::new(noetl_bin());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NOETL_") {
            command.env_remove(name);
        }
    }
    command.env("NOETL_DATA", data).env("NOETL_BIN", noetl_bin()).stdin(Stdio::null());
    command
}

/// A new project of a world, below a folder that goes away with the test.
fn project(server: &Server, place: &TempDir, path: &str, world: &str) -> (PathBuf, String) {
    let folder = place.path().join("project");
    let text = folder.display().to_string();
    server.run(&["plugin", "new", &text, "--path", path, "--world", world]).ok().says("noetl plugin push");
    (folder, text)
}

/// The project's own tests, compiled into a folder that further runs share.
fn cargo_test(folder: &Path) -> Ran {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let target = noetl_bin().parent().expect("a folder").join("author-projects");
    run(cargo.arg("test").current_dir(folder).env("CARGO_TARGET_DIR", target).env("NOETL_BIN", noetl_bin()))
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(file).expect("the file is there");
    assert!(text.contains(from), "`{from}` is not in {}", file.display());
    std::fs::write(file, text.replace(from, to)).expect("the file can be written");
}

#[test]
fn a_new_transform_builds_tests_and_pushes_as_it_is_and_grows_from_there() {
    let (server, place) = (Server::start(), TempDir::new().expect("a folder"));
    let (folder, text) = project(&server, &place, "acme/greeter", "transform");
    server
        .run(&["plugin", "new", &text, "--path", "acme/greeter", "--world", "transform"])
        .ends(5)
        .says("is not empty");

    let built = server.run(&["plugin", "build", &text, "--json"]).ok().json();
    assert_eq!((&built["path"], &built["version"]), (&json!("acme/greeter"), &json!("0.1.0")));
    assert!(Path::new(built["file"].as_str().expect("a file")).is_file());
    assert!(built["imports"].as_array().expect("imports").iter().all(|name| name != "noetl:kv/kv@0.1.0"));
    cargo_test(&folder).ok().says("the_component_greets ... ok");
    server.run(&["plugin", "test", &text]).ok().says("1 of 1 cases hold");

    let pushed = server.run(&["plugin", "push", &text, "--reason", "first", "--json"]).ok().json();
    assert_eq!((&pushed["created"], &pushed["digest"]), (&json!(true), &built["digest"]), "a build is reproducible");
    let input = r#"{"name": "Ada"}"#;
    let called =
        server.run(&["plugin", "call", "acme/greeter", "--input", input, "--time"]).ok().says("0.1.0 (channel)");
    assert_eq!(called.stdout, r#"{"greeting":"Hello, Ada!"}"#);
    let called = server.run(&["plugin", "call", "acme/greeter", "--input", input, "--json"]).ok().json();
    assert_eq!(called["output"], json!({ "greeting": "Hello, Ada!" }));

    more_capabilities_need_a_grant(&server, &folder, &text);
    failures_have_exit_codes(&server);
    versions_move(&server, place.path());
    server.run(&["plugin", "logs", "acme/greeter"]).ok().says("greeting name=Ada");
    let lines = server.run(&["plugin", "logs", "acme/greeter", "--limit", "1", "--json"]).ok().json();
    assert_eq!(lines["lines"].as_array().map(Vec::len), Some(1));
    a_save_is_live(&server, &folder, &text);
}

/// The project's version 0.2.0 asks for `kv` too.
fn more_capabilities_need_a_grant(server: &Server, folder: &Path, text: &str) {
    edit(&folder.join("plugin.toml"), r#"version = "0.1.0""#, r#"version = "0.2.0""#);
    edit(&folder.join("plugin.toml"), r#"["log"]"#, r#"["log", "kv"]"#);
    server.run(&["plugin", "diff", "acme/greeter@0.1.0", text]).ok().says("version: 0.1.0 -> 0.2.0").says("+ kv");
    let refused = server.run(&["plugin", "push", text]).ends(5).says("+ kv");
    assert!(refused.stderr.contains(&format!("noetl plugin push {text} --grant kv")), "{}", refused.stderr);
    let document: Value =
        serde_json::from_str(&server.run(&["plugin", "push", text, "--json"]).ends(5).stderr).expect("JSON");
    assert_eq!((&document["code"], &document["exit_code"]), (&json!("needs_grant"), &json!(5)));
    server.run(&["plugin", "push", text, "--grant", "kv"]).ok().says("0.2.0 is live");
    // The same bytes again are the same version, which is no error.
    let again = server.run(&["plugin", "push", text, "--json"]).ok().json();
    assert_eq!(again["created"], json!(false));
    edit(&folder.join("src/lib.rs"), "Hello, {name}!\")", "Hi, {name}!\")");
    server.run(&["plugin", "push", text]).ends(5).says("0.2.0");
    edit(&folder.join("src/lib.rs"), "Hi, {name}!\")", "Hello, {name}!\")");
}

fn failures_have_exit_codes(server: &Server) {
    let call = |args: &[&str]| server.run(&[&["plugin", "call"], args].concat());
    call(&["acme/greeter", "--input", r#"{"name": " "}"#])
        .ends(7)
        .says("`name` is empty")
        .says("/errors/plugin_failure");
    call(&["acme/nobody", "--input", "x"]).ends(3);
    call(&["acme/greeter", "--input", "x", "--token", "noetl_wrong"]).ends(4).says("--token");
    call(&["acme/greeter", "--input", "x", "--server", "http://127.0.0.1:1"]).ends(6).says("noetl serve");
    call(&["Not A Path"]).ends(2);
    call(&["acme/greeter", "--input", "x", "--capabilities", "kvv"]).ends(2).says("kvv");
    call(&["acme/greeter", "--json-args", "[1]"]).ends(2).says("one JSON object");
    server.run(&["config", "check", "/no/such/file.toml"]).ends(3);
    server.run(&["log", "verify"]).ends(5).says("in use by process");
    server.run(&["serve", "--listen", "127.0.0.1:0"]).ends(5).says("in use by process");
}

/// 0.1.0 and 0.2.0 exist, `stable` is at 0.2.0.
fn versions_move(server: &Server, place: &Path) {
    server.run(&["plugin", "rollback", "acme/greeter", "--reason", "try"]).ok().says("from 0.2.0 to 0.1.0");
    server.run(&["plugin", "channel", "acme/greeter", "canary", "0.2.0"]).ok();
    let list = server.run(&["plugin", "list", "--prefix", "acme/", "--json"]).ok().json();
    let versions: HashSet<_> =
        list["plugins"].as_array().expect("rows").iter().map(|row| row["entry"]["version"].clone()).collect();
    assert_eq!(versions, HashSet::from([json!("0.1.0"), json!("0.2.0")]));
    server.run(&["plugin", "list"]).ok().says("acme/greeter").says("tools/");
    server.run(&["plugin", "show", "acme/greeter"]).ok().says("canary").says("first").says("cpu_ms");
    server.run(&["plugin", "pin", "acme/greeter", "0.2.0", "--tenant", "acme"]).ok();
    let call = ["plugin", "call", "acme/greeter", "--input", r#"{"name":"Ada"}"#, "--json"];
    let pinned = server.run(&call).ok().json();
    assert_eq!((&pinned["version"], &pinned["resolved_by"]), (&json!("0.2.0"), &json!("pin")));
    server.run(&["plugin", "delete", "acme/greeter", "--version", "0.2.0"]).ends(5);
    server.run(&["plugin", "pin", "acme/greeter", "--none", "--tenant", "acme"]).ok();
    assert_eq!(server.run(&call).ok().json()["version"], "0.1.0");

    let file = place.join("fetched.wasm").display().to_string();
    let fetched =
        server.run(&["plugin", "fetch", "acme/greeter", "--version", "0.2.0", "-o", &file, "--json"]).ok().json();
    assert_eq!(fetched["size"], std::fs::metadata(&file).expect("written").len());
    server.run(&["plugin", "diff", &file, "acme/greeter@0.2.0"]).ok().says("identical");
    server.run(&["plugin", "channel", "acme/greeter", "stable", "0.2.0"]).ok();
}

/// One change of the source, from the save to the answer.
fn a_save_is_live(server: &Server, folder: &Path, text: &str) {
    let mut watch = server.command();
    watch.args(["plugin", "watch", text, "--grant", "all", "--json"]);
    let mut watch = Running(watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("watch starts"));
    let mut lines = BufReader::new(watch.0.stdout.take().expect("piped")).lines();
    let first = next_json(&mut lines);
    assert_eq!((&first["version"], &first["channel"]), (&json!("0.2.0-dev.1"), &json!("dev")));
    assert!(first["edit_to_live_ms"].is_null());
    edit(&folder.join("src/lib.rs"), "Hello, {name}!\")", "Good day, {name}!\")");
    let second = next_json(&mut lines);
    assert_eq!(second["version"], "0.2.0-dev.2");
    assert!(second["edit_to_live_ms"].as_u64().is_some());
    drop(watch);
    let call = |channel: &str| {
        server
            .run(&["plugin", "call", "acme/greeter", "--input", r#"{"name":"Ada"}"#, "--channel", channel])
            .ok()
            .stdout
    };
    assert_eq!(call("dev"), r#"{"greeting":"Good day, Ada!"}"#);
    assert_eq!(call("stable"), r#"{"greeting":"Hello, Ada!"}"#, "watching disturbs nobody");
}

/// A process that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn next_json(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    let line = lines.next().expect("the command goes on").expect("it can be read");
    serde_json::from_str(&line).expect("one JSON value a line")
}

#[test]
fn a_new_tool_builds_tests_and_pushes_as_it_is_under_a_tenants_own_token() {
    let (server, place) = (Server::start(), TempDir::new().expect("a folder"));
    let (folder, text) = project(&server, &place, "acme/counter", "tool");
    cargo_test(&folder).ok().says("the_component_counts ... ok");

    let secret = |name: &str, tenant: &str| {
        server
            .run(&["token", "create", "--name", name, "--tenant", tenant, "--expires", "1h"])
            .ok()
            .stdout
            .trim()
            .to_owned()
    };
    let (own, foreign) = (secret("ci", "acme"), secret("spy", "rival"));
    let as_token = |token: &str, args: &[&str]| run(server.command().args(args).env("NOETL_TOKEN", token));
    as_token(&foreign, &["plugin", "push", &text]).ends(4);
    as_token(&own, &["plugin", "push", &text]).ok().says("0.1.0 is live");
    for calls in 1..=2 {
        let called = as_token(&own, &["plugin", "call", "acme/counter", "--json-args", r#"{"name":"Ada"}"#]).ok();
        assert_eq!(
            serde_json::from_str::<Value>(&called.stdout).expect("JSON"),
            json!({ "name": "Ada", "calls": calls })
        );
    }
    as_token(&own, &["plugin", "call", "acme/counter"]).ends(7);
    let foreign_call = as_token(&foreign, &["plugin", "call", "acme/counter", "--json-args", "{}"]);
    assert!([3, 4].contains(&foreign_call.code), "{foreign_call:?}");

    let tokens = server.run(&["token", "list", "--json"]).ok().json();
    let ci =
        tokens["tokens"].as_array().expect("rows").iter().find(|token| token["name"] == "ci").expect("it is listed");
    assert_eq!(ci["privilege"], "user");
    assert!(!tokens.to_string().contains(&own), "a secret is shown once");
    server.run(&["token", "revoke", ci["id"].as_str().expect("ids are text")]).ok();
    as_token(&own, &["plugin", "list"]).ends(4);
    server.run(&["token", "revoke", "nobody"]).ends(3);
}
