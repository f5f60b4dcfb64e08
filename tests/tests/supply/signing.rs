//! Whose signatures a server takes: at the push, and whenever a version is made ready.

use noetl_tests::{Server, guest, with_manifest};
use serde_json::{Value, json};

use crate::support::{User, versioned};

fn locked(entries: &[String]) -> Server {
    Server::start_with(&[("NOETL_POLICY_SIGNERS", entries.join(",").as_str())])
}

#[test]
fn a_locked_namespace_takes_what_its_signers_have_signed_and_nothing_else() {
    let user = User::new();
    let (release, stranger) = (user.key("release"), user.key("stranger"));
    let server = locked(&[format!("acme/={release}"), format!("system/={release}")]);
    let file = user.file("a.wasm", &versioned("acme/a", "1.0.0", 1));

    let refused = user.on(&server, &["plugin", "push", &file]).ends(4).says("is not signed").says(&release);
    assert!(refused.stderr.contains("--sign") && refused.stderr.contains("/errors/signature_required"));
    user.on(&server, &["plugin", "push", &file, "--sign", "stranger"]).ends(4).says(&stranger).says(&release);
    let document = user.on(&server, &["plugin", "push", &file, "--json"]).ends(4).stderr;
    let document: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!((&document["code"], &document["accepted"]), (&json!("signature_required"), &json!([release])));
    let tried = user.on(&server, &["plugin", "push", &file, "--sign", "release", "--dry-run", "--json"]).ok().json();
    assert_eq!((&tried["dry_run"], &tried["signers"]), (&json!(true), &json!([release])));
    user.on(&server, &["plugin", "show", "acme/a"]).ends(3);

    let pushed = user.on(&server, &["plugin", "push", &file, "--sign", "release", "--json"]).ok().json();
    assert_eq!(pushed["signers"], json!([release]));
    user.on(&server, &["plugin", "call", "acme/a", "--input", "x"]).ok();
    user.on(&server, &["plugin", "show", "acme/a"]).ok().says("SIGNED BY").says(&release);

    // Other namespaces are free, and the platform's own is locked although an administrator pushes.
    let free = user.file("free.wasm", &versioned("main/free", "1.0.0", 1));
    user.on(&server, &["plugin", "push", &free]).ok();
    let system = user.file("system.wasm", &versioned("system/greeter", "1.0.0", 1));
    user.on(&server, &["plugin", "push", &system]).ends(4).says("`system/`");
    user.on(&server, &["plugin", "push", &system, "--sign", "release"]).ok();
}

#[test]
fn two_entries_ask_for_two_signers() {
    let user = User::new();
    let (ada, bob) = (user.key("ada"), user.key("bob"));
    let server = locked(&[format!("acme/={ada}"), format!("acme/pay={bob}")]);
    let file = user.file("pay.wasm", &versioned("acme/pay", "1.0.0", 1));
    user.on(&server, &["plugin", "push", &file, "--sign", "ada"]).ends(4).says(&bob);
    user.run(&["plugin", "sign", &file, "--key", "ada"]).ok();
    user.run(&["plugin", "sign", &file, "--key", "bob"]).ok();
    let pushed = user.on(&server, &["plugin", "push", &file, "--json"]).ok().json();
    assert_eq!(pushed["signers"].as_array().map(Vec::len), Some(2), "a file's signatures lie beside it");
    let below = user.file("below.wasm", &versioned("acme/pay/refund", "1.0.0", 1));
    user.on(&server, &["plugin", "push", &below, "--sign", "ada"]).ends(4).says(&bob);
    let sibling = user.file("sibling.wasm", &versioned("acme/payments", "1.0.0", 1));
    user.on(&server, &["plugin", "push", &sibling, "--sign", "ada"]).ok();
}

