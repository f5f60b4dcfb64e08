//! `sslmode` of a credential, against servers that encrypt, that do not, and that are somebody else's.

use noetl_tests::{Api, Postgres, Server};
use serde_json::{Value, json};

const ASK: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

/// A certificate for a host that vouches for itself, and its key.
fn certificate(host: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![host.to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// A server that may reach this machine.
async fn server() -> Server {
    let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
    let nobody = server.nobody();
    while nobody.get("/ready").await.status != 200 {}
    server
}

/// Whether the database says that the connection is encrypted, or the failure.
async fn ask(api: &Api, name: &str, postgres: &Postgres, more: Value) -> Result<bool, (String, String)> {
    let mut data = json!({
        "host": postgres.host, "port": postgres.port, "user": postgres.user, "password": postgres.password,
        "database": postgres.database,
    });
    data.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
    api.post("/api/credentials", json!({"name": name, "type": "postgres", "data": data})).await.is(201);
    let path = format!("encryption/{name}");
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
        "workflow": [{"step": "start", "tool": {"kind": "postgres", "auth": name, "query": ASK}}],
    });
    api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
    let ended = api.post("/api/execute?wait=120", json!({"path": path})).await.is(200).json();
    if ended["status"] == "completed" {
        return Ok(ended["output"]["rows"][0]["ssl"].as_bool().expect("the database's word"));
    }
    let word = |name: &str| ended["error"][name].as_str().unwrap_or_default().to_owned();
    Err((word("code"), word("message")))
}

#[tokio::test]
async fn a_connection_is_as_encrypted_and_as_verified_as_its_credential_says() {
    let (own, key) = certificate("127.0.0.1");
    let (other, _) = certificate("127.0.0.1");
    let (server, postgres) = (server().await, Postgres::start_encrypted(&own, &key));
    let api = server.admin();
    for (name, more, encrypted) in [
        ("disable", json!({"sslmode": "disable"}), false),
        ("usual", json!({}), true),
        ("prefer", json!({"sslmode": "prefer"}), true),
        ("require", json!({"sslmode": "require"}), true),
        ("known", json!({"sslmode": "verify-full", "sslrootcert": own}), true),
        ("known-ca", json!({"sslmode": "verify-ca", "sslrootcert": own}), true),
    ] {
        assert_eq!(ask(&api, name, &postgres, more).await, Ok(encrypted), "{name}");
    }
    for (name, more) in [
        // The machine knows no authority that vouches for it.
        ("unknown", json!({"sslmode": "verify-full"})),
        ("unknown-ca", json!({"sslmode": "verify-ca"})),
        ("somebody-else", json!({"sslmode": "verify-full", "sslrootcert": other})),
        ("require-somebody-else", json!({"sslmode": "require", "sslrootcert": other})),
        // It is not for this name.
        ("other-name", json!({"sslmode": "verify-full", "sslrootcert": own, "host": "localhost"})),
    ] {
        let (code, message) = ask(&api, name, &postgres, more).await.expect_err(name);
        assert!(code == "connect" && message.contains("encrypting failed"), "{name}: {code}: {message}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_encrypt_gets_no_password_of_who_wants_it() {
    let (own, _) = certificate("127.0.0.1");
    let (server, postgres) = (server().await, Postgres::start());
    let api = server.admin();
    assert_eq!(ask(&api, "prefer", &postgres, json!({"sslmode": "prefer"})).await, Ok(false));
    for (name, more) in [
        ("require", json!({"sslmode": "require"})),
        ("verify", json!({"sslmode": "verify-full"})),
        ("prefer-known", json!({"sslmode": "prefer", "sslrootcert": own})),
    ] {
        let (code, message) = ask(&api, name, &postgres, more).await.expect_err(name);
        assert!(code == "connect" && message.contains("does not encrypt"), "{name}: {code}: {message}");
    }
}
