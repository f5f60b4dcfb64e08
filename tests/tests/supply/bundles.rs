//! Versions, channels and signatures in one file: out of one server, into a clean one.

use noetl_contract::Digest;
use noetl_tests::Server;
use serde_json::{Value, json};

use crate::registry::{Registry, skopeo};
use crate::support::{User, pushed, versioned};

/// A server with two versions of one plugin on two channels and one of another, all signed; and its bundle.
fn exported(user: &User) -> (Server, String) {
    let source = Server::start();
    let all = [("acme/a", "1.0.0", 1, "stable"), ("acme/a", "1.1.0", 2, "canary"), ("acme/b", "0.1.0", 3, "stable")];
    for (path, version, marker, channel) in all {
        let file = user.file("x.wasm", &versioned(path, version, marker));
        user.on(&source, &["plugin", "push", &file, "--channel", channel, "--sign", "release"]).ok();
    }
    user.on(&source, &["plugin", "channel", "acme/a", "next", "1.1.0"]).ok();
    let bundle = user.word("bundle.tar");
    user.on(&source, &["plugin", "export", "-o", &bundle]).ok().says("acme/b").says("canary");
    (source, bundle)
}

fn history(user: &User, server: &Server) -> Vec<Value> {
    ["acme/a", "acme/b"]
        .map(|path| user.on(server, &["plugin", "show", path, "--json"]).ok().json()["history"].clone())
        .into()
}

#[test]
fn a_bundle_makes_a_clean_server_serve_the_same_and_again_changes_nothing() {
    let user = User::new();
    let release = user.key("release");
    let (source, bundle) = exported(&user);
    let twin = user.word("twin.tar");
    user.on(&source, &["plugin", "export", "-o", &twin]).ok();
    assert_eq!(
        std::fs::read(&bundle).expect("written"),
        std::fs::read(&twin).expect("written"),
        "equal content, equal file"
    );

    let entry = format!("acme/={release}");
    let clean = Server::start_with(&[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    user.on(&clean, &["plugin", "import", &bundle, "--dry-run"]).ok().says("would be taken");
    assert!(pushed(&user, &clean).is_empty(), "nothing was to be changed");
    user.on(&clean, &["plugin", "import", &bundle]).ok().says("imported");
    assert_eq!(pushed(&user, &clean), pushed(&user, &source));
    for path in ["acme/a", "acme/b"] {
        let [there, here] =
            [&source, &clean].map(|server| user.on(server, &["plugin", "show", path, "--json"]).ok().json());
        assert_eq!(here["channels"], there["channels"], "{path}");
        for (a, b) in here["versions"].as_array().expect("rows").iter().zip(there["versions"].as_array().expect("rows"))
        {
            assert_eq!((&a["entry"]["signers"], &a["entry"]["ring"]), (&b["entry"]["signers"], &b["entry"]["ring"]));
            assert_eq!(a["entry"]["signers"], json!([release]));
        }
    }
    let answer = user.on(&clean, &["plugin", "call", "acme/a", "--input", "x", "--channel", "next"]).ok();
    assert!(answer.stdout.contains("000002"), "{}", answer.stdout);

    let before = history(&user, &clean);
    user.on(&clean, &["plugin", "import", &bundle]).ok().says("was there");
    assert_eq!(history(&user, &clean), before, "importing again writes nothing");
}

#[test]
fn a_bundle_with_a_wrong_byte_or_a_refused_version_changes_nothing() {
    let user = User::new();
    user.key("release");
    let (source, bundle) = exported(&user);
    let clean = Server::start();

    let bytes = std::fs::read(&bundle).expect("written");
    let marker = b"NOETL-MARKER-000003";
    let at = bytes.windows(marker.len()).position(|window| window == marker).expect("the last plugin is in it");
    let mut changed = bytes.clone();
    changed[at + marker.len() - 1] = b'4';
    let wrong = user.file("wrong.tar", &changed);
    user.on(&clean, &["plugin", "import", &wrong]).ends(1).says("they were changed or damaged");
    let short = user.file("short.tar", &bytes[..bytes.len() / 2]);
    user.on(&clean, &["plugin", "import", &short]).ends(1).says("damaged");
    assert!(pushed(&user, &clean).is_empty(), "nothing was imported");

    // The last of its versions is one the server does not take.
    let file = user.file("x.wasm", &versioned("acme/z", "1.0.0", 9));
    user.on(&source, &["plugin", "push", &file]).ok();
    let half = user.word("half.tar");
    user.on(&source, &["plugin", "export", "-o", &half]).ok();
    let release = user.run(&["key", "show", "release", "--json"]).ok().json();
    let entry = format!("acme/={}", release["key"].as_str().expect("a key"));
    let strict = Server::start_with(&[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    user.on(&strict, &["plugin", "import", &half]).ends(4).says("acme/z").says("nothing was imported");
    assert!(pushed(&user, &strict).is_empty());

    // So is one whose number is taken by other bytes.
    let other = user.file("x.wasm", &versioned("acme/b", "0.1.0", 77));
    user.on(&clean, &["plugin", "push", &other]).ok();
    let before = pushed(&user, &clean);
    user.on(&clean, &["plugin", "import", &bundle]).ends(5).says("taken by other bytes").says("nothing was imported");
    assert_eq!(pushed(&user, &clean), before);
}

#[test]
fn another_client_reads_a_bundle_and_makes_one_that_is_taken() {
    let (registry, user) = (Registry::start(), User::new());
    user.key("release");
    let (_source, bundle) = exported(&user);
    let name = format!("oci-archive:{bundle}:acme/b:0.1.0");
    let manifest = skopeo(&["inspect", "--raw", &name]).ok().json();
    assert_eq!(manifest["layers"][0]["digest"], Digest::of(&versioned("acme/b", "0.1.0", 3)).to_string());
    let there = format!("docker://{}/acme/b:0.1.0", registry.host);
    skopeo(&["copy", "--dest-tls-verify=false", &name, &there]).ok();

    let made = user.word("made.tar");
    skopeo(&["copy", "--src-tls-verify=false", &there, &format!("oci-archive:{made}:acme/b:0.1.0")]).ok();
    let clean = Server::start();
    user.on(&clean, &["plugin", "import", &made]).ok();
    let shown = user.on(&clean, &["plugin", "show", "acme/b", "--json"]).ok().json();
    assert_eq!(shown["channels"], json!({ "imported": "0.1.0" }), "nobody's calls move to what no channel served");
}
