//! The vault on real files.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::wallet::{Way, kinds};

mod merging;

const SECRET: &str = "correct-horse-battery-staple";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("wallet.sqlite")
    }

    fn key_file(&self) -> PathBuf {
        self.folder.path().join("wallet.key")
    }

    async fn try_open(&self) -> Result<Arc<Vault>, VaultError> {
        Vault::open(&self.file(), KeySource::File(self.key_file()), Retention::default()).await
    }

    async fn open(&self) -> Arc<Vault> {
        self.try_open().await.expect("opens")
    }

    /// Why the vault does not open.
    async fn refused(&self) -> String {
        match self.try_open().await {
            Ok(_) => panic!("it opened"),
            Err(error) => error.to_string(),
        }
    }

    /// Changes the file behind the vault's back.
    fn tamper(&self, sql: &str) {
        Connection::open(self.file()).expect("opens").execute_batch(sql).expect("changed");
    }
}

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a tenant")
}

fn change() -> Change {
    Change { by: "ci".to_owned(), call: "r1".to_owned() }
}

fn new_of(kind: &str, of: &str, alias: &str, data: Value) -> NewRecord {
    let kind = kinds::kind(kind).expect("a kind");
    NewRecord {
        tenant: tenant(of),
        alias: alias.to_owned(),
        kind,
        fields: kind.check(data.as_object().expect("an object")).expect("valid"),
        hosts: None,
        tags: vec!["demo".to_owned()],
        description: "for tests".to_owned(),
    }
}

fn bearer(of: &str, alias: &str, token: &str) -> NewRecord {
    let hosts = Some(vec![Binding::new("api.example.com").expect("a pattern")]);
    NewRecord { hosts, ..new_of("bearer", of, alias, json!({"token": token})) }
}

fn using(of: &str, alias: &str) -> Use {
    Use {
        tenant: tenant(of),
        alias: alias.to_owned(),
        by: "tools/http@0.1.0".to_owned(),
        call: "c1".to_owned(),
        target: "api.example.com:443".to_owned(),
    }
}

fn token(vault: &Vault, of: &str, alias: &str) -> Result<String, VaultError> {
    let credential = vault.open_for(&using(of, alias), Event::Opened)?;
    Ok(credential.field("token").expect("a bearer's").to_owned())
}

fn events(vault: &Vault, of: &str, alias: &str) -> Vec<String> {
    let lines = vault.audit(&tenant(of), alias, None, 100).expect("readable");
    lines.into_iter().map(|line| line.event).collect()
}

#[tokio::test]
async fn a_credential_comes_back_after_a_restart_and_a_list_opens_nothing() {
    let place = Place::new();
    let data = json!({"url": format!("postgres://app:{SECRET}@db.example.com/shop")});
    let vault = place.open().await;
    let made = vault.put(new_of("postgres", "acme", "pg", data), &change()).expect("kept");
    drop(vault);
    let vault = place.open().await;
    let shown = vault.get(&tenant("acme"), "pg").expect("there");
    assert_eq!(shown, made);
    assert_eq!((shown.shown["user"].as_deref(), shown.shown["password"].as_deref()), (Some("app"), None));
    assert_eq!(vault.list(Some(&tenant("acme"))).expect("listed"), [shown]);
    assert_eq!(events(&vault, "acme", "pg"), ["added"], "nothing was opened so far");
    let credential =
        vault.open_for(&Use { target: String::new(), ..using("acme", "pg") }, Event::Opened).expect("opens");
    assert_eq!(vault.audit(&tenant("acme"), "pg", None, 1).expect("readable")[0].target, "db.example.com:5432");
    assert_eq!((credential.field("password"), credential.field("host")), (Some(SECRET), Some("db.example.com")));
    assert!(
        credential.may_go_to("db.example.com", 5432, Way::Own(5432))
            && !credential.may_go_to("elsewhere.example.com", 5432, Way::Own(5432))
    );
    assert!(!format!("{credential:?}").contains(SECRET));
}

#[tokio::test]
async fn another_tenant_sees_nothing() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    assert!(vault.list(Some(&tenant("other"))).expect("listed").is_empty());
    assert!(matches!(vault.get(&tenant("other"), "api"), Err(VaultError::Unknown { .. })));
    assert!(matches!(token(&vault, "other", "api"), Err(VaultError::Unknown { .. })));
    assert!(matches!(vault.delete(&tenant("other"), "api", &change()), Err(VaultError::Unknown { .. })));
    assert_eq!(
        (events(&vault, "other", "api"), events(&vault, "acme", "api")),
        (vec!["unknown".into()], vec!["added".into()])
    );
    assert_eq!(vault.list(None).expect("listed").len(), 1);
}

