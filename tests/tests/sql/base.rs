//! A database of a test's own, reached by the driver itself.

use std::time::Duration;

use noetl_contract::Tenant;
use noetl_store::payloads::Payloads;
use noetl_store::sql::postgres::{Owner, Pools, Server, TlsMode};
use noetl_store::sql::{Bounds, Done, Hidden, Parameters, Request, Room, Rows, SqlError};
use noetl_tests::Postgres;
use serde_json::Value;

pub struct Base {
    pub postgres: Postgres,
    pub pools: Pools,
    payloads: Payloads,
    _folder: tempfile::TempDir,
}

/// A script with what is usual.
pub fn script(text: &str) -> Request {
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

pub fn list(values: Value) -> Parameters {
    Parameters::Positional(values.as_array().expect("a list").clone())
}

/// The rows of a statement.
pub fn rows(done: &Done) -> Value {
    match &done.rows {
        Some(Rows::Json(text)) => serde_json::from_str(text).expect("JSON"),
        other => panic!("{other:?} is not inline"),
    }
}

impl Base {
    pub fn start() -> Self {
        Self::with_connections(4)
    }

    pub fn with_connections(most: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let payloads = Payloads::open(folder.path()).expect("a store");
        Self { postgres: Postgres::start(), pools: Pools::new(most), payloads, _folder: folder }
    }

    pub fn server(&self) -> Server {
        Server {
            host: self.postgres.host.clone(),
            user: self.postgres.user.clone(),
            password: self.postgres.password.clone(),
            database: self.postgres.database.clone(),
            tls: TlsMode::Prefer,
            root: None,
        }
    }

    pub async fn run(&self, request: Request) -> Result<Vec<Done>, SqlError> {
        self.run_as(&self.server(), self.postgres.port, 1, request).await
    }

    pub async fn run_as(
        &self,
        server: &Server,
        port: u16,
        revision: u64,
        request: Request,
    ) -> Result<Vec<Done>, SqlError> {
        self.run_by(&self.pools, server, (port, revision), request).await
    }

    /// By connections of another server.
    pub async fn run_elsewhere(&self, request: Request) -> Result<Vec<Done>, SqlError> {
        self.run_by(&Pools::new(1), &self.server(), (self.postgres.port, 1), request).await
    }

    async fn run_by(
        &self,
        pools: &Pools,
        server: &Server,
        (port, revision): (u16, u64),
        request: Request,
    ) -> Result<Vec<Done>, SqlError> {
        let owner = Owner { tenant: Tenant::main(), alias: "db".to_owned(), revision };
        let address = format!("127.0.0.1:{port}").parse().expect("an address");
        let addresses = Box::pin(async move { Ok(vec![address]) });
        pools.run(&owner, server, addresses, &request, &self.payloads).await
    }

    /// The rows of the last statement.
    pub async fn rows(&self, text: &str) -> Value {
        let done = self.run(script(text)).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        rows(done.last().expect("a statement"))
    }

    /// The only value of the only row.
    pub async fn value(&self, text: &str, parameters: Parameters) -> Value {
        let request = Request { parameters, objects: false, ..script(text) };
        let done = self.run(request).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        rows(done.last().expect("a statement"))[0][0].clone()
    }
}
