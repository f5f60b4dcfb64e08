//! Into a registry and out of it again: the same bytes, the same digests, by our client and by another.

use noetl_contract::Digest;
use noetl_tests::Server;
use serde_json::{Value, json};

use crate::registry::{Registry, skopeo};
use crate::support::{User, versioned};

#[test]
fn a_plugin_comes_out_of_a_registry_as_it_went_in_and_runs() {
    let (registry, user, server) = (Registry::start(), User::new(), Server::start());
    let component = versioned("acme/greeter", "1.0.0", 7);
    let file = user.file("greeter.wasm", &component);
    let there = registry.artefact("acme/greeter:1.0.0");
    let key = user.key("release");

    let first = user.run(&["plugin", "push", &file, &there, "--sign", "release", "--json"]).ok().json();
    assert_eq!(first["digest"], Digest::of(&component).to_string());
    let again = user.run(&["plugin", "push", &file, &there, "--json"]).ok().json();
    assert_eq!(again["manifest_digest"], first["manifest_digest"], "a second push is the same artefact");

    let pulled = user.word("pulled.wasm");
    user.run(&["plugin", "pull", &there, "-o", &pulled]).ok().says("acme/greeter 1.0.0");
    assert_eq!(std::fs::read(&pulled).expect("written"), component);
    let elsewhere = user.run(&["plugin", "push", &pulled, &registry.artefact("copy/greeter"), "--json"]).ok().json();
    assert_eq!(elsewhere["manifest_digest"], first["manifest_digest"], "what was pulled is pushed as it was");
    assert_eq!(elsewhere["reference"], registry.artefact("copy/greeter:1.0.0"), "the tag is the version's");
    assert_eq!(elsewhere["attestations"], 1, "signatures travel along");

    // By its digest, straight into a server.
    let exact = format!("{}@{}", registry.artefact("acme/greeter"), first["manifest_digest"].as_str().expect("text"));
    let live = user.on(&server, &["plugin", "push", &exact, "--json"]).ok().json();
    assert_eq!((&live["digest"], &live["signers"]), (&first["digest"], &json!([key])));
    let answer = user.on(&server, &["plugin", "call", "acme/greeter", "--input", "x"]).ok();
    assert!(answer.stdout.contains("000007"), "{}", answer.stdout);

    // And from the server into a registry.
    let back = registry.artefact("back/greeter:1.0.0");
    let back = user.on(&server, &["plugin", "push", "acme/greeter@1.0.0", &back, "--json"]).ok().json();
    assert_eq!(back["manifest_digest"], first["manifest_digest"]);
}

#[test]
fn a_file_of_source_text_goes_to_a_registry_without_a_server_when_it_says_its_version() {
    let (registry, user) = (Registry::start(), User::new());
    let text = "def call(input):\n    return 1\n";
    let bare = user.file("greet.py", text.as_bytes());
    let refused = user.run(&["plugin", "push", &bare, &registry.artefact("acme/greet")]).ends(2);
    refused.says("does not say which version").says("# version = \"0.1.0\"");
    let file = user.file("greet.py", format!("# /// noetl\n# version = \"1.2.0\"\n# ///\n{text}").as_bytes());
    let pushed = user.run(&["plugin", "push", &file, &registry.artefact("acme/greet"), "--json"]).ok().json();
    assert_eq!(pushed["reference"], registry.artefact("acme/greet:1.2.0"));
}