#[tokio::test]
async fn a_record_in_anothers_place_is_refused() {
    let place = Place::new();
    let vault = place.open().await;
    for (of, alias) in [("acme", "a"), ("acme", "b"), ("other", "a")] {
        vault.put(bearer(of, alias, &format!("{SECRET} {of} {alias}")), &change()).expect("kept");
    }
    drop(vault);
    // b's value where a's was; acme's where other's was, even with the number of its revision.
    place.tamper(
        "UPDATE records SET sealed = (SELECT sealed FROM records WHERE tenant = 'acme' AND alias = 'b') WHERE tenant = 'acme' AND alias = 'a';
         UPDATE records SET (sealed, revision) = (SELECT sealed, revision FROM records WHERE tenant = 'acme' AND alias = 'b') WHERE tenant = 'other';",
    );
    let vault = place.open().await;
    for (of, alias) in [("acme", "a"), ("other", "a")] {
        let refused = token(&vault, of, alias).expect_err("another's");
        assert!(matches!(refused, VaultError::Closed { source: SealError::Broken, .. }), "{refused}");
        assert_eq!(events(&vault, of, alias), ["closed", "added"]);
    }
    assert!(token(&vault, "acme", "b").is_ok());
}

#[tokio::test]
async fn hosts_that_were_changed_in_the_file_change_nothing() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    place.tamper("UPDATE records SET hosts = '[\"*\"]'");
    let credential = vault.open_for(&using("acme", "api"), Event::Opened).expect("opens");
    assert!(
        credential.may_go_to("api.example.com", 443, Way::Https)
            && !credential.may_go_to("evil.example.net", 443, Way::Https)
    );
}

#[tokio::test]
async fn nothing_opens_without_the_right_key_and_the_error_says_what_to_do() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    let kid = vault.status().expect("known").kid;
    drop(vault);
    let kept = std::fs::read(place.key_file()).expect("the key");

    std::fs::remove_file(place.key_file()).expect("removed");
    let said = place.refused().await;
    assert!(
        said.contains("wallet.key is not there") && said.contains(&kid) && said.contains("put the file back"),
        "{said}"
    );
    assert!(!place.key_file().exists(), "no other key was made");

    Keyring::generate().expect("randomness").write(&place.key_file()).expect("written");
    let said = place.refused().await;
    assert!(said.contains("another one") && said.contains(&kid) && said.contains("give the right key"), "{said}");

    std::fs::write(place.key_file(), b"not a key\n").expect("written");
    assert!(place.refused().await.contains("32 random bytes"));

    std::fs::write(place.key_file(), &kept).expect("written");
    std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o644)).expect("chmod");
    assert!(place.refused().await.contains("can be read by others"));

    std::fs::set_permissions(place.key_file(), std::fs::Permissions::from_mode(0o600)).expect("chmod");
    let vault = place.open().await;
    assert_eq!(token(&vault, "acme", "api").expect("opens"), SECRET);
}