#[tokio::test]
async fn a_signature_that_was_changed_or_is_about_other_bytes_is_refused() {
    let (user, server) = (User::new(), Server::start());
    user.key("release");
    let one = user.file("one.wasm", &versioned("acme/a", "1.0.0", 1));
    user.run(&["plugin", "sign", &one, "--key", "release"]).ok();
    let beside = user.place("one.wasm.dsse.json");
    let signed: Value = serde_json::from_slice(&std::fs::read(&beside).expect("beside")).expect("JSON");

    let attest = |envelope: &Value| json!({ "version": "1.0.0", "attestations": [envelope] });
    let admin = server.admin();
    admin.push(versioned("acme/a", "1.0.0", 1), "").await.is(201);
    let mut tampered = signed[0].clone();
    let text = tampered["signatures"][0]["sig"].as_str().expect("base64").to_owned();
    let first = if text.starts_with('A') { "B" } else { "A" };
    tampered["signatures"][0]["sig"] = json!(format!("{first}{}", &text[1..]));
    let problem = admin.post("/api/plugins/acme/a:attest", attest(&tampered)).await.problem(422, "invalid_attestation");
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains("does not fit")), "{problem}");
    admin.push(versioned("acme/b", "1.0.0", 1), "").await.is(201);
    admin.post("/api/plugins/acme/b:attest", attest(&signed[0])).await.problem(422, "invalid_attestation");
    let shown = admin.get("/api/plugins/acme/a").await.is(200).json();
    assert_eq!(shown["versions"][0]["entry"]["signers"], json!([]), "nothing of it was taken");
    // The command looks too, before anything is sent.
    std::fs::write(&beside, json!([tampered]).to_string()).expect("writable");
    user.on(&server, &["plugin", "push", &one]).ends(1).says("does not fit");

    let answer = admin.post("/api/plugins/acme/a:attest", attest(&signed[0])).await.is(200).json();
    assert_eq!(answer["signers"].as_array().map(Vec::len), Some(1));
    // A tenant signs what is its own.
    let rival = server.with_token(&admin.token_for("rival", "user").await);
    rival.post("/api/plugins/acme/a:attest", attest(&signed[0])).await.problem(403, "forbidden_tenant");
}

