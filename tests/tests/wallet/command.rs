//! Credentials through the command.

use std::io::Write as _;
use std::process::Stdio;

use noetl_tests::{Server, run};
use serde_json::{Value, json};

use crate::support::{SECRET, noetl};

#[test]
fn a_secret_comes_from_stdin_a_file_or_a_variable_and_not_from_the_command_line() {
    let server = Server::start();
    let refused = run(&mut noetl(
        &server,
        &["credential", "add", "crm", "--type", "bearer", "--field", &format!("token={SECRET}")],
    ));
    let refused = refused.ends(2).says("command line can be read by others").says("--field token=@-");
    assert!(!format!("{}{}", refused.stdout, refused.stderr).contains(SECRET));

    let mut command = noetl(
        &server,
        &["credential", "add", "crm", "--type", "bearer", "--field", "token=@-", "--host", "crm.example.com"],
    );
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    writeln!(child.stdin.take().expect("piped"), "{SECRET}").expect("written");
    let output = child.wait_with_output().expect("ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("crm.example.com"));

    let pg = [
        "credential",
        "add",
        "pg",
        "--type",
        "postgres",
        "--field",
        "host=db.example.com",
        "--field",
        "user=app",
        "--field",
        "database=shop",
        "--field",
        "password=env:TEST_PGPASSWORD",
        "--tag",
        "demo",
        "--description",
        "the shop's",
    ];
    run(noetl(&server, &pg).env("TEST_PGPASSWORD", SECRET)).ok().says("db.example.com:5432");

    let file = server.data().join("key.txt");
    std::fs::write(&file, format!("{SECRET}\n")).expect("written");
    let from_file = format!("key=@{}", file.display());
    run(&mut noetl(&server, &["credential", "add", "maps", "--type", "api_key", "--field", &from_file]))
        .ok()
        .says("it may go nowhere");

    let listed = run(&mut noetl(&server, &["credential", "list"])).ok().says("crm").says("pg").says("maps");
    assert!(!listed.stdout.contains(SECRET), "{}", listed.stdout);
    let shown = run(&mut noetl(&server, &["credential", "show", "pg", "--json"])).ok().json();
    assert_eq!((&shown["data"]["host"], &shown["data"]["password"]), (&json!("db.example.com"), &json!("[REDACTED]")));
    run(&mut noetl(&server, &["credential", "show", "nobody"])).ends(3).says("nobody");
    run(&mut noetl(&server, &["credential", "add", "x", "--type", "bearer"])).ends(1).says("token");
}

#[test]
fn a_file_of_yaml_has_all_of_it_and_a_rotation_changes_the_value_alone() {
    let server = Server::start();
    let file = server.data().join("crm.yaml");
    let text = format!(
        "name: crm\ntype: basic\ndata: {{username: ada, password: {SECRET}}}\nhosts: ['*.example.com']\ntags: [demo]\n"
    );
    std::fs::write(&file, text).expect("written");
    run(&mut noetl(&server, &["credential", "add", "--file", &file.display().to_string()])).ok();
    let before = run(&mut noetl(&server, &["credential", "show", "crm", "--json"])).ok().json();

    run(&mut noetl(&server, &["credential", "rotate", "crm"])).ends(2).says("there is no new value");
    let rotate = ["credential", "rotate", "crm", "--field", "password=env:TEST_NEW"];
    run(noetl(&server, &rotate).env("TEST_NEW", "the-next-password")).ok();
    let create = ["token", "create", "--name", "look", "--right", "credential:reveal"];
    let token = run(&mut noetl(&server, &create)).ok().stdout.trim().to_owned();
    let reveal = ["credential", "show", "crm", "--reveal", "--json"];
    run(&mut noetl(&server, &reveal)).ends(4).says("credential:reveal");
    let after = run(noetl(&server, &reveal).env("NOETL_TOKEN", &token)).ok().json();
    assert_eq!((&after["data"]["user"], &after["data"]["password"]), (&json!("ada"), &json!("the-next-password")));
    for same in ["hosts", "tags", "type", "created_at_ms"] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert_ne!(before["revision"], after["revision"]);

    // Of two secrets one can be changed alone, and an optional one stays.
    let file = server.data().join("store.json");
    let data = json!({"access_key": "AKIA-1", "secret_key": SECRET, "session_token": "of-a-session"});
    std::fs::write(&file, json!({"name": "store", "type": "s3", "data": data}).to_string()).expect("written");
    run(&mut noetl(&server, &["credential", "add", "--file", &file.display().to_string()])).ok();
    let rotate = ["credential", "rotate", "store", "--field", "secret_key=env:TEST_NEW"];
    run(noetl(&server, &rotate).env("TEST_NEW", "the-next-password")).ok();
    let reveal = ["credential", "show", "store", "--reveal", "--json"];
    let data = run(noetl(&server, &reveal).env("NOETL_TOKEN", &token)).ok().json()["data"].clone();
    assert_eq!((&data["secret_key"], &data["session_token"]), (&json!("the-next-password"), &json!("of-a-session")));

    let events = |audit: Value| {
        audit["uses"].as_array().expect("lines").iter().map(|line| line["event"].clone()).collect::<Vec<_>>()
    };
    let audit = || run(&mut noetl(&server, &["credential", "audit", "crm", "--json"])).ok().json();
    assert_eq!(events(audit()), ["revealed", "changed", "added"]);
    run(&mut noetl(&server, &["credential", "delete", "crm"])).ok();
    run(&mut noetl(&server, &["credential", "delete", "crm"])).ends(3);
    assert_eq!(events(audit())[0], "deleted", "the audit outlives it");
}
