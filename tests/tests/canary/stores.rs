//! A database and a NATS server that have the secrets as their data. Another server puts them there: the one that is
//! searched is never told any of them but by its wallet.

use noetl_tests::{Api, Nats, Postgres};
use serde_json::{Value, json};

use crate::planted::PLANTED;
use crate::ways;

pub struct Stores {
    postgres: Postgres,
    nats: Nats,
}

impl Stores {
    pub async fn start() -> Self {
        let (postgres, nats) = (Postgres::start(), Nats::start().await);
        nats.make_bucket("planted").await.expect("a bucket");
        nats.make_object_store("planted").await.expect("a bucket");
        Self { postgres, nats }
    }

    /// With the secrets in them.
    pub async fn planted() -> Self {
        let stores = Self::start().await;
        stores.fill().await;
        stores
    }

    /// The address of the NATS server, without a login.
    pub fn nats_url(&self) -> String {
        self.nats.url()
    }

    /// The password of the credential `pg`.
    pub fn password(&self) -> &str {
        &self.postgres.password
    }

    /// Where the database is, as a credential is bound to it.
    pub fn database(&self) -> String {
        format!("{}:{}", self.postgres.host, self.postgres.port)
    }

    async fn fill(&self) {
        let server = crate::server().await;
        let api = server.admin();
        self.register(&api, "pg", "nats", None).await;
        let table = "CREATE TABLE IF NOT EXISTS planted (alias text PRIMARY KEY, secret text UNIQUE); \
                     INSERT INTO planted VALUES ($1, $2)";
        let put = |operation: &str, named: &str| {
            json!({"kind": "nats", "auth": "nats", "operation": operation, "bucket": "planted", named: "{{ alias }}",
                   "data": "{{ secret }}"})
        };
        let next = |step: &str| json!({"arcs": [{"step": step}]});
        let workflow = json!([
            {"step": "start", "next": next("value"),
             "tool": {"kind": "postgres", "auth": "pg", "command": table, "params": ["{{ alias }}", "{{ secret }}"]}},
            {"step": "value", "tool": put("kv_put", "key"), "next": next("object")},
            {"step": "object", "tool": put("object_put", "name")},
        ]);
        let text = ways::playbook("canary/plant", workflow);
        api.post("/api/catalog/register", json!({"content": text})).await.is(201);
        for planted in &PLANTED {
            let payload = json!({"alias": planted.alias, "secret": planted.secret});
            let body = json!({"path": "canary/plant", "payload": payload});
            let done = api.post("/api/execute?wait=60", body).await.is(200).json();
            assert_eq!(done["status"], "completed", "{done}");
        }
    }

    /// Credentials for both that work, and for each secret two that do not: it is their password.
    pub async fn credentials(&self, api: &Api) {
        self.register(api, "pg", "nats", None).await;
        for planted in &PLANTED {
            let names = [format!("pg-{}", planted.alias), format!("nats-{}", planted.alias)];
            self.register(api, &names[0], &names[1], Some(planted.secret)).await;
        }
    }

    async fn register(&self, api: &Api, pg: &str, nats: &str, password: Option<&str>) {
        let database = json!({
            "host": self.postgres.host, "port": self.postgres.port.to_string(), "user": self.postgres.user,
            "password": password.unwrap_or(&self.postgres.password), "database": self.postgres.database,
        });
        let server = json!({
            "url": self.nats.url(), "user": self.nats.user, "password": password.unwrap_or(&self.nats.password),
        });
        let keep = async |name: &str, kind: &str, data: Value| {
            api.post("/api/credentials", json!({"name": name, "type": kind, "data": data})).await.is(201);
        };
        keep(pg, "postgres", database).await;
        keep(nats, "nats", server).await;
    }
}
