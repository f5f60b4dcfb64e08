//! A server that may reach this machine, with a database if one is wanted.

use noetl_tests::{Postgres, Server};
use serde_json::{Value, json};

pub struct Scene {
    server: Server,
}

/// Where a step goes on.
pub fn arcs(step: &str) -> Value {
    json!({"arcs": [{"step": step}]})
}

impl Scene {
    pub async fn start() -> Self {
        let server = Server::start_with(&[("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")]);
        let nobody = server.nobody();
        while nobody.get("/ready").await.status != 200 {}
        Self { server }
    }

    /// With a database, which the credential `pg` is for.
    pub async fn with_database() -> (Self, Postgres) {
        let (scene, postgres) = (Self::start().await, Postgres::start());
        let credential = json!({"name": "pg", "type": "postgres", "data": {
            "host": postgres.host, "port": postgres.port.to_string(), "user": postgres.user,
            "password": postgres.password, "database": postgres.database,
        }});
        scene.server.admin().post("/api/credentials", credential).await.is(201);
        (scene, postgres)
    }

    /// Runs a workflow to its end; JSON is YAML.
    pub async fn run(&self, path: &str, workflow: Value, payload: Value) -> Value {
        let name = path.rsplit('/').next().unwrap_or(path);
        let document = json!({
            "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
            "workflow": workflow,
        });
        let api = self.server.admin();
        api.post("/api/catalog/register", json!({"content": document.to_string()})).await.is(201);
        api.post("/api/execute?wait=120", json!({"path": path, "payload": payload})).await.is(200).json()
    }

    pub async fn completes(&self, path: &str, workflow: Value) {
        let ended = self.run(path, workflow, json!({})).await;
        assert_eq!(ended["status"], "completed", "{ended}");
    }
}
