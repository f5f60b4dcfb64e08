//! Tokens on a real log.

use noetl_store::log::file::{FileLog, FileLogOptions};
use tempfile::TempDir;

use super::*;

fn open(folder: &TempDir) -> Arc<Tokens> {
    let log = FileLog::open(folder.path().join("log"), FileLogOptions::default()).expect("the log opens");
    Tokens::open(log).expect("the tokens open")
}

fn admin() -> Actor {
    Actor { name: "root".to_owned(), tenant: None }
}

fn tenant(name: &str) -> Tenant {
    Tenant::new(name).expect("a tenant")
}

fn new(name: &str, of: Option<&str>, privilege: Ring) -> NewToken {
    NewToken { name: name.to_owned(), tenant: of.map(tenant), privilege, rights: BTreeSet::new(), expires_at_ms: None }
}

#[tokio::test]
async fn a_token_is_valid_from_its_making_to_its_end() {
    let folder = TempDir::new().expect("a folder");
    let tokens = open(&folder);
    let (info, secret) = tokens.create(&admin(), new("ci", Some("acme"), Ring::User)).await.expect("makes");
    assert_eq!(secret.len(), PREFIX.len() + 64);
    assert_eq!(tokens.verify(&secret, 0), Some(info.clone()));
    assert_eq!((info.created_by.as_str(), info.is_admin()), ("root", false));
    for wrong in ["", "noetl_", &secret[1..], &format!("{secret}0"), &secret.to_uppercase()] {
        assert_eq!(tokens.verify(wrong, 0), None, "{wrong:?}");
    }
    drop(tokens);
    let tokens = open(&folder);
    assert_eq!(tokens.list(), std::slice::from_ref(&info));
    tokens.revoke(&admin(), &info.id).await.expect("revokes");
    tokens.revoke(&admin(), &info.id).await.expect("twice is no error");
    assert_eq!((tokens.verify(&secret, 0), tokens.list()), (None, Vec::new()));
    drop(tokens);
    assert_eq!(open(&folder).verify(&secret, 0), None);
    assert!(matches!(open(&folder).revoke(&admin(), "tok_none").await, Err(TokenError::NotFound(_))));
}

#[tokio::test]
async fn a_right_is_there_after_a_restart_and_a_token_from_before_there_were_any_has_none() {
    let folder = TempDir::new().expect("a folder");
    let tokens = open(&folder);
    let reveals = NewToken { rights: BTreeSet::from([Right::CredentialReveal]), ..new("vault", None, Ring::User) };
    let (_, secret) = tokens.create(&admin(), reveals).await.expect("makes");
    drop(tokens);
    let rights = open(&folder).verify(&secret, 0).expect("valid").rights;
    assert_eq!(rights.into_iter().map(Right::name).collect::<Vec<_>>(), ["credential:reveal"]);
    let old = r#"{"type":"token_created","id":"tok_1","name":"ci","tenant":null,"privilege":"user","expires_at_ms":null,
                  "secret_sha256":"sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881","by":"root"}"#;
    let old: TokenEvent = serde_json::from_str(old).expect("is still read");
    assert!(matches!(old.what, What::TokenCreated { rights, .. } if rights.is_empty()));
}

#[tokio::test]
async fn a_token_ends_at_its_time() {
    let folder = TempDir::new().expect("a folder");
    let tokens = open(&folder);
    let mut short = new("short", None, Ring::User);
    short.expires_at_ms = Some(1_000);
    let (_, secret) = tokens.create(&admin(), short).await.expect("makes");
    assert!(tokens.verify(&secret, 999).is_some());
    assert!(tokens.verify(&secret, 1_000).is_none());
}

#[tokio::test]
async fn the_secret_is_not_on_the_disk() {
    let folder = TempDir::new().expect("a folder");
    let tokens = open(&folder);
    let (_, secret) = tokens.create(&admin(), new("ci", None, Ring::User)).await.expect("makes");
    drop(tokens);
    let mut read = 0;
    for file in std::fs::read_dir(folder.path().join("log")).expect("the log's folder").flatten() {
        let bytes = std::fs::read(file.path()).expect("reads");
        let needle = &secret.as_bytes()[PREFIX.len()..];
        assert!(!bytes.windows(needle.len()).any(|window| window == needle), "{:?}", file.path());
        let hash = Digest::of(secret.as_bytes()).hex();
        read += bytes.windows(64).filter(|window| *window == hash.as_bytes()).count();
    }
    assert_eq!(read, 1, "the hash is there, so this looked at the right bytes");
}

