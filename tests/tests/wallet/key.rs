//! The key of the wallet: made once, changed while everything runs, and missed when it is gone.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use noetl_tests::{Ran, Server, run};
use serde_json::json;

use crate::support::{SECRET, bearer, noetl, with_reveal};

/// Two keys, as their owner would give them.
const OLD: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
const NEW: &str = "ISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0A=";

/// A start that fails.
fn refused(data: &Path, environment: &[(&str, &str)]) -> Ran {
    run(&mut Server::command(data, environment)).ends(1)
}

#[tokio::test]
async fn a_server_without_the_key_does_not_start_and_says_what_to_do() {
    let server = Server::start();
    server.admin().post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    let status = server.admin().get("/api/wallet/status").await.is(200).json();
    let kid = status["kid"].as_str().expect("a name").to_owned();
    assert_eq!((&status["source"], &status["records"]), (&json!("file"), &json!(1)));
    let (data, _) = server.stop();
    let file = data.path().join("wallet.key");
    assert_eq!(std::fs::metadata(&file).expect("made").permissions().mode() & 0o777, 0o600);
    let key = std::fs::read(&file).expect("the key");

    std::fs::remove_file(&file).expect("removed");
    refused(data.path(), &[]).says("wallet.key is not there").says(&kid).says("put the file back");
    assert!(!file.exists(), "no other key was made in its place");
    refused(data.path(), &[("NOETL_ENCRYPTION_KEY", OLD)]).says("another one").says(&kid);
    refused(data.path(), &[("NOETL_ENCRYPTION_KEY", "bm90IGEga2V5IG5vdCBhIGtleQ==")]).says("32 random bytes");
    refused(data.path(), &[("NOETL_WALLET_KEY_COMMAND", "exit 3")]).says("wallet.key_command");

    std::fs::write(&file, &key).expect("put back");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("chmod");
    refused(data.path(), &[]).says("can be read by others").says("chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("chmod");
    let server = Server::start_on(data, &[]);
    let shown = with_reveal(&server, None).await.get("/api/credentials/crm?include_data=true").await.is(200).json();
    assert_eq!(shown["data"]["token"], SECRET);
}

#[tokio::test]
async fn the_key_of_the_file_is_changed_without_a_restart() {
    let server = Server::start();
    let api = server.admin();
    for number in 0..10 {
        api.post("/api/credentials", bearer(&format!("c{number}"), &format!("{SECRET}-{number}"))).await.is(201);
    }
    let before = api.get("/api/wallet/status").await.is(200).json();
    let key_before = std::fs::read(server.data().join("wallet.key")).expect("the key");
    let rotated = run(&mut noetl(&server, &["credential", "rotate", "--kek", "--json"])).ok().json();
    assert_eq!((&rotated["rewrapped"], &rotated["retired"]), (&json!(10), &json!([before["kid"]])));
    let after = api.get("/api/wallet/status").await.is(200).json();
    assert_eq!(after["keys"], json!([{"kid": rotated["kid"], "records": 10}]));
    let reveals = with_reveal(&server, None).await;
    for number in 0..10 {
        let shown = reveals.get(&format!("/api/credentials/c{number}?include_data=true")).await.is(200).json();
        assert_eq!(shown["data"]["token"], format!("{SECRET}-{number}"));
    }
    // A tenant's token has no say in it, whatever its privilege.
    let tenant = server.with_token(&api.token_for("acme", "tenant").await);
    tenant.post("/api/wallet/rotate", json!({})).await.problem(403, "forbidden_tenant");
    tenant.get("/api/wallet/status").await.problem(403, "forbidden_tenant");

    let (data, _) = server.stop();
    std::fs::write(data.path().join("wallet.key"), key_before).expect("written");
    refused(data.path(), &[]).says("another one");
}

#[tokio::test]
async fn a_key_that_is_given_changes_when_the_next_one_is_given_before_it() {
    let server = Server::start_with(&[("NOETL_ENCRYPTION_KEY", OLD)]);
    server.admin().post("/api/credentials", bearer("crm", SECRET)).await.is(201);
    assert!(!server.data().join("wallet.key").exists());
    let (data, _) = server.stop();
    refused(data.path(), &[("NOETL_ENCRYPTION_KEY", NEW)]).says("give the new one and after it the old one");
    let both = format!("{NEW},{OLD}");
    let server = Server::start_on(data, &[("NOETL_ENCRYPTION_KEY", both.as_str())]);
    run(&mut noetl(&server, &["credential", "rotate", "--kek"])).ok().says("1 credentials");
    let (data, said) = server.stop();
    assert!(!said.contains(OLD) && !said.contains(NEW));
    let command = format!("printf '%s\\n' {NEW}");
    let server = Server::start_on(data, &[("NOETL_WALLET_KEY_COMMAND", command.as_str())]);
    assert_eq!(server.admin().get("/api/wallet/status").await.is(200).json()["source"], "command");
    let shown = with_reveal(&server, None).await.get("/api/credentials/crm?include_data=true").await.is(200).json();
    assert_eq!(shown["data"]["token"], SECRET);
}
