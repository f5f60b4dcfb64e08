//! Credentials in code: what steps and plugins in Python and JavaScript hold is never the secret, and what they send has it.

use noetl_tests::recorder::Reply;
use noetl_tests::{Recorder, run};
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{SECRET, files_with, keep, noetl, reaching, run_steps, step};

const PYTHON: &str = r#"
import json, urllib.request
import noetl

held = noetl.secrets.placeholder("crm", "token")
login = noetl.secrets.headers("crm")
print("holding", held)
request = urllib.request.Request(url + "/?t=" + held, data=json.dumps(dict(t=held)).encode())
request.add_header("Content-Type", "application/json")
for name, value in login.items():
    request.add_header(name, value)
with urllib.request.urlopen(request) as answer:
    said = json.loads(answer.read())
result = dict(held=held, login=login, said=said, kind=noetl.secrets.describe("crm").kind)
"#;

const JAVASCRIPT: &str = r#"
const held = noetl.secrets.placeholder('crm', 'token');
const login = noetl.secrets.headers('crm');
console.log('holding', held);
const again = await fetch(url + '/again', { headers: login });
const answer = noetl.http.post(url + '/?t=' + held, { headers: login, json: { t: held } });
return { held, login, said: answer.json(), kind: noetl.secrets.describe('crm').kind, status: again.status };
"#;

#[tokio::test]
async fn code_of_a_step_sends_a_secret_that_it_never_has() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    let api = server.admin();
    keep(&api, "crm", "bearer", json!({"token": SECRET}), &[&receiver.host]).await;
    let mut told = String::new();
    for (kind, code) in [("python", PYTHON), ("javascript", JAVASCRIPT)] {
        let tool = json!({"kind": kind, "code": code, "input": {"url": receiver.url}});
        let ended = run_steps(&api, &format!("code/{kind}"), json!([{"step": "start", "tool": tool}])).await;
        assert_eq!(ended["status"], "completed", "{ended}");
        let asked = receiver.last();
        assert_eq!(asked.header("authorization"), format!("Bearer {SECRET}"), "{kind}");
        assert_eq!(asked.target, format!("/?t={SECRET}"), "{kind}");
        assert_eq!(serde_json::from_slice::<Value>(&asked.body).expect("JSON"), json!({"t": SECRET}), "{kind}");

        let output = &ended["output"];
        let held = output["held"].as_str().expect("a text");
        assert_ne!(held, SECRET);
        assert_eq!(
            (&output["login"]["authorization"], &output["kind"]),
            (&json!(format!("Bearer {held}")), &json!("bearer"))
        );
        let echoed = output["said"]["headers"]["authorization"].as_str().unwrap_or_default();
        assert!(echoed.starts_with("Bearer NOETL~SECRET~"), "the echo has what stands for it: {output}");
        let id = ended["execution_id"].as_str().expect("an id");
        let events = api.get(&format!("/api/executions/{id}/events")).await.is(200);
        assert!(events.text().contains(held), "events have what stands for it");
        told += &events.text();
        told += &api.get(&format!("/api/plugins/tools/{kind}:logs")).await.is(200).text();
        told += &ended.to_string();
    }
    assert!(!told.contains(SECRET), "{told}");
    let (data, said) = server.stop();
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(files_with(data.path(), SECRET), Vec::<String>::new());
}

