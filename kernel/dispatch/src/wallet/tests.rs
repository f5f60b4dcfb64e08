//! The wallet with a real vault and an issuer of tokens that answers from here.

use futures::StreamExt as _;
use futures::future::BoxFuture;
use noetl_host::caps::http_client::{OutboundError, OutboundRequest, OutboundResponse};
use noetl_store::wallet::keys::KeySource;
use noetl_store::wallet::kinds;
use noetl_store::wallet::{Binding, Retention, Way};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// Answers each request with the next of a list, and writes them down.
#[derive(Default)]
struct Issuer {
    asked: Mutex<Vec<String>>,
    answers: Mutex<Vec<(u16, Value)>>,
}

impl Outbound for Issuer {
    fn send(&self, mut request: OutboundRequest) -> BoxFuture<'_, Result<OutboundResponse, OutboundError>> {
        Box::pin(async move {
            let mut text = format!("{} {}\n", request.method, request.url);
            for (name, value) in &request.headers {
                text.push_str(&format!("{name}: {value}\n"));
            }
            if let Some((_, body)) = &mut request.body {
                while let Some(piece) = body.next().await {
                    text.push_str(&String::from_utf8_lossy(&piece.expect("whole")));
                }
            }
            self.asked.lock().push(text);
            tokio::task::yield_now().await;
            let mut answers = self.answers.lock();
            let (status, body) = if answers.is_empty() { (500, json!({})) } else { answers.remove(0) };
            let bytes = bytes::Bytes::from(body.to_string());
            Ok(OutboundResponse { status, headers: Vec::new(), body: futures::stream::iter([Ok(bytes)]).boxed() })
        })
    }
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Learns for Heard {
    fn learn(&self, _tenant: &Tenant, secret: Secret<'_>) {
        self.0.lock().push(secret.value.to_owned());
    }

    fn retire(&self, _tenant: &Tenant, _alias: &str) {}
}

struct Place {
    _folder: tempfile::TempDir,
    issuer: Arc<Issuer>,
    heard: Arc<Heard>,
    keeper: Keeper,
}

async fn place(answers: &[(u16, Value)]) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let source = KeySource::File(folder.path().join("wallet.key"));
    let vault = Vault::open(&folder.path().join("wallet.sqlite"), source, Retention::default()).await.expect("opens");
    let issuer = Arc::new(Issuer { answers: Mutex::new(answers.to_vec()), ..Issuer::default() });
    let heard = Arc::new(Heard::default());
    let keeper = Keeper::new(vault, issuer.clone(), heard.clone());
    Place { _folder: folder, issuer, heard, keeper }
}

impl Place {
    async fn put(&self, kind: &str, data: Value) {
        let kind = kinds::kind(kind).expect("a kind");
        let new = NewRecord {
            tenant: Tenant::main(),
            alias: "api".to_owned(),
            kind,
            fields: kind.check(data.as_object().expect("an object")).expect("valid"),
            hosts: Some(vec![Binding::new("login.example.com").expect("a binding")]),
            tags: Vec::new(),
            description: String::new(),
        };
        let change = Change { by: "test".to_owned(), call: "r".to_owned() };
        self.keeper.put(new, change).await.expect("kept");
    }

    async fn put_client(&self, secret: &str, style: &str) {
        let data = json!({"token_url": "https://login.example.com/token", "client_id": "me", "client_secret": secret,
                          "scope": "read write", "auth_style": style});
        self.put("oauth2", data).await;
    }

    async fn open(&self) -> Result<Arc<Credential>, WalletError> {
        let of = |text: &str| text.to_owned();
        let using = Use {
            tenant: Tenant::main(),
            alias: of("api"),
            by: of("tools/http@0.1.0"),
            call: of("c"),
            target: of("login.example.com:443"),
        };
        self.keeper.open(&using).await
    }
}

#[tokio::test]
async fn what_is_opened_is_known_before_it_is_used() {
    let place = place(&[]).await;
    place.put("basic", json!({"user": "ada", "password": "hunter2"})).await;
    assert_eq!(*place.heard.0.lock(), ["hunter2"], "from when it is kept");
    assert_eq!(place.open().await.expect("opens").field("password"), Some("hunter2"));
    place.keeper.learn_all().await.expect("told");
    assert_eq!(*place.heard.0.lock(), ["hunter2"; 3], "and again, so that it is not the first to be forgotten");
}

#[tokio::test]
async fn a_token_is_fetched_once_and_the_clients_secret_stays_here() {
    let place = place(&[(200, json!({"access_token": "T1", "expires_in": 3600, "token_type": "bearer"}))]).await;
    place.put_client("s3cr&t", "body").await;
    let (one, two) = tokio::join!(place.open(), place.open());
    for opened in [one.expect("opens"), two.expect("opens")] {
        assert_eq!((opened.field("token"), opened.field("client_secret")), (Some("T1"), None));
        assert!(
            opened.may_go_to("login.example.com", 443, Way::Https)
                && !opened.may_go_to("evil.example.com", 443, Way::Https)
        );
    }
    let asked = place.issuer.asked.lock().clone();
    assert_eq!(asked.len(), 1, "two at once share one request: {asked:?}");
    assert!(
        asked[0].contains("grant_type=client_credentials&scope=read+write&client_id=me&client_secret=s3cr%26t"),
        "{asked:?}"
    );
    assert!(place.heard.0.lock().contains(&"T1".to_owned()) && place.heard.0.lock().contains(&"s3cr&t".to_owned()));
    place.heard.0.lock().clear();
    place.keeper.learn_all().await.expect("told");
    assert_eq!(*place.heard.0.lock(), ["T1", "s3cr&t"], "what was fetched is in the wallet for the next start");
}

