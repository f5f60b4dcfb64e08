//! Scripts of several statements, transactions, time, pools and failures, as the driver has them.

use std::time::Duration;

use noetl_store::sql::{Bounds, Request, Rows, SqlError, TABLE_TYPE};
use serde_json::json;

use crate::base::{Base, list, rows, script};

#[tokio::test]
async fn every_statement_that_gives_rows_has_them() {
    let base = Base::start();
    let text = "-- it's; a comment\nCREATE TABLE t (id serial, v text);
        /* first; */ INSERT INTO t (v) VALUES ('a;b'), ('c') RETURNING id;
        UPDATE t SET v = v || '!' WHERE id = 1;
        WITH gone AS (DELETE FROM t WHERE id = 2 RETURNING v) SELECT v FROM gone;
        -- last
        SELECT * FROM t; SHOW search_path; VALUES (1), (2); EXPLAIN SELECT 1; SELECT WHERE false;
        DO $$ BEGIN PERFORM 1; END $$;";
    let done = base.run(script(text)).await.expect("runs");
    assert_eq!(done.len(), 10);
    assert_eq!((done[0].status.as_str(), done[0].affected, done[0].rows.is_none()), ("CREATE TABLE", None, true));
    assert_eq!((done[1].affected, rows(&done[1])), (Some(2), json!([{"id": 1}, {"id": 2}])));
    assert_eq!((done[2].status.as_str(), done[2].affected), ("UPDATE 1", Some(1)));
    assert_eq!(rows(&done[3]), json!([{"v": "c"}]));
    assert_eq!((rows(&done[4]), done[4].affected), (json!([{"id": 1, "v": "a;b!"}]), None));
    assert_eq!(done[4].columns.iter().map(|column| column.kind.as_str()).collect::<Vec<_>>(), ["int4", "text"]);
    assert_eq!((done[5].row_count, done[6].row_count), (1, 2));
    assert!(rows(&done[7])[0]["QUERY PLAN"].is_string());
    assert_eq!((done[8].row_count, done[8].rows.is_some(), done[9].rows.is_none()), (0, true, true));
}

#[tokio::test]
async fn a_script_is_one_transaction_unless_it_says_otherwise() {
    let base = Base::start();
    base.run(script("CREATE TABLE t (id int PRIMARY KEY)")).await.expect("made");
    let twice = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)";
    let failed = base.run(script(twice)).await.expect_err("twice");
    let SqlError::Sql(fault) = &failed else { panic!("{failed:?}") };
    assert_eq!((fault.statement, fault.sqlstate.as_str(), fault.constraint.as_deref()), (2, "23505", Some("t_pkey")));
    assert_eq!(base.rows("SELECT count(*) n FROM t").await, json!([{"n": 0}]));
    base.run(Request { transaction: false, ..script(twice) }).await.expect_err("twice");
    assert_eq!(base.rows("SELECT count(*) n FROM t").await, json!([{"n": 1}]));

    let own = "BEGIN; INSERT INTO t VALUES (2); COMMIT; SELECT count(*) n FROM t";
    assert_eq!(base.rows(own).await, json!([{"n": 2}]), "a script that has a transaction of its own");
    let open = base.run(script("BEGIN")).await.expect_err("left open");
    assert!(matches!(open, SqlError::Invalid(text) if text.contains("COMMIT")));
    base.run(script("VACUUM t")).await.expect("one statement is no transaction");

    base.run(script("CREATE TABLE d (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")).await.expect("made");
    let late = base.run(script("INSERT INTO d VALUES (1); INSERT INTO d VALUES (1)")).await.expect_err("at the commit");
    assert!(matches!(late, SqlError::Sql(fault) if fault.sqlstate == "23505" && fault.statement == 2));
    let wrong = base.run(script("SELECT 1;\nSELECT nothing FROM t")).await.expect_err("no column");
    assert!(matches!(wrong, SqlError::Sql(fault) if (fault.statement, fault.position) == (2, Some(8))));
}