#[tokio::test]
async fn a_tenant_makes_and_ends_tokens_of_its_own_alone() {
    let folder = TempDir::new().expect("a folder");
    let tokens = open(&folder);
    let acme = Actor { name: "acme-ci".to_owned(), tenant: Some(tenant("acme")) };
    assert!(tokens.create(&acme, new("a", Some("acme"), Ring::Tenant)).await.is_ok());
    for foreign in [None, Some("other")] {
        let refused = tokens.create(&acme, new("b", foreign, Ring::User)).await;
        assert!(matches!(refused, Err(TokenError::Forbidden { .. })));
    }
    let too_high = tokens.create(&admin(), new("c", Some("acme"), Ring::System)).await;
    assert!(matches!(too_high, Err(TokenError::PrivilegeTooHigh(_))));
    for bad in [String::new(), "a\nb".to_owned(), "x".repeat(101)] {
        assert!(matches!(tokens.create(&admin(), new(&bad, None, Ring::User)).await, Err(TokenError::BadName)));
    }
    let (other, secret) = tokens.create(&admin(), new("o", Some("other"), Ring::User)).await.expect("makes");
    assert!(matches!(tokens.revoke(&acme, &other.id).await, Err(TokenError::NotFound(_))));
    assert!(tokens.verify(&secret, 0).is_some());
}

#[tokio::test]
async fn the_first_start_makes_a_token_and_later_ones_reuse_it() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("admin.token");
    let tokens = open(&folder);
    let Admin::Created(info) = tokens.ensure_admin(&file).await.expect("makes") else {
        panic!("it is the first start")
    };
    assert!(info.is_admin());
    let secret = std::fs::read_to_string(&file).expect("the file").trim().to_owned();
    assert_eq!(tokens.verify(&secret, 0), Some(info.clone()));
    drop(tokens);
    let tokens = open(&folder);
    assert_eq!(tokens.ensure_admin(&file).await.expect("reuses"), Admin::Reused(info.clone()));

    // Without its file the token is lost: another is made, and the lost one ends.
    std::fs::remove_file(&file).expect("removes");
    let Admin::Created(second) = tokens.ensure_admin(&file).await.expect("makes") else { panic!("the file was gone") };
    assert_eq!(tokens.verify(&secret, 0), None);
    assert_eq!(tokens.list(), std::slice::from_ref(&second));

    tokens.revoke(&admin(), &second.id).await.expect("revokes");
    assert_eq!(tokens.ensure_admin(&file).await.expect("starts"), Admin::Revoked(second));
    std::fs::write(&file, "something else").expect("writes");
    assert!(matches!(tokens.ensure_admin(&file).await, Err(AdminError::NotAToken { .. })));
}

#[tokio::test]
async fn a_crash_between_file_and_log_locks_nobody_out() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("admin.token");
    let secret = random_secret().expect("randomness");
    std::fs::write(&file, format!("{secret}\n")).expect("writes");
    let tokens = open(&folder);
    assert!(matches!(tokens.ensure_admin(&file).await, Ok(Admin::Created(_))));
    assert!(tokens.verify(&secret, 0).is_some_and(|info| info.is_admin()));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("admin.token");
    let tokens = open(&folder);
    let rights = || std::fs::metadata(&file).expect("the file").permissions().mode() & 0o777;
    tokens.ensure_admin(&file).await.expect("makes");
    assert_eq!(rights(), 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("opens it up");
    tokens.ensure_admin(&file).await.expect("reuses");
    assert_eq!(rights(), 0o600);
}

#[test]
fn every_kind_of_event_is_known() {
    let created = What::TokenCreated {
        id: "tok_1".to_owned(),
        name: "ci".to_owned(),
        tenant: None,
        privilege: Ring::User,
        rights: BTreeSet::new(),
        expires_at_ms: None,
        secret_sha256: Digest::of(b"x"),
        bootstrap: false,
    };
    let kinds = [created, What::TokenRevoked { id: "tok_1".to_owned() }].map(|what| {
        let json = serde_json::to_value(TokenEvent { what, by: "root".to_owned() }).expect("json");
        json["type"].as_str().expect("a tag").to_owned()
    });
    assert_eq!(kinds.as_slice(), <TokenEvent as ledger::Event>::KINDS);
}