#[tokio::test]
async fn a_version_that_a_new_policy_does_not_take_is_not_served_until_it_is_signed() {
    let user = User::new();
    let release = user.key("release");
    let server = Server::start();
    server.admin().push(versioned("acme/a", "1.0.0", 1), "").await.is(201);
    server.admin().push(versioned("acme/a", "2.0.0", 2), "?channel=next").await.is(201);
    server.admin().call("acme/a", "x").await.is(200);
    let (data, _) = server.stop();

    let entry = format!("*={release}");
    let server = Server::start_on(data, &[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    let admin = server.admin();
    let problem = admin.call("acme/a", "x").await.problem(403, "signature_required");
    assert!(problem["detail"].as_str().is_some_and(|text| text.contains(&release)), "{problem}");
    let shown = user.on(&server, &["plugin", "show", "acme/a"]).ok().says("NOT SERVED");
    assert!(shown.stdout.contains("nobody") || shown.stdout.contains("is not signed"), "{}", shown.stdout);
    // Neither can a channel lead there.
    let body = json!({ "channel": "stable", "version": "2.0.0" });
    admin.post("/api/plugins/acme/a:channel", body).await.problem(403, "signature_required");
    // What is compiled in goes on.
    admin.post("/api/plugins/tools/noop:call", json!({})).await.is(200);

    user.on(&server, &["plugin", "sign", "acme/a@1.0.0", "--key", "release", "--reason", "reviewed"])
        .ok()
        .says(&release);
    admin.call("acme/a", "x").await.is(200);
    user.on(&server, &["plugin", "show", "acme/a"]).ok().says("took attestations of 1.0.0").says("reviewed");
    // It is in the log: the next start serves it at once.
    let (data, _) = server.stop();
    let server = Server::start_on(data, &[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    server.admin().call("acme/a", "x").await.is(200);
}

/// A new policy, and versions that were there before it: every way that could lead to one of them asks for its signature.
#[tokio::test]
async fn neither_rollback_nor_pin_nor_binding_leads_to_a_version_that_is_not_signed() {
    let user = User::new();
    let release = user.key("release");
    let server = Server::start();
    let admin = server.admin();
    for (path, version) in
        [("acme/a", "1.0.0"), ("acme/a", "2.0.0"), ("system/greet", "1.0.0"), ("acme/system/greet", "1.0.0")]
    {
        admin.push(versioned(path, version, 1), "").await.is(201);
    }
    let tenant = admin.token_for("acme", "tenant").await;
    let (data, _) = server.stop();

    let entry = format!("*={release}");
    let server = Server::start_on(data, &[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    let (admin, acme) = (server.admin(), server.with_token(&tenant));
    for signed in ["acme/a@2.0.0", "system/greet@1.0.0"] {
        user.on(&server, &["plugin", "sign", signed, "--key", "release"]).ok();
    }
    let bind = json!({ "to": "acme/system/greet" });
    admin.post("/api/plugins/acme/a:rollback", json!({})).await.problem(403, "signature_required");
    let pin = json!({ "version": "1.0.0" });
    acme.post("/api/plugins/acme/a:pin", pin.clone()).await.problem(403, "signature_required");
    acme.post("/api/plugins/system/greet:bind", bind.clone()).await.problem(403, "signature_required");
    // What served goes on.
    assert_eq!(acme.call("acme/a", "x").await.is(200).header("noetl-plugin-version"), "2.0.0");
    assert_eq!(acme.call("system/greet", "x").await.is(200).header("noetl-plugin-path"), "system/greet");

    for signed in ["acme/a@1.0.0", "acme/system/greet@1.0.0"] {
        user.on(&server, &["plugin", "sign", signed, "--key", "release"]).ok();
    }
    acme.post("/api/plugins/acme/a:pin", pin).await.is(200);
    admin.post("/api/plugins/acme/a:rollback", json!({})).await.is(200);
    acme.post("/api/plugins/system/greet:bind", bind).await.is(200);
    assert_eq!(acme.call("acme/a", "x").await.is(200).header("noetl-plugin-version"), "1.0.0");
    assert_eq!(acme.call("system/greet", "x").await.is(200).header("noetl-plugin-path"), "acme/system/greet");
}

#[test]
fn keys_stay_with_their_owner() {
    let user = User::new();
    let public = user.key("release");
    assert!(public.starts_with("ed25519:") && public.len() == 72, "{public}");
    user.run(&["key", "new", "release"]).ends(5).says("never replaced");
    user.run(&["key", "list"]).ok().says("release").says(&public);
    let shown = user.run(&["key", "show", "release", "--json"]).ok().json();
    let private = std::fs::read_to_string(shown["file"].as_str().expect("a file")).expect("readable");
    let secret = private.lines().nth(1).expect("the key").to_owned();
    for command in [&["key", "show", "release"][..], &["key", "export", "release"], &["key", "list", "--json"]] {
        let ran = user.run(command).ok();
        assert!(!ran.stdout.contains(&secret) && !ran.stderr.contains(&secret), "{command:?} shows the secret");
    }
    let file = user.file(
        "a.wasm",
        &with_manifest(
            &guest("versioned"),
            "path = \"acme/a\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = []\n",
        ),
    );
    user.run(&["plugin", "sign", &file, "--key", "nobody"]).ends(3).says("noetl key new nobody");
}

/// A refusal advises what can be done where it is read: nothing was kept, so there is nothing to sign on the server.
#[test]
fn a_refusal_advises_to_sign_what_is_there_only_if_it_is_there() {
    let user = User::new();
    let release = user.key("release");
    let server = locked(&[format!("acme/={release}")]);
    let file = user.file("a.wasm", &versioned("acme/a", "1.0.0", 1));
    let refused = user.on(&server, &["plugin", "push", &file]).ends(4).says("--sign NAME");
    assert!(!refused.stderr.contains("plugin sign"), "{}", refused.stderr);

    let source = Server::start();
    user.on(&source, &["plugin", "push", &file]).ok();
    let bundle = user.word("bundle.tar");
    user.on(&source, &["plugin", "export", "-o", &bundle]).ok();
    let refused = user.on(&server, &["plugin", "import", &bundle]).ends(4).says("nothing was imported");
    let refused = refused.says("before it is exported: noetl plugin sign acme/a@1.0.0");
    assert!(!refused.stderr.contains("--sign"), "{}", refused.stderr);

    let (data, _) = source.stop();
    let entry = format!("acme/={release}");
    let source = Server::start_on(data, &[("NOETL_POLICY_SIGNERS", entry.as_str())]);
    user.on(&source, &["plugin", "call", "acme/a", "--input", "x"]).ends(4).says("noetl plugin sign acme/a@1.0.0");
}
