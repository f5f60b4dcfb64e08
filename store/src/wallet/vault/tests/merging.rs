//! Credentials of which a part is changed.

use super::*;

#[tokio::test]
async fn what_is_not_changed_stays_secrets_included() {
    let place = Place::new();
    let vault = place.open().await;
    let data = json!({"access_key": "AKIA-1", "secret_key": SECRET, "session_token": "of-a-session", "bucket": "b"});
    let before = vault.put(new_of("s3", "acme", "store", data), &change()).expect("kept");
    let merge = |data: Value| {
        let data = data.as_object().cloned().expect("an object");
        let proposal = vault.propose(&tenant("acme"), "store", Changes { data, ..Changes::default() })?;
        vault.accept(proposal, &change())
    };
    let (after, fields) = merge(json!({"aws_secret_access_key": "another-key"})).expect("changed");
    let of = |name: &str| fields.get(name).map(str::to_owned);
    assert_eq!(of("secret_key").as_deref(), Some("another-key"));
    assert_eq!((of("session_token").as_deref(), of("access_key").as_deref()), (Some("of-a-session"), Some("AKIA-1")));
    assert_eq!((&after.hosts, after.created_at_ms), (&before.hosts, before.created_at_ms));
    let (_, fields) = merge(json!({"session_token": null})).expect("changed");
    assert_eq!(fields.get("session_token"), None);
    assert!(matches!(merge(json!({"secret_key": null})), Err(VaultError::Invalid(_))), "it needs one");
    assert!(matches!(merge(json!({"password": "x"})), Err(VaultError::Invalid(_))), "no field of it");
    let opened =
        vault.open_for(&Use { target: String::new(), ..using("acme", "store") }, Event::Opened).expect("opens");
    assert_eq!(opened.field("secret_key"), Some("another-key"));
    let database = json!({"url": "postgres://u:first-password@h/d", "sslmode": "require"});
    vault.put(new_of("postgres", "acme", "store", database), &change()).expect("kept");
    let (_, fields) = merge(json!({"url": "postgres://v@h:1/e"})).expect("changed");
    assert_eq!((fields.get("user"), fields.get("password"), fields.get("sslmode")), (Some("v"), None, Some("require")));
}

/// Whoever says where a kept secret goes can have it sent to himself.
#[tokio::test]
async fn a_secret_that_stays_goes_nowhere_else_unnoticed() {
    let place = Place::new();
    let vault = place.open().await;
    let propose = |alias: &str, data: Value, hosts: Option<&str>| {
        let hosts = hosts.map(|host| vec![Binding::new(host).expect("a binding")]);
        let data = data.as_object().cloned().expect("an object");
        vault.propose(&tenant("acme"), alias, Changes { data, hosts, ..Changes::default() })
    };
    let url = json!({"url": "postgres://u:first-password@h/d"});
    vault.put(new_of("postgres", "acme", "pg", url), &change()).expect("kept");
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    for (alias, data, hosts, further) in [
        ("api", json!({}), Some("evil.example.com"), true),
        ("api", json!({"token": "another-value"}), Some("evil.example.com"), false),
        ("api", json!({"token": "another-value"}), None, false),
        ("pg", json!({"host": "evil.example.com"}), None, true),
        ("pg", json!({"sslmode": "disable"}), None, true),
        ("pg", json!({"port": 1, "password": "second-password"}), None, false),
        ("pg", json!({"url": "postgres://v:third-password@other/e"}), None, false),
        ("pg", json!({"password": "second-password"}), None, false),
    ] {
        let proposal = propose(alias, data.clone(), hosts).expect("it can be proposed");
        assert_eq!(proposal.goes_further(), further, "{alias} {data} {hosts:?}");
    }
    // It went to the place that it named itself, and goes on doing so.
    let moved = propose("pg", json!({"host": "db2", "password": "second-password"}), None).expect("proposed");
    let changed: Vec<&str> = moved.changed().map(|(name, _)| name).collect();
    assert_eq!(changed, ["host", "password"]);
    let (record, _) = vault.accept(moved, &change()).expect("accepted");
    assert_eq!(record.hosts, [Binding::new("db2:5432").expect("a binding")]);
    let twice = propose("api", json!({"token": "one-value", "access_token": "another-value"}), None);
    assert!(matches!(twice, Err(VaultError::Invalid(_))), "two spellings, two values");
}
