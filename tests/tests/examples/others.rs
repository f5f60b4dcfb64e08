//! Examples with a tool of somebody's own.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::shop::{ORDERS, Shop};
use crate::support::{Desk, examples, text};

#[tokio::test]
async fn a_tenant_has_an_http_of_its_own_and_nobody_else_notices() {
    let (desk, shop) = (Desk::start().await, Shop::start().await);
    let folder = examples().join("tenant_override").display().to_string();
    let token = desk.admin.token_for("acme", "tenant").await;
    let acme = desk.server.with_token(&token);
    desk.noetl(&["plugin", "push", &folder, "--token", &token]).ok();
    desk.noetl(&["plugin", "bind", "tools/http", "--to", "acme/tools/http", "--token", &token]).ok();
    desk.noetl(&["tool", "list", "--token", &token]).ok().says("bound to acme/tools/http").says("from a record");
    desk.noetl(&["tool", "show", "http"]).ok().says("Sends one HTTP request");

    let playbook = json!({"content": text("tenant_override/playbook.yaml")});
    for (api, expected) in [
        (&acme, json!({"orders": 1, "recorded": "true"})),
        (&desk.admin, json!({"orders": ORDERS, "recorded": "false"})),
    ] {
        let registered = api.post("/api/catalog/register", playbook.clone()).await.is(201).json();
        assert_eq!(registered["warnings"], json!([]));
        let body = json!({"path": "examples/tenant_override", "payload": {"api_url": shop.url}});
        let ended = api.post("/api/execute?wait=60", body).await.is(200).json();
        assert_eq!((&ended["status"], &ended["output"]), (&json!("completed"), &expected), "{ended}");
    }
}

#[tokio::test]
async fn a_tool_in_rust_is_pushed_described_checked_and_called() {
    let desk = Desk::start().await;
    let place = TempDir::new().expect("a folder");
    copy(&examples().join("custom_tool"), place.path());
    // Outside of the repository the SDK is somewhere else.
    let sdk = examples().parent().expect("the project").join("sdk/rust").display().to_string();
    let manifest = place.path().join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).expect("Cargo.toml");
    std::fs::write(&manifest, text.replace("../../sdk/rust", &sdk)).expect("Cargo.toml");

    desk.noetl(&["plugin", "push", &place.path().display().to_string()]).ok();
    desk.noetl(&["tool", "show", "slug"]).ok().says("nothing_left").says("separator").says("required");
    desk.noetl(&["tool", "list"]).ok().says("Makes text fit for an address");
    desk.register("custom_tool/playbook.yaml");
    let made = desk.result("examples/custom_tool", json!({})).await;
    assert_eq!(made, json!({"address": "/pages/ten-playbooks-worth"}));

    let wrong = json!({"content": crate::support::text("custom_tool/playbook.yaml").replace("text:", "txt:")});
    let problems = desk.admin.post("/api/catalog/register", wrong).await.problem(422, "invalid_playbook");
    let problems = problems["problems"].as_array().expect("a list").clone();
    let says = |severity: &str, part: &str| {
        let told = |problem: &serde_json::Value| {
            let text = format!("{} {}", problem["message"], problem["suggestion"]);
            problem["severity"] == severity && text.contains(part) && problem["line"].as_u64() > Some(1)
        };
        assert!(problems.iter().any(told), "{severity} `{part}` is not in {problems:#?}");
    };
    says("warning", "did you mean `text`?");
    says("error", "`text` is missing");
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        // What a build left there is not part of the example.
        if entry.file_name() == "target" {
            continue;
        }
        if source.is_dir() {
            std::fs::create_dir_all(&target).expect("a folder");
            copy(&source, &target);
        } else {
            std::fs::copy(&source, &target).expect("a file");
        }
    }
}
