//! What is written in the place of a placeholder, and where nothing is.

use async_trait::async_trait;
use noetl_contract::{PluginPath, Tenant, Version};
use noetl_store::wallet::{Binding, Use};
use serde_json::json;

use super::*;

const VALUE: &str = "it's \"quoted\"";

/// One credential `db`, for one server.
struct One(&'static str);

/// What that server is entered with.
struct Own(&'static str);

#[async_trait]
impl Wallet for Own {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        let mut credential = Credential::clone(&*One(self.0).open(using).await?);
        credential.kind = "postgres".to_owned();
        Ok(Arc::new(credential))
    }
}

#[async_trait]
impl Wallet for One {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        if using.alias != "db" {
            return Err(WalletError::Unknown { alias: using.alias.clone() });
        }
        Ok(Arc::new(Credential {
            alias: using.alias.clone(),
            kind: "basic".to_owned(),
            fields: [("password".to_owned(), self.0.to_owned())].into(),
            hosts: vec![Binding::new("db.example.com:5432").expect("a binding")],
            revision: 1,
        }))
    }
}

fn who() -> Identity {
    Identity {
        tenant: Tenant::main(),
        path: PluginPath::new("tools/postgres").expect("a path"),
        version: Version::parse("0.1.0").expect("a version"),
        call: "call-1".to_owned(),
        idempotency_key: "key".to_owned(),
        attempt: 1,
    }
}

fn seal() -> Seal {
    Seal::of(b"a key", "main")
}

fn at(host: &str, port: u16) -> Place {
    Place::Server { host: host.to_owned(), port, way: Way::Own(5432) }
}

fn written() -> String {
    seal().write("db", "password")
}

fn denied<T: std::fmt::Debug>(result: Result<T, Refused>) -> String {
    match result {
        Err(Refused::Denied(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// Whoever may run a script there could have it told back, letter by letter.
#[tokio::test]
async fn what_a_server_is_entered_with_is_not_written_to_it() {
    let who = who();
    let to = || at("db.example.com", 5432);
    let text = denied(Filling::new(&Own("Sup3rPass99"), &who, seal(), to()).text(&written(), Write::Plain).await);
    assert!(text.contains("`password`") && text.contains("`db`"), "{text}");
    // A plain word is in data by chance.
    let filled = Filling::new(&Own("postgres"), &who, seal(), to()).text(&written(), Write::Plain).await;
    assert_eq!(filled, Ok(Some("postgres".to_owned())));
}

#[tokio::test]
async fn what_was_made_of_a_secret_goes_nowhere() {
    let (who, wallet) = (who(), One(VALUE));
    let mut filling = Filling::new(&wallet, &who, seal(), at("db.example.com", 5432));
    let made = format!("dTp{}Q==", seal().write("db", COMPUTED));
    let text = denied(filling.text(&made, Write::Plain).await);
    assert!(text.contains("encoding") && text.contains("`db`"), "{text}");
}

#[tokio::test]
async fn a_value_goes_to_the_server_it_is_bound_to_and_to_no_other_place() {
    let (who, wallet) = (who(), One(VALUE));
    let mut filling = Filling::new(&wallet, &who, seal(), at("db.example.com", 5432));
    let mut value = json!(["a", {"deep": [format!("x{}y", written())], written(): 1}]);
    filling.value(&mut value).await.expect("filled");
    assert_eq!(value, json!(["a", {"deep": [format!("x{VALUE}y")], VALUE: 1}]));
    for place in [at("db.example.com", 5433), at("other.example.com", 5432), Place::Here("sqlite:shop".to_owned())] {
        let name = match &place {
            Place::Server { host, port, .. } => format!("{host}:{port}"),
            Place::Here(name) => name.clone(),
        };
        let text = denied(Filling::new(&wallet, &who, seal(), place).text(&written(), Write::Plain).await);
        assert!(text.contains("`db`") && text.contains(&name), "{text}");
    }
    let unknown = seal().write("other", "password");
    assert!(denied(filling.text(&unknown, Write::Plain).await).contains("`other`"));
    let fieldless = seal().write("db", "token");
    assert!(denied(filling.text(&fieldless, Write::Plain).await).contains("`token`"));
}

#[tokio::test]
async fn what_is_not_sealed_is_a_text_like_any_other() {
    let (who, wallet) = (who(), One(VALUE));
    let mut filling = Filling::new(&wallet, &who, seal(), at("other.example.com", 1));
    for text in ["", "a text", "[REDACTED]", &Seal::of(b"b key", "main").write("db", "password")] {
        assert_eq!(filling.text(text, Write::Script).await, Ok(None), "{text}");
        assert_eq!(
            filling.bytes(Bytes::copy_from_slice(text.as_bytes())).await,
            Ok(Bytes::copy_from_slice(text.as_bytes()))
        );
    }
}

#[tokio::test]
async fn in_json_a_value_is_json_and_in_a_script_it_means_nothing_else() {
    let who = who();
    let mut filling = Filling::new(&One(VALUE), &who, seal(), at("db.example.com", 5432));
    let message = Bytes::from(json!({ "a": written() }).to_string());
    let filled: Value = serde_json::from_slice(&filling.bytes(message).await.expect("filled")).expect("JSON still");
    assert_eq!(filled, json!({ "a": VALUE }));
    assert_eq!(filling.bytes(written().into()).await, Ok(Bytes::from(VALUE)));
    let script = format!("INSERT INTO t VALUES ('{}')", written());
    assert!(denied(filling.text(&script, Write::Script).await).contains("parameter"));
    let mut filling = Filling::new(&One("postgres"), &who, seal(), at("db.example.com", 5432));
    let filled = filling.text(&script, Write::Script).await.expect("filled");
    assert_eq!(filled.as_deref(), Some("INSERT INTO t VALUES ('postgres')"));
    let binary = [b"\xff", written().as_bytes()].concat();
    assert!(denied(filling.bytes(binary.into()).await).contains("`db`"));
}