#[tokio::test]
async fn a_list_of_values_belongs_to_the_whole_script() {
    let base = Base::start();
    let text = "create temp table t (id int, name text, n numeric); insert into t values ($1, $2, $3), ($4, $2, $3); \
                update t set name = $5 where id = $4; select id, name, n from t where n > $3::numeric - 1 order by id; \
                prepare q as select $1::int; execute q(9); select $3::numeric; select $5::text, $1::int";
    let request = Request { parameters: list(json!([1, "one", 2.5, 4, "four"])), ..script(text) };
    let done = base.run(request).await.expect("runs");
    assert_eq!(rows(&done[3]), json!([{"id": 1, "name": "one", "n": "2.5"}, {"id": 4, "name": "four", "n": "2.5"}]));
    assert_eq!(rows(&done[5]), json!([{"int4": 9}]), "which has a parameter of its own");
    assert_eq!(rows(&done[7]), json!([{"text": "four", "int4": 1}]));
    let request = Request { parameters: list(json!([1, "x"])), ..script("select $1::int; select 1, $2::int") };
    let refused = base.run(request).await.expect_err("no number").to_string();
    assert!(refused.contains("statement 2, parameter 2") || refused.contains("statement 2: "), "{refused}");
    let request = Request { parameters: list(json!([1])), ..script("select 1; select $2::int") };
    let refused = base.run(request).await.expect_err("not given").to_string();
    assert_eq!(refused, "statement 2 uses $2, and 1 parameters are given");
}

#[tokio::test]
async fn a_script_that_has_committed_is_not_said_to_have_done_nothing() {
    let base = Base::start();
    base.run(script("create table t (id int)")).await.expect("runs");
    let cut = "select pg_terminate_backend(pg_backend_pid())";
    let lost = base.run(script(&format!("insert into t values (1); commit; insert into t values (2); {cut}"))).await;
    assert!(matches!(lost, Err(SqlError::Lost(_))), "{lost:?}");
    let undone = base.run(script(&format!("insert into t values (3); {cut}; select 1"))).await;
    assert!(matches!(undone, Err(SqlError::Connect(_))), "{undone:?}");
    let late =
        Request { time: Duration::from_secs(2), ..script("insert into t values (4); commit; select pg_sleep(60)") };
    let lost = base.run(late).await;
    assert!(matches!(lost, Err(SqlError::Lost(_))), "{lost:?}");
    assert_eq!(base.rows("select id from t order by id").await, json!([{"id": 1}, {"id": 2}, {"id": 4}]));
}

/// Statements that run now, by what they say.
async fn running(base: &Base, mark: &str) -> u64 {
    let text = format!(
        "SELECT count(*) n FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{mark}%' \
         AND pid <> pg_backend_pid()"
    );
    base.rows(&text).await[0]["n"].as_u64().expect("a number")
}

#[tokio::test]
async fn what_takes_too_long_is_stopped_in_the_server() {
    let base = Base::start();
    let slow = Request { time: Duration::from_millis(300), ..script("SELECT pg_sleep(3600), 'by its time'") };
    assert_eq!(base.run(slow).await.map(drop), Err(SqlError::Timeout));
    while running(&base, "by its time").await > 0 {}

    // One that is given up: it is stopped from outside.
    let slow = script("SELECT pg_sleep(3600), 'given up'");
    let watched = async { while running(&base, "given up").await == 0 {} };
    tokio::select! {
        ended = base.run(slow) => panic!("it ended: {ended:?}"),
        () = watched => {}
    }
    while running(&base, "given up").await > 0 {}

    // A script that lifts its own limit does not get away with it.
    let sly = "SET statement_timeout TO 0; SELECT pg_sleep(3600), 'sly one'";
    let sly = Request { time: Duration::from_millis(300), ..script(sly) };
    assert_eq!(base.run(sly).await.map(drop), Err(SqlError::Timeout));
    while running(&base, "sly one").await > 0 {}
}

