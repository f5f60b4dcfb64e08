use noetl_contract::{Digest, PluginPath, Version};

use super::*;

fn statement(content: &[u8]) -> Statement {
    Statement {
        path: PluginPath::new("acme/a").expect("a path"),
        version: Version::new(1, 0, 0),
        digest: Digest::of(content),
        provenance: Some(Build {
            builder: "ada@laptop".to_owned(),
            tool: "noetl 0.1.0".to_owned(),
            toolchain: "rustc 1.95.0".to_owned(),
            source: Some(Source { repository: None, commit: "c0ffee".to_owned(), dirty: true }),
        }),
    }
}

fn signed(content: &[u8], keys: &[&SecretKey]) -> Envelope {
    let mut envelope = Envelope::unsigned(&statement(content));
    keys.iter().for_each(|key| envelope.sign(key).expect("signs"));
    envelope
}

fn key() -> SecretKey {
    SecretKey::generate().expect("randomness").0
}

#[test]
fn a_statement_says_afterwards_what_it_was_told() {
    let told = statement(b"x");
    assert_eq!(Statement::parse(&told.to_json()), Ok(told.clone()));
    let bare = Statement { provenance: None, ..told };
    assert_eq!(Statement::parse(&bare.to_json()), Ok(bare));
}

#[test]
fn a_signature_holds_for_what_was_signed_and_for_nothing_else() {
    let ada = key();
    let envelope = signed(b"x", &[&ada]);
    let opened = envelope.open_for(&Digest::of(b"x")).expect("holds");
    assert_eq!(opened.signers, [ada.public()]);
    assert!(matches!(envelope.open_for(&Digest::of(b"y")), Err(AttestationError::OtherDigest { .. })));

    // The statement of other bytes under the same signature, and the signature of another key.
    let mut json: serde_json::Value = serde_json::from_slice(&envelope.to_json()).expect("JSON");
    let other: serde_json::Value = serde_json::from_slice(&signed(b"y", &[]).to_json()).expect("JSON");
    json["payload"] = other["payload"].clone();
    let tampered = Envelope::parse(json.to_string().as_bytes()).expect("reads");
    assert_eq!(tampered.open(), Err(AttestationError::BadSignature(ada.public())));
    let mut json: serde_json::Value = serde_json::from_slice(&envelope.to_json()).expect("JSON");
    let eve = key().public();
    json["signatures"][0]["keyid"] = serde_json::json!(eve);
    let claimed = Envelope::parse(json.to_string().as_bytes()).expect("reads");
    assert_eq!(claimed.open(), Err(AttestationError::BadSignature(eve)));
}

#[test]
fn equal_inputs_give_equal_envelopes_and_signatures_are_joined() {
    let (ada, bob) = (key(), key());
    assert_eq!(signed(b"x", &[&ada, &ada]), signed(b"x", &[&ada]));
    let merged = merge(&[signed(b"x", &[&ada])], &[signed(b"x", &[&bob]), signed(b"x", &[&ada])]);
    assert_eq!(merged, [signed(b"x", &[&ada, &bob])]);
    let (signers, provenance) = about(&Digest::of(b"x"), &merged);
    assert_eq!(signers.len(), 2);
    let provenance = provenance.expect("they say how it was made");
    assert_eq!((Some(provenance.build), provenance.signed_by), (statement(b"x").provenance, signers));
}

#[test]
fn an_account_of_a_build_is_the_word_of_those_who_signed_it() {
    let (ada, bob) = (key(), key());
    let mut approval = Envelope::unsigned(&Statement { provenance: None, ..statement(b"x") });
    approval.sign(&bob).expect("signs");
    let signed_by = |account: Envelope| {
        let (signers, provenance) = about(&Digest::of(b"x"), &[approval.clone(), account]);
        assert!(signers.contains(&bob.public()));
        provenance.expect("an account").signed_by
    };
    assert_eq!(
        signed_by(signed(b"x", &[&ada])),
        [ada.public()],
        "whoever approves the bytes adopts no account of them"
    );
    assert!(signed_by(signed(b"x", &[])).is_empty());
}

#[test]
fn what_is_read_is_not_ones_own_and_other_payloads_are_not_signed() {
    let envelope = signed(b"x", &[]);
    let read = Envelope::parse(&envelope.to_json()).expect("reads");
    assert!(envelope.is_own() && !read.is_own());
    assert_eq!(envelope, read, "where it was written is no part of it");
    let mut json: serde_json::Value = serde_json::from_slice(&envelope.to_json()).expect("JSON");
    json["payloadType"] = serde_json::json!("text/plain");
    let mut other = Envelope::parse(json.to_string().as_bytes()).expect("reads");
    assert!(matches!(other.sign(&key()), Err(AttestationError::Malformed(_))));
}

