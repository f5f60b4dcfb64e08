//! The tool `shell`: off unless the operator wants it, and then within bounds.

use serde_json::{Value, json};

use crate::support::{call, envelope, server_with};

fn shell(options: Value) -> Value {
    let mut tool = json!({"kind": "shell"});
    tool.as_object_mut().expect("an object").extend(options.as_object().cloned().expect("an object"));
    tool
}

#[tokio::test]
async fn it_is_off_and_says_how_it_is_switched_on() {
    let server = server_with(&[]).await;
    let seen = envelope(&server.admin(), "shell/off", shell(json!({"command": "true"}))).await;
    assert_eq!(seen["error"]["code"], "shell_off");
    let message = seen["error"]["message"].as_str().expect("a message");
    assert!(message.contains("shell = true") && message.contains("NOETL_POLICY_SHELL"), "{message}");
}

#[tokio::test]
async fn commands_run_with_their_own_environment_and_an_exit_code_is_a_failure_with_data() {
    let server = server_with(&[
        ("NOETL_POLICY_SHELL", "true"),
        ("NOETL_POLICY_SHELL_TENANTS", "main"),
        ("SECRET_OF_THE_SERVER", "x"),
    ])
    .await;
    let api = server.admin();
    let said = call(
        &api,
        "shell/on",
        shell(json!({
            "command": "echo \"$GREETING, $NAME\"; env | grep -c SECRET_OF_THE_SERVER || true; pwd",
            "env": {"GREETING": "hello", "NAME": "{{ name }}"}, "input": {"name": "Ada"},
        })),
    )
    .await;
    assert_eq!((&said["exit_code"], &said["stderr"]), (&json!(0), &json!("")));
    let lines: Vec<&str> = said["stdout"].as_str().expect("text").lines().collect();
    assert_eq!(lines[..2], ["hello, Ada", "0"]);
    assert!(!std::path::Path::new(lines[2]).exists(), "its folder has gone with it");
    let list = call(&api, "shell/list", shell(json!({"command": ["printf", "%s", "$HOME"]}))).await;
    assert_eq!(list["stdout"], "$HOME", "no shell is in between");
    let seen = envelope(&api, "shell/fails", shell(json!({"cmds": ["echo one", "false", "echo two"]}))).await;
    assert_eq!((&seen["status"], &seen["error"]["code"]), (&json!("error"), &json!("exit_code")));
    assert_eq!((&seen["data"]["exit_code"], &seen["data"]["stdout"]), (&json!(1), &json!("one\n")));
    let seen = envelope(&api, "shell/slow", shell(json!({"command": "sleep 600", "timeout_seconds": 0.3}))).await;
    assert_eq!(seen["error"]["code"], "timeout", "{seen}");
    let seen = envelope(&api, "shell/cwd", shell(json!({"command": "true", "cwd": "/etc"}))).await;
    assert_eq!(seen["error"]["code"], "denied", "{seen}");
}

#[tokio::test]
async fn the_operator_says_which_programs_and_where() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("here"), "yes").expect("written");
    let place = folder.path().to_str().expect("a plain path");
    let more = [
        ("NOETL_POLICY_SHELL", "true"),
        ("NOETL_POLICY_SHELL_TENANTS", "*"),
        ("NOETL_POLICY_SHELL_PROGRAMS", "cat"),
        ("NOETL_POLICY_SHELL_FOLDER", place),
    ];
    let server = server_with(&more).await;
    let api = server.admin();
    assert_eq!(call(&api, "shell/cat", shell(json!({"command": ["cat", "here"]}))).await["stdout"], "yes");
    for (name, command) in [("sh", json!("cat here")), ("ls", json!(["ls"])), ("path", json!(["/bin/cat", "here"]))] {
        let seen = envelope(&api, &format!("shell/no-{name}"), shell(json!({"command": command}))).await;
        assert_eq!(seen["error"]["code"], "denied", "{name}: {seen}");
    }
    // A `cat` of its own, code in its place, or a shell's start: none of them gets round the list.
    for (name, value) in [("PATH", place), ("LD_PRELOAD", "/tmp/x.so"), ("BASH_ENV", "/tmp/x"), ("IFS", "/")] {
        let tool = shell(json!({"command": ["cat", "here"], "env": {name: value}}));
        let seen = envelope(&api, &format!("shell/env-{}", name.to_lowercase()), tool).await;
        assert_eq!(seen["error"]["code"], "denied", "{name}: {seen}");
        assert!(seen["error"]["message"].as_str().is_some_and(|text| text.contains(name)), "{seen}");
    }
}

#[tokio::test]
async fn it_is_for_the_tenants_the_operator_names() {
    let server = server_with(&[("NOETL_POLICY_SHELL", "true"), ("NOETL_POLICY_SHELL_TENANTS", "other")]).await;
    let seen = envelope(&server.admin(), "shell/tenant", shell(json!({"command": "true"}))).await;
    assert_eq!(seen["error"]["code"], "shell_off", "{seen}");
    assert!(seen["error"]["message"].as_str().is_some_and(|text| text.contains("shell_tenants")), "{seen}");
}

#[tokio::test]
async fn nothing_a_command_started_outlives_it() {
    let server = server_with(&[("NOETL_POLICY_SHELL", "true"), ("NOETL_POLICY_SHELL_TENANTS", "main")]).await;
    let command = "mkfifo f; (setsid sh -c 'echo $$; echo >f; exec sleep 600' &); read x <f";
    let said = call(&server.admin(), "shell/escape", shell(json!({"command": command}))).await;
    let left = said["stdout"].as_str().expect("text").trim();
    let gone = || {
        let status = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
        // One that nobody has waited for yet is there as a name without a process.
        status.is_empty() || status.contains(") Z ")
    };
    while !gone() {
        tokio::task::yield_now().await;
    }
}