#[tokio::test]
async fn the_first_start_makes_a_key_and_both_files_are_their_owners_alone() {
    let place = Place::new();
    drop(place.open().await);
    for file in [place.key_file(), place.file()] {
        let mode = std::fs::metadata(&file).expect("made").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[tokio::test]
async fn the_value_is_in_no_file_in_any_form() {
    use base64::Engine as _;
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    vault
        .put(new_of("basic", "acme", "web", json!({"user": "ada-lovelace", "password": SECRET})), &change())
        .expect("kept");
    token(&vault, "acme", "api").expect("opens");
    vault.rotate().await.expect("rotated");
    vault.put(bearer("acme", "api", "another-value"), &change()).expect("replaced");
    vault.delete(&tenant("acme"), "api", &change()).expect("deleted");
    let forms = [SECRET.to_owned(), hex::encode(SECRET), base64::engine::general_purpose::STANDARD.encode(SECRET)];
    let (mut looked, mut found_public) = (0, false);
    for entry in std::fs::read_dir(place.folder.path()).expect("the folder").flatten() {
        let bytes = std::fs::read(entry.path()).expect("readable");
        let has = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
        for form in &forms {
            assert!(!has(form), "{form} is in {}", entry.path().display());
        }
        found_public |= has("ada-lovelace");
        looked += 1;
    }
    assert!(looked >= 2 && found_public, "this looked at the right bytes");
}

#[tokio::test]
async fn a_rotation_brings_all_under_a_new_key_while_they_are_used() {
    let place = Place::new();
    let vault = place.open().await;
    for number in 0..20 {
        vault.put(bearer("acme", &format!("a{number}"), &format!("{SECRET}{number}")), &change()).expect("kept");
    }
    let (before, key_before) = (vault.status().expect("known"), std::fs::read(place.key_file()).expect("the key"));
    let reading = {
        let vault = Arc::clone(&vault);
        tokio::task::spawn_blocking(move || {
            for round in 0..200 {
                let number = round % 20;
                assert_eq!(token(&vault, "acme", &format!("a{number}")).expect("opens"), format!("{SECRET}{number}"));
                vault.put(bearer("acme", "busy", SECRET), &change()).expect("kept");
            }
        })
    };
    let rotated = vault.rotate().await.expect("rotated");
    reading.await.expect("nothing failed");
    let after = vault.status().expect("known");
    assert_ne!(after.kid, before.kid);
    assert_eq!((rotated.kid.as_str(), rotated.resumed), (after.kid.as_str(), false));
    assert_eq!((after.keys.len(), after.keys[0].records), (1, 21));
    assert_eq!(rotated.retired, [before.kid]);
    drop(vault);
    let kept = std::fs::read(place.key_file()).expect("the key");
    let vault = place.open().await;
    assert_eq!(token(&vault, "acme", "a3").expect("opens"), format!("{SECRET}3"));
    drop(vault);
    std::fs::write(place.key_file(), key_before).expect("written");
    assert!(place.refused().await.contains("another one"), "the old key opens nothing any more");
    std::fs::write(place.key_file(), kept).expect("written");
    place.open().await;
}

#[tokio::test]
async fn a_rotation_that_breaks_off_goes_on_with_the_next() {
    let place = Place::new();
    let vault = place.open().await;
    for number in 0..5 {
        vault.put(bearer("acme", &format!("a{number}"), SECRET), &change()).expect("kept");
    }
    // As far as a rotation is when the server is killed: the key is in the file, and two of five records are under it.
    let both = KeySource::File(place.key_file())
        .read()
        .await
        .expect("readable")
        .expect("there")
        .with_new()
        .expect("randomness");
    both.write(&place.key_file()).expect("written");
    vault.hold(both.clone()).expect("held");
    assert!(vault.rewrap_next().expect("wrapped") && vault.rewrap_next().expect("wrapped"));
    drop(vault);

    let vault = place.open().await;
    let status = vault.status().expect("known");
    assert_eq!(status.keys.iter().map(|key| key.records).collect::<Vec<_>>(), [2, 3]);
    for number in 0..5 {
        assert_eq!(token(&vault, "acme", &format!("a{number}")).expect("opens"), SECRET);
    }
    let rotated = vault.rotate().await.expect("rotated");
    assert_eq!((rotated.rewrapped, rotated.resumed, rotated.kid.as_str()), (3, true, both.first().kid()));
    let again = vault.rotate().await.expect("rotated");
    assert_eq!((again.rewrapped, again.resumed), (5, false));
}

#[tokio::test]
async fn given_keys_change_when_their_owner_gives_another_before_the_old() {
    use base64::Engine as _;
    let place = Place::new();
    let key = |seed: u8| base64::engine::general_purpose::STANDARD.encode((seed..seed + 32).collect::<Vec<u8>>());
    let (old, new) = (key(1), key(100));
    let open = async |keys: String| {
        Vault::open(&place.file(), KeySource::Given(Zeroizing::new(keys)), Retention::default()).await
    };
    let vault = open(old.clone()).await.expect("opens");
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    drop(vault);
    assert!(matches!(open(new.clone()).await.map(drop), Err(VaultError::WrongKey { .. })));
    let vault = open(format!("{new},{old}")).await.expect("opens");
    assert_eq!(vault.rotate().await.expect("rotated").rewrapped, 1);
    drop(vault);
    let vault = open(new).await.expect("the new one is enough");
    assert_eq!(token(&vault, "acme", "api").expect("opens"), SECRET);
    assert!(!place.key_file().exists(), "a key that is given is written nowhere");
}

#[tokio::test]
async fn every_attempt_leaves_a_line_and_old_lines_go() {
    let place = Place::new();
    let retention = Retention { lines: 3, ..Retention::default() };
    let source = KeySource::File(place.key_file());
    let vault = Vault::open(&place.file(), source.clone(), retention).await.expect("opens");
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    token(&vault, "acme", "api").expect("opens");
    vault.open_for(&using("acme", "api"), Event::Revealed).expect("opens");
    let lines = vault.audit(&tenant("acme"), "api", None, 10).expect("readable");
    assert_eq!(lines.iter().map(|line| line.event.as_str()).collect::<Vec<_>>(), ["revealed", "opened", "added"]);
    let opened = &lines[1];
    assert_eq!(
        (opened.by.as_str(), opened.call.as_str(), opened.target.as_str()),
        ("tools/http@0.1.0", "c1", "api.example.com:443")
    );
    assert_eq!(vault.audit(&tenant("acme"), "api", Some(opened.id), 1).expect("readable"), lines[2..]);
    for _ in 0..600 {
        assert!(token(&vault, "noisy", "x").is_err());
    }
    let noisy = vault.audit(&tenant("noisy"), "x", None, 1000).expect("readable").len();
    assert!((3..300).contains(&noisy), "{noisy}");
    assert_eq!(events(&vault, "acme", "api").len(), 3, "a noisy tenant takes no line of another");
    for _ in 0..600 {
        assert!(token(&vault, "acme", "x").is_err());
    }
    assert_eq!(events(&vault, "acme", "api"), ["revealed", "added"], "nobody pushes out what a person did");
    drop(vault);
    place.tamper("UPDATE uses SET time = 0");
    let vault = Vault::open(&place.file(), source, retention).await.expect("opens");
    assert!(events(&vault, "acme", "api").is_empty());
}

#[tokio::test]
async fn a_use_that_cannot_be_written_down_opens_nothing() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    place.tamper("DROP TABLE uses");
    assert!(matches!(token(&vault, "acme", "api"), Err(VaultError::Database(_))));
}

#[tokio::test]
async fn a_revision_is_never_used_again() {
    let place = Place::new();
    let vault = place.open().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..3 {
        assert!(seen.insert(vault.put(bearer("acme", "api", SECRET), &change()).expect("kept").revision));
        vault.delete(&tenant("acme"), "api", &change()).expect("deleted");
        assert!(seen.insert(vault.put(bearer("acme", "api", SECRET), &change()).expect("kept").revision));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, String),
    Delete(u8),
    Rotate,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, "[ -~]{1,40}").prop_map(|(alias, value)| Step::Put(alias, value)),
        1 => (0..4u8).prop_map(Step::Delete),
        1 => Just(Step::Rotate),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_the_last_value_opens(steps in proptest::collection::vec(step(), 1..16)) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let place = Place::new();
            let mut vault = place.open().await;
            let mut model: BTreeMap<u8, String> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Put(alias, value) => {
                        vault.put(bearer("acme", &format!("a{alias}"), &value), &change()).expect("kept");
                        model.insert(alias, value);
                    }
                    Step::Delete(alias) => {
                        let deleted = vault.delete(&tenant("acme"), &format!("a{alias}"), &change());
                        assert_eq!(deleted.is_ok(), model.remove(&alias).is_some());
                    }
                    Step::Rotate => drop(vault.rotate().await.expect("rotated")),
                    Step::Restart => {
                        drop(vault);
                        vault = place.open().await;
                    }
                }
            }
            for alias in 0..4 {
                let opened = token(&vault, "acme", &format!("a{alias}")).ok();
                assert_eq!(opened.as_ref(), model.get(&alias));
            }
        });
    }
}

