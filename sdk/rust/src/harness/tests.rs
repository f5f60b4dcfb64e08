//! The client against scripted commands that speak the protocol, or fail to.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::*;

/// A harness whose `noetl` is a shell script.
fn scripted(script: &str) -> Harness {
    let folder = TempDir::new().expect("a folder");
    let command = folder.path().join("noetl");
    std::fs::write(&command, format!("#!/bin/sh\n{script}\n")).expect("a script");
    std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o700)).expect("an executable");
    Harness { command, component: "plugin.wasm".into(), _folder: Some(folder) }
}

const READY: &str = r#"echo '{"ready":{"protocol":1,"path":"main/x","version":"1.0.0","world":"tool"}}'"#;

#[test]
fn a_call_gives_output_logs_and_measures() {
    let answer =
        r#"{"ok":{"output_json":{"a":1}},"logs":[{"level":"info","message":"hi"}],"memory_bytes":9,"duration_us":3}"#;
    let harness = scripted(&format!("{READY}; read request; echo \"$request\" >&2; echo '{answer}'"));
    let mut session = harness.start().expect("ready");
    assert_eq!(session.plugin().world, "tool");
    let called = session.call_json(json!({"x": 2})).expect("an answer");
    assert_eq!(called.json::<Value>().expect("a value"), json!({"a": 1}));
    assert_eq!((called.memory_bytes, called.duration_us), (9, 3));
    assert_eq!(called.logs[0].message, "hi");

    let HarnessError::Ended { said } = session.logs().expect_err("the script is over") else { panic!("not ended") };
    assert_eq!(said, r#"{"call":{"input_json":{"x":2}}}"#, "the request as it crossed");
}

#[test]
fn a_failure_and_a_trap_are_told_apart() {
    let failure = r#"{"failure":{"code":"not_found","message":"no such order","retryable":false}}"#;
    let trap = r#"{"error":{"class":"trap","message":"unreachable"}}"#;
    let harness = scripted(&format!("{READY}; read one; echo '{failure}'; read two; echo '{trap}'; read three"));
    let mut session = harness.start().expect("ready");
    let error = session.call(b"").expect_err("a failure");
    assert_eq!((error.code(), error.class()), (Some("not_found"), None));
    let error = session.call(b"").expect_err("a trap");
    assert_eq!((error.code(), error.class()), (None, Some("trap")));
}

#[test]
fn a_component_that_is_not_taken_says_why() {
    let harness = scripted(r#"echo '{"error":{"class":"skew","message":"imports noetl:kv@9"}}'"#);
    let error = harness.start().expect_err("refused");
    assert!(error.to_string().contains("noetl:kv@9"), "{error}");
}

#[test]
fn another_protocol_is_refused() {
    let harness =
        scripted(r#"echo '{"ready":{"protocol":2,"path":"main/x","version":"1.0.0","world":"tool"}}'; read x"#);
    assert!(matches!(harness.start(), Err(HarnessError::Protocol { .. })));
}

#[test]
fn a_command_that_is_missing_says_what_to_do() {
    let harness = Harness { command: "/nonexistent/noetl".into(), component: "x".into(), _folder: None };
    let error = harness.start().expect_err("no such command");
    assert!(error.to_string().contains("NOETL_BIN"), "{error}");
}