#[test]
fn a_store_of_credentials_that_has_none_for_a_registry_means_nobody() {
    use std::os::unix::fs::PermissionsExt as _;
    let (registry, user) = (Registry::start(), User::new());
    let file = user.file("greeter.wasm", &versioned("acme/greeter", "1.0.0", 7));
    user.file("config.json", br#"{"credsStore": "fake"}"#);
    let says = |text: &str| {
        // It reads what it is asked, as real ones do.
        let script = format!("#!/bin/sh\ncat > /dev/null\necho {text}\nexit 1\n");
        let helper = user.file("docker-credential-fake", script.as_bytes());
        std::fs::set_permissions(helper, std::fs::Permissions::from_mode(0o755)).expect("its own file");
    };
    says("credentials not found in native keychain");
    user.run(&["plugin", "push", &file, &registry.artefact("acme/greeter")]).ok();
    says("the keychain is locked");
    let refused = user.run(&["plugin", "push", &file, &registry.artefact("acme/greeter")]).ends(4);
    refused.says("docker-credential-fake");
}

#[test]
fn another_client_sees_the_standard_layout_and_copies_it_whole() {
    let (registry, user) = (Registry::start(), User::new());
    let component = versioned("acme/greeter", "1.0.0", 1);
    let file = user.file("greeter.wasm", &component);
    user.key("release");
    let pushed =
        user.run(&["plugin", "push", &file, &registry.artefact("acme/greeter:1"), "--sign", "release", "--json"]);
    let pushed = pushed.ok().json();
    let docker = |name: &str| format!("docker://{}/{name}", registry.host);

    let manifest = skopeo(&["inspect", "--raw", "--tls-verify=false", &docker("acme/greeter:1")]).ok().json();
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["layers"].as_array().map(Vec::len), Some(1));
    assert_eq!(manifest["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(manifest["layers"][0]["digest"], Digest::of(&component).to_string());
    let tag = format!("{}.att", pushed["manifest_digest"].as_str().expect("text").replace(':', "-"));
    let beside =
        skopeo(&["inspect", "--raw", "--tls-verify=false", &docker(&format!("acme/greeter:{tag}"))]).ok().json();
    assert_eq!(beside["layers"][0]["mediaType"], "application/vnd.dsse.envelope.v1+json");

    for name in ["1", tag.as_str()] {
        let (from, to) = (docker(&format!("acme/greeter:{name}")), docker(&format!("mirror/greeter:{name}")));
        skopeo(&["copy", "--src-tls-verify=false", "--dest-tls-verify=false", &from, &to]).ok();
    }
    let copied = user.word("copied.wasm");
    let copy =
        user.run(&["plugin", "pull", &registry.artefact("mirror/greeter:1"), "-o", &copied, "--json"]).ok().json();
    assert_eq!((&copy["manifest_digest"], &copy["attestations"]), (&pushed["manifest_digest"], &json!(1)));
    assert_eq!(std::fs::read(&copied).expect("written"), component);
}

#[test]
fn credentials_come_from_the_docker_configuration() {
    let (registry, user) = (Registry::of_ada(), User::new());
    let file = user.file("greeter.wasm", &versioned("acme/greeter", "1.0.0", 1));
    let there = registry.artefact("acme/greeter:1");
    let login = |password: &str| {
        let login = json!({ "auths": { &registry.host: { "username": "ada", "password": password } } });
        user.file("config.json", login.to_string().as_bytes());
    };
    user.run(&["plugin", "push", &file, &there]).ends(4).says("docker login");
    login("wrong");
    let refused = user.run(&["plugin", "push", &file, &there]).ends(4);
    assert!(!refused.stderr.contains("wrong"), "a password is never shown: {}", refused.stderr);
    login("secret");
    user.run(&["plugin", "push", &file, &there]).ok();
    user.run(&["plugin", "pull", &there, "-o", &user.word("pulled.wasm")]).ok();
    std::fs::remove_file(user.place("config.json")).expect("it was there");
    user.run(&["plugin", "pull", &there, "-o", &user.word("pulled.wasm")]).ends(4);
}

#[test]
fn what_is_not_right_in_a_registry_is_refused_with_what_it_is() {
    let (registry, user, server) = (Registry::start(), User::new(), Server::start());
    let component = versioned("acme/greeter", "1.0.0", 1);
    let file = user.file("greeter.wasm", &component);
    let there = registry.artefact("acme/greeter:1");
    user.run(&["plugin", "push", &file, &there]).ok();

    user.run(&["plugin", "pull", &registry.artefact("acme/greeter:2")]).ends(3).says("there is no oci://");
    user.run(&["plugin", "pull", &registry.artefact("acme/greeter")]).ends(2).says("no tag and no digest");
    user.run(&["plugin", "pull", "oci://acme/greeter:1"]).ends(2).says("name of a registry");
    user.run(&["plugin", "pull", "oci://127.0.0.1:1/acme/greeter:1"]).ends(6).says("127.0.0.1:1");
    user.run(&["plugin", "push", &file, "greeter:1"]).ends(2).says("oci://");

    // Somebody changes the bytes where they are kept, and keeps their length.
    let blob = registry.blob(&Digest::of(&component).to_string());
    let mut changed = std::fs::read(&blob).expect("the blob is there");
    let last = changed.len() - 1;
    changed[last] ^= 1;
    std::fs::write(&blob, changed).expect("writable");
    user.on(&server, &["plugin", "push", &there]).ends(1);
    user.run(&["plugin", "pull", &there, "-o", &user.word("pulled.wasm")]).ends(1);
    assert!(!user.place("pulled.wasm").exists(), "nothing is left of it");
    let list: Value = user.on(&server, &["plugin", "list", "--prefix", "acme/", "--json"]).ok().json();
    assert_eq!(list["plugins"], json!([]));
}