#[tokio::test]
async fn code_has_its_requests_signed_and_goes_no_further_than_the_credential() {
    let (server, receiver, other) = (reaching().await, Recorder::echo().await, Recorder::echo().await);
    let to = other.url.clone();
    let moved = Recorder::start(move |_| Reply::redirect(to.clone())).await;
    let api = server.admin();
    keep(&api, "hook", "hmac", json!({"secret": SECRET, "message": "body"}), &[&receiver.host]).await;
    let sign = "import noetl, urllib.request\n\
                request = urllib.request.Request(url, data=b'text', headers=noetl.secrets.headers('hook'))\n\
                result = urllib.request.urlopen(request).status";
    let tool = |code: &str, url: &str| json!({"kind": "python", "code": code, "input": {"url": url}});
    assert_eq!(step(&api, "code/signed", tool(sign, &receiver.url)).await, json!(200));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), b"text");
    assert_eq!(receiver.last().header("x-signature"), format!("sha256={}", hex::encode(tag)));

    let elsewhere = "import noetl, urllib.error, urllib.request\n\
                     try:\n    urllib.request.urlopen(urllib.request.Request(url, headers=noetl.secrets.headers('hook')))\n\
                     except urllib.error.URLError as error:\n    result = [type(error.reason).__name__, str(error.reason)]";
    let refused = step(&api, "code/elsewhere", tool(elsewhere, &other.url)).await;
    assert_eq!(refused[0], "PermissionError", "{refused}");
    assert!(refused[1].as_str().is_some_and(|text| text.contains("`hook`")), "{refused}");
    assert!(other.asked().is_empty(), "nothing was sent");

    // A credential for both, and a redirect from one to the other: it was asked for at the first alone.
    keep(&api, "both", "bearer", json!({"token": SECRET}), &[&moved.host, &other.host]).await;
    let follow = "import noetl, urllib.request\n\
                  request = urllib.request.Request(url, headers=noetl.secrets.headers('both'))\n\
                  result = urllib.request.urlopen(request).status";
    assert_eq!(step(&api, "code/moved", tool(follow, &moved.url)).await, json!(200));
    assert_eq!(moved.last().header("authorization"), format!("Bearer {SECRET}"));
    assert_eq!(other.last().header("authorization"), "");
    let unknown = "import noetl\ntry:\n    noetl.secrets.headers('nobody')\n\
                   except noetl.Failure as failure:\n    result = failure.code";
    assert_eq!(step(&api, "code/unknown", tool(unknown, "")).await, json!("unknown_credential"));
}

/// The command is waited for on one thread while the server it asks answers on another.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_source_text_uses_credentials_if_it_holds_the_capability() {
    let (server, receiver) = (reaching().await, Recorder::echo().await);
    keep(&server.admin(), "crm", "api_key", json!({"key": SECRET}), &[&receiver.host]).await;
    let python = "import noetl\n\n\ndef call(input):\n    \
                  return noetl.http.get(input['url'], headers=noetl.secrets.headers('crm')).ok().status\n";
    let js = "import { http, secrets } from 'noetl';\n\
              export const call = ({ url }) => http.get(url, { headers: secrets.headers('crm') }).ok().status;\n";
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = json!({"url": receiver.url}).to_string();
    for (name, ending, comment, text) in [("asks_py", "py", "#", python), ("asks_js", "js", "//", js)] {
        let path = format!("main/{name}");
        let file = folder.path().join(format!("{name}.{ending}"));
        let file_name = file.display().to_string();
        let manifest = |capabilities: &str| {
            let lines = ["/// noetl", capabilities, "[http]", "allow = [\"*\"]", "///"];
            lines.map(|line| format!("{comment} {line}\n")).concat()
        };
        let without = manifest("capabilities = [\"log\", \"payload\", \"http-client\"]");
        std::fs::write(&file, format!("{without}{text}")).expect("written");
        run(&mut noetl(&server, &["plugin", "push", &file_name])).ok();
        let call = ["plugin", "call", &path, "--json-args", &arguments];
        let denied = run(&mut noetl(&server, &call));
        assert_ne!(denied.code, 0);
        denied.says("secrets");

        let with = manifest("capabilities = [\"log\", \"payload\", \"http-client\", \"secrets\"]");
        std::fs::write(&file, format!("{with}{text}")).expect("written");
        run(&mut noetl(&server, &["plugin", "push", &file_name, "--grant", "secrets"])).ok();
        let answer = run(&mut noetl(&server, &call)).ok().json();
        assert_eq!(answer, json!(200), "{name}");
        assert_eq!(receiver.last().header("x-api-key"), SECRET, "{name}");
    }
}