#[tokio::test]
async fn seals_outlive_the_process_and_a_rotation_and_differ_by_tenant() {
    let place = Place::new();
    let vault = place.open().await;
    let (main, acme) = (vault.seals().of(&tenant("main")), vault.seals().of(&tenant("acme")));
    assert_ne!(main, acme);
    vault.rotate().await.expect("rotated");
    drop(vault);
    assert_eq!(place.open().await.seals().of(&tenant("main")), main);
    assert_ne!(Place::new().open().await.seals().of(&tenant("main")), main, "each server has its own");
}

#[tokio::test]
async fn a_use_for_another_host_is_refused_and_the_audit_says_so() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", SECRET), &change()).expect("kept");
    for target in ["evil.example.net:443", "[::1]:443"] {
        let refused = vault.open_for(&Use { target: target.to_owned(), ..using("acme", "api") }, Event::Opened);
        assert!(matches!(&refused, Err(VaultError::NotForThere { .. })), "{target}");
        let line = vault.audit(&tenant("acme"), "api", None, 1).expect("readable").remove(0);
        assert_eq!((line.event.as_str(), line.target.as_str()), ("refused", target));
    }
    // A database that its credential was not bound to.
    let data = json!({"host": "DB.example.com", "port": 5433, "user": "u", "database": "d", "password": SECRET});
    let elsewhere = Some(vec![Binding::new("other.example.com").expect("a binding")]);
    vault.put(NewRecord { hosts: elsewhere, ..new_of("postgres", "acme", "pg", data) }, &change()).expect("kept");
    assert!(vault.open_for(&Use { target: String::new(), ..using("acme", "pg") }, Event::Opened).is_err());
    let line = vault.audit(&tenant("acme"), "pg", None, 1).expect("readable").remove(0);
    assert_eq!((line.event.as_str(), line.target.as_str()), ("refused", "db.example.com:5433"));
    vault
        .open_for(&Use { target: "nowhere".to_owned(), ..using("acme", "pg") }, Event::Opened)
        .expect("only looked at");
}