#[test]
fn nothing_that_is_added_makes_a_signature_count_no_more() {
    let digest = Digest::of(b"x");
    let mut known = Vec::new();
    for _ in 0..16 {
        known = join(&digest, &known, &[signed(b"x", &[&key()])]).expect("sixteen keys");
    }
    assert_eq!(about(&digest, &known).0.len(), 16);
    let more = join(&digest, &known, &[signed(b"x", &[&key()])]);
    assert_eq!(more, Err(AttestationError::TooManySignatures));
    assert_eq!(known[0].clone().sign(&key()), Err(AttestationError::TooManySignatures));
    assert!(matches!(join(&digest, &known, &[signed(b"y", &[])]), Err(AttestationError::OtherDigest { .. })));
}

#[test]
fn accounts_that_nobody_signed_take_no_room_from_signatures() {
    let digest = Digest::of(b"x");
    let unsigned = |number: u64| {
        let statement = Statement { version: Version::new(number, 0, 0), ..statement(b"x") };
        Envelope::unsigned(&statement)
    };
    let many: Vec<Envelope> = (0..40).map(unsigned).collect();
    let known = join(&digest, &[], &many).expect("one of them stays");
    assert_eq!(known, [unsigned(0)]);
    let ada = key();
    let signed = join(&digest, &known, &[signed(b"x", &[&ada])]).expect("there is room");
    assert_eq!(about(&digest, &signed).0, [ada.public()]);
}

#[test]
fn a_namespace_takes_its_signers_and_every_entry_counts() {
    let (ada, bob, eve) = (key(), key(), key());
    let entry = |text: String| text.parse::<Requirement>().expect("an entry");
    let any = entry(format!("system/={}|{}", ada.public(), bob.public()));
    let both = entry(format!("system/auth={}", bob.public()));
    let policy = SignerPolicy::new(vec![any, both]);
    let check = |path: &str, keys: &[&SecretKey]| {
        let path = PluginPath::new(path).expect("a path");
        policy.check(&path, &Version::new(1, 0, 0), &Digest::of(b"x"), &[signed(b"x", keys)])
    };
    assert_eq!(check("acme/a", &[]), Ok(()));
    assert_eq!(check("system/x", &[&ada]), Ok(()));
    assert_eq!(check("system/auth", &[&bob]), Ok(()));
    let unmet = check("system/auth", &[&ada]).expect_err("the narrower entry is not met");
    assert_eq!((unmet.namespace.as_str(), unmet.accepted.as_slice()), ("system/auth", &[bob.public()][..]));
    let stranger = check("system/x", &[&eve]).expect_err("a stranger");
    let text = stranger.to_string();
    for part in [ada.public().to_string(), bob.public().to_string(), eve.public().to_string()] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
    assert!(!text.contains("plugin sign"), "there is nothing to sign: {text}");
    let text = Unsigned { there: true, ..*stranger }.to_string();
    assert!(text.contains("`noetl plugin sign system/x@1.0.0 --key NAME`"), "{text}");
    assert!(check("systematic/x", &[]).is_ok(), "a namespace ends at its slash");
    assert!(check("system/auth/ldap", &[&ada]).is_err(), "what lies under a path is covered with it");
    assert_eq!(check("system/authority", &[&ada]), Ok(()), "a sibling is not");
}

#[test]
fn a_signature_of_other_bytes_does_not_count() {
    let ada = key();
    let policy = SignerPolicy::new(vec![format!("*={}", ada.public()).parse().expect("an entry")]);
    let path = PluginPath::new("acme/a").expect("a path");
    let elsewhere = [signed(b"other", &[&ada])];
    assert!(policy.check(&path, &Version::new(1, 0, 0), &Digest::of(b"x"), &elsewhere).is_err());
}

#[test]
fn entries_that_are_wrong_say_why() {
    let key = key().public();
    for (bad, why) in [
        ("system/".to_owned(), "has no `=`"),
        ("system/=x".to_owned(), "not a public key"),
        (format!("={key}"), "names no namespace"),
        (format!("System/={key}"), "names no namespace"),
        (format!("system={key}"), "without its `/`"),
    ] {
        let message = bad.parse::<Requirement>().expect_err(&bad);
        assert!(message.contains(why), "{bad}: {message}");
    }
}

#[test]
fn keys_survive_their_files_and_other_things_are_no_keys() {
    let (secret, pem) = SecretKey::generate().expect("randomness");
    assert_eq!(SecretKey::from_pem(&pem).expect("reads").public(), secret.public());
    assert!(secret.public().pem().starts_with("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA"));
    assert_eq!(secret.public().to_string().parse(), Ok(secret.public()));
    for bad in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", secret.public().pem().as_str()] {
        assert!(SecretKey::from_pem(bad).is_err());
    }
}

#[test]
fn what_is_too_large_is_not_read() {
    let huge = format!("{{\"payloadType\":\"{}\"}}", "x".repeat(MAX_ENVELOPE_BYTES));
    assert_eq!(Envelope::parse(huge.as_bytes()), Err(AttestationError::TooLarge));
}
