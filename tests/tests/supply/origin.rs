//! Where a component comes from: the commit, the compiler, the parts; and that saying so does not change the bytes.

use std::path::Path;
use std::process::Command;

use noetl_tests::Server;
use serde_json::json;

use crate::support::{User, run};

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=ada", "-c", "user.email=ada@example.com"]).args(args);
    run(&mut command).ok().stdout.trim().to_owned()
}

#[test]
fn a_build_says_where_it_comes_from_and_its_bytes_do_not_depend_on_it() {
    let (user, server) = (User::new(), Server::start());
    let release = user.key("release");
    let (folder, text) = (user.place("project"), user.word("project"));
    user.run(&["plugin", "new", &text, "--path", "acme/greeter", "--world", "transform"]).ok();
    git(&folder, &["init", "-q"]);
    git(&folder, &["remote", "add", "origin", "https://ada:hunter2@example.com/greeter.git"]);

    // Built once before the first commit, so that the lock file is there to be committed.
    let first = user.run(&["plugin", "build", &text, "--json"]).ok().json();
    git(&folder, &["add", "-A"]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    let commit = git(&folder, &["rev-parse", "HEAD"]);
    let pushed = user.on(&server, &["plugin", "push", &text, "--sign", "release", "--json"]).ok().json();
    assert_eq!(pushed["digest"], first["digest"], "another commit of the same sources is the same component");

    let shown = user.on(&server, &["plugin", "show", "acme/greeter", "--json"]).ok().json();
    let entry = &shown["versions"][0]["entry"];
    let made = &entry["provenance"];
    assert_eq!(entry["signers"], json!([release]));
    assert_eq!(made["builder"], "ada at the bench");
    assert_eq!(
        made["source"],
        json!({ "repository": "https://example.com/greeter.git", "commit": commit, "dirty": false })
    );
    assert!(made["toolchain"].as_str().is_some_and(|text| text.starts_with("rustc ")), "{made}");
    assert_eq!(made["signed_by"], json!([release]), "whoever builds signs how it was built");
    user.on(&server, &["plugin", "show", "acme/greeter"]).ok().says(&commit[..12]).says("ada at the bench (signed by");

    // Another who signs it stands by the bytes, and not by that account of them.
    let auditor = user.key("auditor");
    user.on(&server, &["plugin", "sign", "acme/greeter@0.1.0", "--key", "auditor"]).ok().says(&auditor);
    let shown = user.on(&server, &["plugin", "show", "acme/greeter", "--json"]).ok().json();
    let entry = &shown["versions"][0]["entry"];
    assert_eq!(entry["signers"].as_array().map(Vec::len), Some(2));
    assert_eq!(entry["provenance"]["signed_by"], json!([release]));

    let sbom = user.on(&server, &["plugin", "sbom", "acme/greeter@0.1.0"]).ok().json();
    assert_eq!(sbom["bomFormat"], "CycloneDX");
    let parts = sbom["components"].as_array().expect("parts");
    assert!(parts.iter().any(|part| part["name"] == "noetl-sdk"), "{sbom}");
    assert!(parts.iter().any(|part| part["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/serde@"))));
}