fn told(vault: &Vault) -> Vec<(String, String)> {
    let told = Mutex::new(Vec::new());
    vault.tell_all(&|of, secret| told.lock().push((of.to_string(), secret.value.to_owned()))).expect("told");
    told.into_inner()
}

#[tokio::test]
async fn what_was_replaced_is_told_after_a_restart_and_a_rotation_and_what_was_deleted_is_not() {
    let place = Place::new();
    let vault = place.open().await;
    for value in ["first-value", "second-value"] {
        vault.put(bearer("acme", "api", value), &change()).expect("kept");
    }
    vault.keep_token(&tenant("acme"), "api", "fetched-token", 3_600_000).expect("kept");
    vault.put(bearer("beta", "api", "of-another"), &change()).expect("kept");
    let of = |tenant: &str, value: &str| (tenant.to_owned(), value.to_owned());
    let all =
        [of("acme", "first-value"), of("acme", "fetched-token"), of("acme", "second-value"), of("beta", "of-another")];
    drop(vault);
    let vault = place.open().await;
    assert_eq!(told(&vault), all, "those in use last");
    assert_eq!(token(&vault, "acme", "api").expect("opens"), "second-value");
    assert_eq!(vault.rotate().await.expect("rotated").rewrapped, 2, "of what people have kept");
    drop(vault);
    let vault = place.open().await;
    assert_eq!(told(&vault), all, "under the only key there is now");
    vault.delete(&tenant("acme"), "api", &change()).expect("deleted");
    vault.keep_token(&tenant("acme"), "api", "too-late", 3_600_000).expect("left out");
    assert_eq!(told(&vault), [of("beta", "of-another")]);
    let bytes = std::fs::read(place.file()).expect("readable");
    for value in ["first-value", "fetched-token"] {
        assert!(!bytes.windows(value.len()).any(|window| window == value.as_bytes()), "{value} is in the file");
    }
}

#[tokio::test]
async fn former_values_are_bounded_in_number_and_time_and_stop_nothing() {
    let place = Place::new();
    let vault = place.open().await;
    vault.put(bearer("acme", "api", "value-in-use"), &change()).expect("kept");
    for number in 0..1002 {
        vault.keep_token(&tenant("acme"), "api", &format!("token-{number}"), 1000).expect("kept");
    }
    let values = told(&vault);
    assert_eq!((values.len(), values[0].1.as_str()), (1001, "token-2"), "the oldest two are gone");
    place.tamper("UPDATE former SET until = 1 WHERE revision % 2 = 0");
    assert_eq!(told(&vault).len(), 501);
    place.tamper("UPDATE former SET kid = 'lost'; UPDATE former SET sealed = 'no seal at all'");
    drop(vault);
    let vault = place.open().await;
    assert_eq!(told(&vault).len(), 1, "what does not open is left out");
    vault.rotate().await.expect("rotated");
    let left: i64 = Connection::open(place.file())
        .and_then(|file| file.query_row("SELECT count(*) FROM former", [], |row| row.get(0)))
        .expect("readable");
    assert_eq!(left, 0);

    let retention = Retention { former_days: 0, ..Retention::default() };
    let place = Place::new();
    let vault = Vault::open(&place.file(), KeySource::File(place.key_file()), retention).await.expect("opens");
    for value in ["first-value", "second-value"] {
        vault.put(bearer("acme", "api", value), &change()).expect("kept");
    }
    vault.keep_token(&tenant("acme"), "api", "fetched-token", 1000).expect("left out");
    assert_eq!(told(&vault).len(), 1, "nothing is kept where the operator says so");
}
