//! Which databases a plugin gets to: by credential, by host, by address, by name.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_contract::{PluginPath, Version};
use noetl_store::sql::{Bounds, Parameters, Rows};
use noetl_store::wallet::Binding;
use parking_lot::Mutex;

use super::*;

/// Has one credential, and remembers who asked.
struct OneCredential(Credential, Mutex<Vec<Use>>);

#[async_trait]
impl Wallet for OneCredential {
    async fn open(&self, using: &Use) -> Result<Arc<Credential>, WalletError> {
        self.1.lock().push(using.clone());
        if using.alias != self.0.alias {
            return Err(WalletError::Unknown { alias: using.alias.clone() });
        }
        Ok(Arc::new(self.0.clone()))
    }
}

fn wallet(host: &str, hosts: &[&str]) -> OneCredential {
    let fields = [("host", host), ("port", "1"), ("user", "u"), ("password", "hunter2-hunter2"), ("database", "d")];
    let fields: BTreeMap<_, _> = fields.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let hosts = hosts.iter().map(|host| Binding::new(*host).expect("a pattern")).collect();
    let credential = Credential { alias: "db".to_owned(), kind: "postgres".to_owned(), fields, hosts, revision: 1 };
    OneCredential(credential, Mutex::default())
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

fn script(text: &str) -> Request {
    Request {
        script: text.to_owned(),
        parameters: Parameters::None,
        schema: None,
        transaction: true,
        objects: true,
        time: Duration::from_secs(60),
        bounds: Bounds { inline: 1 << 20, most: 1 << 30 },
        hidden: Hidden::default(),
        room: Room::default(),
    }
}

fn seal() -> Seal {
    Seal::of(b"a key", "main")
}

struct Scene {
    folder: tempfile::TempDir,
    payloads: Payloads,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path().join("payloads")).expect("a store");
        Self { folder, payloads }
    }

    async fn postgres(&self, wallet: &OneCredential, alias: &str, private: bool) -> Problem {
        let databases = Databases::new(Addresses { private }, SqlOptions::default());
        let answered = databases.postgres(wallet, (&who(), seal()), alias, script("select 1"), &self.payloads).await;
        let Err(problem) = answered else { panic!("nobody is at port 1") };
        problem
    }
}

#[tokio::test]
async fn a_credential_goes_where_it_may_and_to_addresses_the_operator_permits() {
    let scene = Scene::new();
    let unknown = scene.postgres(&wallet("127.0.0.1", &["127.0.0.1"]), "other", true).await;
    assert!(matches!(&unknown, Problem::Credential(text) if text.contains("credential add other")), "{unknown:?}");
    let elsewhere = scene.postgres(&wallet("127.0.0.1", &["db.example.com", "127.0.0.1:2"]), "db", true).await;
    assert!(
        matches!(&elsewhere, Problem::Sql(SqlError::Denied(text)) if text.contains("127.0.0.1:1")),
        "{elsewhere:?}"
    );
    let private = scene.postgres(&wallet("127.0.0.1", &["127.0.0.1"]), "db", false).await;
    assert!(matches!(&private, Problem::Sql(SqlError::Denied(text)) if text.contains("not a public")), "{private:?}");
    let named = scene.postgres(&wallet("localhost", &["localhost"]), "db", false).await;
    assert!(matches!(named, Problem::Sql(SqlError::Denied(_))), "{named:?}");
    let nobody = scene.postgres(&wallet("127.0.0.1", &["127.0.0.1"]), "db", true).await;
    assert!(matches!(nobody, Problem::Sql(SqlError::Connect(_))), "{nobody:?}");
}

#[tokio::test]
async fn an_opened_credential_is_asked_for_by_name_and_told_to_nobody() {
    let scene = Scene::new();
    let wallet = wallet("127.0.0.1", &["*"]);
    let failed = scene.postgres(&wallet, "db", true).await;
    assert!(!format!("{failed:?}").contains("hunter2"));
    let asked = wallet.1.lock().pop().expect("it was opened");
    assert_eq!((asked.by.as_str(), asked.call.as_str()), ("tools/postgres@0.1.0", "call-1"));
}

