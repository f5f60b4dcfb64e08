//! Recorded calls that use credentials: what is masked when they are recorded is masked the same when they are played.

use noetl_tests::recorder::{Asked, Reply};
use noetl_tests::{Recorder, Server, run};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{SECRET, keep, noetl, reaching};

/// A plugin of one file, with all it needs to ask a server.
fn write(folder: &TempDir, name: &str, body: &str) -> String {
    let file = folder.path().join(format!("{name}.py"));
    let header = "# /// noetl\n# capabilities = [\"log\", \"payload\", \"http-client\", \"secrets\"]\n\
                  # [http]\n# allow = [\"*\"]\n# ///\nimport noetl\n\n\ndef call(input):\n";
    std::fs::write(&file, format!("{header}{body}")).expect("written");
    file.display().to_string()
}

/// Pushes it and records a call; where the case is.
fn record(server: &Server, folder: &TempDir, file: &str, name: &str, url: &str) -> (String, String) {
    run(&mut noetl(server, &["plugin", "push", file])).ok();
    let case = folder.path().join("cases").join(format!("{name}.case")).display().to_string();
    let (path, arguments) = (format!("main/{name}"), json!({"url": url}).to_string());
    let call = ["plugin", "call", &path, "--json-args", &arguments, "--record", &case];
    let said = run(&mut noetl(server, &call)).ok().stderr;
    (case, said)
}

/// The command is waited for on one thread while the server it asks answers on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_case_that_was_recorded_with_a_credential_holds() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    let folder = tempfile::tempdir().expect("a folder");
    for (name, data) in [
        ("bearer", json!({"token": SECRET})),
        ("basic", json!({"user": "ada", "password": SECRET})),
        ("api_key", json!({"key": SECRET})),
    ] {
        keep(&server.admin(), name, name, data, &[&receiver.host]).await;
        let body = format!(
            "    login = noetl.secrets.headers('{name}')\n    \
             answer = noetl.http.get(input['url'], headers=login)\n    \
             return [answer.status, login, list(login.values()), str(login)]\n"
        );
        let file = write(&folder, name, &body);
        let (case, _) = record(&server, &folder, &file, name, &receiver.url);
        assert!(!std::fs::read_to_string(&case).expect("a case").contains(SECRET), "{name}");
        run(&mut noetl(&server, &["plugin", "test", &file])).ok().says("1 of 1 cases hold");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_case_with_a_large_answer_says_at_once_that_it_cannot_be_played() {
    let large = |_: &Asked| Reply { status: 200, headers: Vec::new(), body: "x".repeat(3 << 20) };
    let (server, receiver) = (reaching().await, Recorder::start(large).await);
    let folder = tempfile::tempdir().expect("a folder");
    let file = write(&folder, "large", "    return noetl.http.get(input['url']).status\n");
    let (_, said) = record(&server, &folder, &file, "large", &receiver.url);
    assert!(said.contains("cannot be played") && said.contains("`http-client.send` has 3145728 bytes"), "{said}");
    let told = run(&mut noetl(&server, &["plugin", "test", &file])).ends(1);
    told.says("`http-client.send` has 3145728 bytes").says("with less of it");
}
