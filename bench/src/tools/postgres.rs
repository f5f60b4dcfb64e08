//! A query in a step beside the same query by a bare driver, whose pool has as many connections as the server's.
//!
//! A result of a thousand rows does not fit into an event: the step's becomes a payload, synced before it is acknowledged.

use anyhow::{Context, Result, ensure};
use noetl_tests::Postgres;
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};

use super::stand::{REPEATED, Stand};
use super::turns::{self, Bare};
use crate::rows::Rows;

/// The default of `sql.connections`.
const CONNECTIONS: u32 = 16;
const CREDENTIAL: &str = "bench_postgres";
const ONE: &str = "SELECT 1 AS n, 'Ada' AS name";
const THOUSAND: &str = "SELECT n, 'name ' || n AS name FROM generate_series(1, 1000) AS n";

pub async fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    let postgres = Postgres::start();
    stand.credential(&credential(&postgres)).await?;
    let pool = connect(&postgres).await.context("connect to the private Postgres")?;

    let queries = Queries { pool: pool.clone(), query: ONE, rows: 1 };
    let one = stand.step("postgres-1", &tool(ONE), "/rows", json!([{"n": 1, "name": "Ada"}])).await?;
    let row = turns::single(stand, &one, &queries).await?;
    rows.add("postgres step, SELECT of 1 row; baseline: bare sqlx", row);

    let many = stand.repeated("postgres-1", &tool(ONE)).await?;
    let row = turns::repeated(stand, &many, &queries, CONNECTIONS as usize).await?;
    let baseline = format!("baseline: bare sqlx, {CONNECTIONS} at a time");
    rows.add(format!("{REPEATED} postgres steps, SELECT of 1 row, a parallel loop; {baseline}"), row);

    let queries = Queries { pool, query: THOUSAND, rows: 1_000 };
    let thousand = stand.step("postgres-1000", &tool(THOUSAND), "/row_count", json!(1_000)).await?;
    let row = turns::single(stand, &thousand, &queries).await?;
    rows.add("postgres step, SELECT of 1,000 rows; baseline: bare sqlx", row);
    Ok(())
}

fn tool(query: &str) -> Value {
    json!({"kind": "postgres", "auth": CREDENTIAL, "query": query})
}

fn credential(postgres: &Postgres) -> Value {
    let Postgres { host, port, user, password, database, .. } = postgres;
    let data = json!({"host": host, "port": port.to_string(), "user": user, "password": password,
        "database": database, "sslmode": "disable"});
    json!({"name": CREDENTIAL, "type": "postgres", "data": data, "hosts": [format!("{host}:{port}")]})
}

async fn connect(postgres: &Postgres) -> sqlx::Result<PgPool> {
    let options = PgConnectOptions::new_without_pgpass()
        .host(&postgres.host)
        .port(postgres.port)
        .username(&postgres.user)
        .password(&postgres.password)
        .database(&postgres.database)
        .ssl_mode(PgSslMode::Disable);
    PgPoolOptions::new().max_connections(CONNECTIONS).connect_with(options).await
}

struct Queries {
    pool: PgPool,
    query: &'static str,
    rows: usize,
}

impl Bare for Queries {
    async fn turn(&self) -> Result<()> {
        let found: Vec<(i32, String)> = sqlx::query_as(self.query).fetch_all(&self.pool).await?;
        ensure!(found.len() == self.rows, "{} rows were found and not {}", found.len(), self.rows);
        Ok(())
    }
}