#[tokio::test]
async fn nothing_of_a_script_is_left_on_its_connection() {
    let base = Base::with_connections(1);
    base.run(script("CREATE SCHEMA other; CREATE TABLE other.t (v int)")).await.expect("made");
    let first = base.rows("SELECT pg_backend_pid() pid").await;
    let dirty = "SET search_path TO other; SET work_mem TO '7MB'; CREATE TEMP TABLE mine (v int); \
         SELECT pg_advisory_lock(7); PREPARE p AS SELECT 1; LISTEN l; SELECT pg_backend_pid() pid";
    assert_eq!(base.rows(dirty).await, first, "the connection is used again");
    assert_eq!(base.rows("SHOW search_path").await, json!([{"search_path": "\"$user\", public"}]));
    assert_eq!(base.rows("SHOW work_mem").await, json!([{"work_mem": "4MB"}]));
    for gone in ["SELECT * FROM mine", "EXECUTE p"] {
        assert!(matches!(base.run(script(gone)).await, Err(SqlError::Sql(_))), "{gone}");
    }
    assert_eq!(base.rows("SELECT count(*) n FROM pg_locks WHERE locktype = 'advisory'").await, json!([{"n": 0}]));
    let schema = Request { schema: Some("other".to_owned()), ..script("SELECT count(*) n FROM t") };
    assert_eq!(rows(&base.run(schema).await.expect("found")[0]), json!([{"n": 0}]));
    assert_eq!(base.rows("SHOW search_path").await, json!([{"search_path": "\"$user\", public"}]));
    assert_eq!(base.rows("SELECT pg_backend_pid() pid").await, first);
}

#[tokio::test]
async fn a_connection_that_died_is_replaced_unseen() {
    let base = Base::with_connections(2);
    let first = base.rows("SELECT pg_backend_pid() pid").await[0]["pid"].clone();
    let kill = format!("SELECT pg_terminate_backend({first})");
    base.run_elsewhere(script(&kill)).await.expect("killed");
    let second = base.rows("SELECT pg_backend_pid() pid").await[0]["pid"].clone();
    assert_ne!(first, second);
}

#[tokio::test]
async fn who_cannot_connect_is_told_apart() {
    let base = Base::start();
    let mut server = base.server();
    server.password = "wrong".to_owned();
    let refused = base.run_as(&server, base.postgres.port, 1, script("SELECT 1")).await.expect_err("a wrong password");
    assert!(matches!(&refused, SqlError::Refused(text) if !text.contains("wrong")), "{refused:?}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = listener.local_addr().expect("an address").port();
    drop(listener);
    let refused = base.run_as(&base.server(), nobody, 2, script("SELECT 1")).await.expect_err("nobody is there");
    assert!(matches!(refused, SqlError::Connect(_)), "{refused:?}");
    let copy = base.run(script("COPY (SELECT 1) TO STDOUT")).await.expect_err("no rows");
    assert!(matches!(copy, SqlError::Invalid(_)), "{copy:?}");
    base.run(script("CREATE TABLE t (v int)")).await.expect("the server is well");
    let copy = base.run(script("COPY t FROM STDIN")).await.expect_err("no data");
    assert!(matches!(copy, SqlError::Invalid(_)), "{copy:?}");
}

#[tokio::test]
async fn many_rows_become_a_table() {
    let base = Base::start();
    let text = "SELECT i, i::numeric / 3 AS third, 'row ' || i AS name, CASE WHEN i % 2 = 0 THEN i::float8 END AS half,
        i % 2 = 0 AS even, ARRAY[i, NULL] AS list FROM generate_series(1, 200000) i";
    let done =
        base.run(Request { bounds: Bounds { inline: 64 << 10, most: 1 << 30 }, ..script(text) }).await.expect("runs");
    let Some(Rows::Table(table)) = &done[0].rows else { panic!("{:?}", done[0].rows) };
    assert_eq!((done[0].row_count, TABLE_TYPE), (200_000, "application/vnd.apache.arrow.stream"));
    let bytes = table.read_range(0, table.size()).await.expect("readable");
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).expect("a stream");
    assert_eq!(reader.schema().field(1).metadata()["type"], "numeric");
    assert_eq!(reader.map(|batch| batch.expect("whole").num_rows()).sum::<usize>(), 200_000);
    let small = Request { bounds: Bounds { inline: 1024, most: 4096 }, ..script(text) };
    assert!(matches!(base.run(small).await, Err(SqlError::TooLarge(_))));
    assert_eq!(base.rows("SELECT 1 one").await, json!([{"one": 1}]));
}