#[test]
fn fields_that_make_no_server_are_told() {
    let mut credential = wallet("h", &[]).0;
    credential.kind = "bearer".to_owned();
    assert!(matches!(server(&credential), Err(SqlError::Invalid(text)) if text.contains("`bearer`")));
    credential.kind = "postgres".to_owned();
    credential.fields.insert("sslmode".to_owned(), "maybe".to_owned());
    assert!(matches!(server(&credential), Err(SqlError::Invalid(text)) if text.contains("`maybe`")));
    credential.fields.insert("sslmode".to_owned(), "verify-full".to_owned());
    let Ok((found, port)) = server(&credential) else { panic!("a server") };
    assert_eq!((found.tls, port), (TlsMode::Verify, 1));
    credential.fields =
        [("db_host", "h"), ("db_user", "u")].map(|(name, text)| (name.to_owned(), text.to_owned())).into();
    let Ok((found, port)) = server(&credential) else { panic!("a server") };
    assert_eq!((found.database.as_str(), port), ("u", USUAL_PORT));
    credential.fields.remove("db_host");
    assert!(server(&credential).is_err());
}

#[tokio::test]
async fn files_are_there_where_the_operator_has_set_a_folder_aside() {
    let scene = Scene::new();
    let none = Databases::new(Addresses::default(), SqlOptions::default());
    let refused = none.file((&who(), seal()), "mine", script("select 1"), &scene.payloads).await.err();
    assert!(matches!(refused, Some(Problem::Sql(SqlError::Denied(text))) if text.contains("sql.folder")));
    let folder = Some(scene.folder.path().join("databases"));
    let some = Databases::new(Addresses::default(), SqlOptions { folder, ..SqlOptions::default() });
    some.file((&who(), seal()), "mine", script("create table t (a); insert into t values (7)"), &scene.payloads)
        .await
        .expect("runs");
    let done = some.file((&who(), seal()), "mine", script("select a from t"), &scene.payloads).await.expect("runs");
    assert!(matches!(&done[0].rows, Some(Rows::Json(text)) if text == r#"[{"a":7}]"#));
    assert!(scene.folder.path().join("databases/main/mine.sqlite").is_file());
    let placeholder = seal().write("db", "password");
    let kept = script(&format!("insert into t values ('{placeholder}')"));
    let refused = some.file((&who(), seal()), "mine", kept, &scene.payloads).await.err();
    assert!(
        matches!(refused, Some(Problem::Sql(SqlError::Denied(text))) if text.contains("`db`") && text.contains("sqlite:mine"))
    );
    let done = none.memory(&who(), script("select 1 a"), &scene.payloads).await.expect("runs");
    assert_eq!(done[0].row_count, 1);
}

#[tokio::test]
async fn a_script_waits_for_its_turn_no_longer_than_it_has() {
    let scene = Scene::new();
    let mut databases = Databases::new(Addresses::default(), SqlOptions::default());
    databases.local = Budget::new(0, 0, 1);
    let _held = databases.local.reserve(&Tenant::main(), 0, 1, false).await;
    let short = Request { time: Duration::from_millis(20), ..script("select 1") };
    let late = databases.memory(&who(), short, &scene.payloads).await.err();
    assert_eq!(late, Some(Problem::Sql(SqlError::Timeout)));
}

#[tokio::test]
async fn a_secret_of_the_tenant_is_in_no_row_and_in_no_name() {
    let scene = Scene::new();
    noetl_scrub::known::learn_for("rows", "hidden-in-rows");
    let databases = Databases::new(Addresses::default(), SqlOptions::default());
    let text = "select 'a hidden-in-rows' as \"hidden-in-rows\", cast('hidden-in-rows' as blob) as b";
    let mut theirs = who();
    theirs.tenant = Tenant::new("rows").expect("valid");
    let done = databases.memory(&theirs, script(text), &scene.payloads).await.expect("runs");
    assert_eq!(done[0].columns[0].name, "[REDACTED]");
    assert!(
        matches!(&done[0].rows, Some(Rows::Json(text)) if text == r#"[{"[REDACTED]":"a [REDACTED]","b":"W1JFREFDVEVEXQ=="}]"#)
    );
    let done = databases.memory(&who(), script(text), &scene.payloads).await.expect("runs");
    assert!(matches!(&done[0].rows, Some(Rows::Json(text)) if text.contains("a hidden-in-rows")));
}