#[tokio::test]
async fn a_token_is_renewed_when_it_has_ended_and_when_its_credential_has_changed() {
    let granted = |token: &str, seconds: Value| (200, json!({"access_token": token, "expires_in": seconds}));
    let place = place(&[granted("T1", json!(0)), granted("T2", json!("3600")), granted("T3", json!(3600))]).await;
    place.put_client("one", "basic").await;
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T1"));
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T2"), "the first had no life");
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T2"));
    place.put_client("two", "basic").await;
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T3"));
    let asked = place.issuer.asked.lock().clone();
    assert!(asked[0].contains("authorization: Basic bWU6b25l") && !asked[0].contains("client_secret"), "{asked:?}");
}

#[tokio::test]
async fn a_refusal_is_told_without_the_words_of_the_other_side() {
    let echo = json!({"error": "invalid_client", "error_description": "no such secret: hunter2"});
    let place = place(&[(401, echo), (400, json!({"error": "hunter2"})), (200, json!({"token": "hunter2"}))]).await;
    place.put_client("hunter2", "body").await;
    for wanted in ["invalid_client", "answered 400", "without an `access_token`"] {
        let refused = place.open().await.expect_err("no token").to_string();
        assert!(refused.contains(wanted) && !refused.contains("hunter2"), "{refused}");
    }
}

#[tokio::test]
async fn those_who_wait_for_a_request_share_its_failure_and_the_next_one_asks_again() {
    let answers = vec![(503, json!({})), (200, json!({"access_token": "T1", "expires_in": 3600}))];
    let issuer = Arc::new(Issuer { answers: Mutex::new(answers), ..Issuer::default() });
    let tokens = Tokens::new(issuer.clone());
    let fields = [("token_url", "https://login.example.com/token"), ("client_id", "me"), ("client_secret", "one")];
    let credential = Credential {
        alias: "api".to_owned(),
        kind: "oauth2".to_owned(),
        fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        hosts: Vec::new(),
        revision: 1,
    };
    let tenant = Tenant::main();
    // The second comes while the first waits for the issuer.
    let (one, two) = tokio::join!(tokens.token(&tenant, &credential), tokens.token(&tenant, &credential));
    for failed in [one, two] {
        assert_eq!(failed.map(drop), Err(TokenError::Unreachable("`token_url` answered 503".to_owned())));
    }
    assert_eq!(issuer.asked.lock().len(), 1, "one request for both");
    assert_eq!(tokens.token(&tenant, &credential).await.expect("a token").0.field("token"), Some("T1"));
}

#[tokio::test]
async fn what_would_fail_again_is_told_apart_from_what_may_not() {
    let place =
        place(&[(429, json!({})), (500, json!({})), (401, json!({"error": "invalid_client"})), (200, json!({}))]).await;
    place.put_client("one", "body").await;
    for again in [true, true, false, false] {
        let failed = place.open().await.expect_err("no token");
        assert_eq!(matches!(failed, WalletError::NoToken { .. }), again, "{failed}");
    }
}

#[tokio::test]
async fn a_token_that_was_refused_is_fetched_anew_once() {
    let granted = |token: &str| (200, json!({"access_token": token, "expires_in": 3600}));
    let place = place(&[granted("T1"), granted("T2"), granted("T3")]).await;
    place.put_client("one", "body").await;
    let first = place.open().await.expect("opens");
    let tenant = Tenant::main();
    // Two requests went out with it and both came back.
    assert!(place.keeper.is_fetched(&first));
    place.keeper.spent(&tenant, &first).await;
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T2"));
    // There is a newer one to try.
    place.keeper.spent(&tenant, &first).await;
    assert_eq!(place.open().await.expect("opens").field("token"), Some("T2"), "which is not given up");
    assert_eq!(place.issuer.asked.lock().len(), 2);
    let mut kept = Credential::clone(&first);
    kept.kind = "bearer".to_owned();
    assert!(!place.keeper.is_fetched(&kept), "a kept value stays what it is");
}

#[tokio::test]
async fn to_look_at_a_credential_fetches_nothing_and_shows_no_secret() {
    let place = place(&[]).await;
    place.put_client("one", "body").await;
    let of = |text: &str| text.to_owned();
    let using = Use { tenant: Tenant::main(), alias: of("api"), by: of("a"), call: of("c"), target: of("nowhere") };
    let seen = place.keeper.look(&using).await.expect("opens");
    assert_eq!(
        (seen.kind.as_str(), seen.field("client_id"), seen.field("client_secret")),
        ("oauth2", Some("me"), None)
    );
    assert!(place.issuer.asked.lock().is_empty());
}

#[tokio::test]
async fn an_unknown_alias_is_unknown() {
    let place = place(&[]).await;
    assert_eq!(place.open().await.map(drop), Err(WalletError::Unknown { alias: "api".to_owned() }));
}
