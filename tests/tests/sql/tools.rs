//! The tools `postgres`, `sqlite` and `transfer` in playbooks.

use noetl_tests::{Api, Postgres, Server};
use reqwest::Method;
use serde_json::{Value, json};

struct Scene {
    server: Server,
    postgres: Postgres,
    folder: tempfile::TempDir,
}

impl Scene {
    /// A server that may reach this machine, with a credential `pg` for a database of its own.
    async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let databases = folder.path().display().to_string();
        let server = Server::start_with(&[
            ("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true"),
            ("NOETL_SQL_FOLDER", databases.as_str()),
        ]);
        let scene = Self { server, postgres: Postgres::start(), folder };
        while scene.server.nobody().get("/ready").await.status != 200 {}
        scene.credential("pg", &scene.postgres.password, scene.postgres.port).await;
        scene
    }

    fn api(&self) -> Api {
        self.server.admin()
    }

    async fn credential(&self, name: &str, password: &str, port: u16) {
        let postgres = &self.postgres;
        let kept = self
            .api()
            .post(
                "/api/credentials",
                json!({"name": name, "type": "postgres", "data": {
                    "host": postgres.host, "port": port.to_string(), "user": postgres.user, "password": password,
                    "database": postgres.database,
                }}),
            )
            .await;
        assert!(matches!(kept.status, 200 | 201), "{}", kept.text());
    }

    /// Runs one step, or the steps of a list, as a playbook; answers with the execution.
    async fn run(&self, path: &str, tool: Value) -> Value {
        self.workflow(path, json!([{"step": "start", "tool": tool}])).await
    }

    async fn workflow(&self, path: &str, workflow: Value) -> Value {
        let name = path.rsplit('/').next().unwrap_or(path);
        let document = json!({
            "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": name, "path": path},
            "workflow": workflow,
        });
        let api = self.api();
        let request = api.request(Method::POST, "/api/catalog/register");
        api.send(request.header("content-type", "text/yaml").body(document.to_string())).await.is(201);
        api.post("/api/execute?wait=120", json!({"path": path})).await.is(200).json()
    }
}

/// The output of an execution that went well.
fn output(execution: &Value) -> &Value {
    assert_eq!(execution["status"], "completed", "{execution}");
    &execution["output"]
}

/// Code and message of one that did not.
fn failed(execution: &Value) -> (&str, &str) {
    assert_eq!(execution["status"], "failed", "{execution}");
    let error = &execution["error"];
    (error["code"].as_str().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn a_script_answers_with_every_statement_and_the_last_one_again() {
    let scene = Scene::start().await;
    let command = "CREATE TABLE t (id int, v jsonb);
        INSERT INTO t VALUES (1, '{\"a\": null}'), (2, NULL) RETURNING id;
        SELECT id, v FROM t ORDER BY id";
    let done = scene.run("sql/script", json!({"kind": "postgres", "auth": "pg", "command": command})).await;
    let output = output(&done);
    let rows = json!([{"id": 1, "v": {"a": null}}, {"id": 2, "v": null}]);
    assert_eq!((&output["rows"], &output["row_count"]), (&rows, &json!(2)));
    assert_eq!(output["columns"], json!(["id", "v"]));
    assert_eq!((&output["command_0"]["status"], &output["command_2"]["rows"]), (&json!("CREATE TABLE"), &rows));
    assert_eq!(output["command_1"]["rows"], json!([{"id": 1}, {"id": 2}]));
    assert_eq!(output["command_1"]["affected_rows"], 2);

    let named = json!({"kind": "postgres", "credential": "pg", "query": "SELECT id FROM t WHERE id = :id",
        "params": {"id": 2}, "as_objects": false});
    assert_eq!(self::output(&scene.run("sql/named", named).await)["rows"], json!([[2]]));
}

#[tokio::test]
async fn failures_say_what_and_where_and_what_helps() {
    let scene = Scene::start().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nobody = listener.local_addr().expect("an address").port();
    drop(listener);
    scene.credential("gone", "nobody-asks", nobody).await;
    scene.credential("wrong", "hunter2-hunter2", scene.postgres.port).await;
    let twice = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)";
    for (name, options, code, says) in [
        ("constraint", json!({"auth": "pg", "command": twice}), "constraint", "statement 3"),
        ("syntax", json!({"auth": "pg", "command": "SELEC 1"}), "sql_error", "SQLSTATE 42601"),
        ("slow", json!({"auth": "pg", "command": "SELECT pg_sleep(3600)", "timeout_ms": 300}), "timeout", "in time"),
        ("gone", json!({"auth": "gone", "command": "SELECT 1"}), "connect", "connection"),
        ("wrong", json!({"auth": "wrong", "command": "SELECT 1"}), "auth", "refused the credential"),
        ("nobody", json!({"auth": "nobody", "command": "SELECT 1"}), "auth", "credential add nobody"),
        ("missing", json!({"auth": "", "command": "SELECT 1"}), "invalid_input", "`auth` is missing"),
        ("inline", json!({"auth": "pg", "host": "h", "command": "SELECT 1"}), "invalid_input", "`host`"),
    ] {
        let mut tool = options;
        tool["kind"] = json!("postgres");
        let ended = scene.run(&format!("sql/{name}"), tool).await;
        let (found, message) = failed(&ended);
        assert!(found == code && message.contains(says), "{name}: {found}: {message}");
        assert!(!ended.to_string().contains("hunter2"), "{ended}");
    }
    assert!(!scene.server.said().contains("hunter2"));
}

#[tokio::test]
async fn rules_see_the_state_of_the_database() {
    let scene = Scene::start().await;
    let rules = json!([
        {"when": "{{ output.pg.sqlstate == '42P01' and not output.error.retryable }}",
         "then": {"do": "continue", "set": {"ctx.seen": "{{ output.pg.code }}"}}},
        {"else": {"then": {"do": "fail"}}},
    ]);
    let done = scene
        .workflow(
            "sql/rules",
            json!([
                {"step": "start",
                 "tool": {"kind": "postgres", "auth": "pg", "command": "SELECT * FROM nowhere", "spec": {"policy": {"rules": rules}}},
                 "next": {"arcs": [{"step": "end"}]}},
                {"step": "end", "tool": {"kind": "noop", "result": "{{ ctx.seen }}"}},
            ]),
        )
        .await;
    assert_eq!(output(&done), &json!("42P01"));
}

#[tokio::test]
async fn a_cursor_hands_out_rows_until_there_are_none() {
    let scene = Scene::start().await;
    let made = "CREATE TABLE queue (id int, state text DEFAULT 'new'); CREATE TABLE done (id int);
        INSERT INTO queue (id) SELECT * FROM generate_series(1, 7)";
    output(&scene.run("sql/queue", json!({"kind": "postgres", "auth": "pg", "command": made})).await);
    let claim = "WITH next AS (SELECT id FROM queue WHERE state = 'new' ORDER BY id FOR UPDATE SKIP LOCKED
            LIMIT {{ __frame_max_rows }})
        UPDATE queue q SET state = 'taken' FROM next WHERE q.id = next.id RETURNING q.id";
    let done = scene
        .workflow(
            "sql/cursor",
            json!([
                {"step": "start",
                 "loop": {"cursor": {"kind": "postgres", "auth": "pg", "claim": claim}, "iterator": "item",
                          "spec": {"mode": "cursor", "frame": {"max_rows": 3}}},
                 "tool": {"kind": "postgres", "auth": "pg", "command": "INSERT INTO done VALUES ({{ iter.item.id }})"},
                 "next": {"arcs": [{"step": "end"}]}},
                {"step": "end", "tool": {"kind": "postgres", "auth": "pg",
                    "query": "SELECT count(*) n, sum(id) s FROM done"}},
            ]),
        )
        .await;
    assert_eq!(output(&done)["rows"], json!([{"n": 7, "s": 28}]));
}

#[tokio::test]
async fn a_large_result_is_passed_on_by_reference() {
    let scene = Scene::start().await;
    let query = "SELECT i, repeat('x', 100) AS filling FROM generate_series(1, 200000) i";
    let done = scene.run("sql/large", json!({"kind": "postgres", "auth": "pg", "query": query})).await;
    let output = output(&done);
    assert_eq!((&output["row_count"], &output["columns"]), (&json!(200_000), &json!(["i", "filling"])));
    assert_eq!(output["_media_type"], "application/vnd.apache.arrow.stream");
    assert!(output["_ref"].is_string() && output["_bytes"].as_u64().is_some_and(|size| size > 20 << 20), "{output}");
    assert_eq!(output.get("rows"), None);
}

#[tokio::test]
async fn sqlite_is_in_memory_or_in_a_file_of_the_tenants_own() {
    let scene = Scene::start().await;
    let memory = json!({"kind": "sqlite", "command": "CREATE TABLE t (a); INSERT INTO t VALUES (?1), (?2); SELECT a FROM t",
        "params": [1, "x"]});
    assert_eq!(output(&scene.run("sql/memory", memory).await)["rows"], json!([{"a": 1}, {"a": "x"}]));
    let made =
        json!({"kind": "sqlite", "database": "notes", "command": "CREATE TABLE t (a); INSERT INTO t VALUES (7)"});
    assert_eq!(output(&scene.run("sql/made", made).await)["affected_rows"], 1);
    let read = json!({"kind": "sqlite", "database": "notes", "query": "SELECT a FROM t"});
    assert_eq!(output(&scene.run("sql/read", read).await)["rows"], json!([{"a": 7}]));
    assert!(scene.folder.path().join("main/notes.sqlite").is_file());
    for (name, options) in [
        ("outside", json!({"kind": "sqlite", "database": "../outside", "query": "SELECT 1"})),
        ("attach", json!({"kind": "sqlite", "command": "ATTACH '/tmp/outside.sqlite' AS o"})),
    ] {
        assert_eq!(failed(&scene.run(&format!("sql/{name}"), options).await).0, "denied");
    }
}

#[tokio::test]
async fn a_script_of_sqlite_ends_with_its_time_and_fills_neither_memory_nor_disk() {
    let scene = Scene::start().await;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
    let function = "instr(hex(zeroblob(262144)), hex(zeroblob(131072)) || i)";
    let filling = format!("{endless} SELECT hex(randomblob(100000)) FROM n");
    for (name, command, code, says) in [
        ("function", format!("{endless} SELECT sum({function}) FROM n"), "timeout", "in time"),
        ("table", format!("CREATE TABLE t AS {filling}"), "sql_error", "full"),
        ("temporary", format!("CREATE TEMP TABLE t AS {filling}"), "sql_error", "full"),
        ("value", "SELECT hex(zeroblob(600000))".to_owned(), "sql_error", "too big"),
    ] {
        let tool =
            json!({"kind": "sqlite", "command": command, "timeout_ms": if name == "function" { 300 } else { 60_000 }});
        let ended = scene.run(&format!("sql/bounded-{name}"), tool).await;
        let (found, message) = failed(&ended);
        assert!(found == code && message.contains(says), "{name}: {found}: {message}");
    }
    let after = json!({"kind": "sqlite", "query": "SELECT 1 AS a"});
    assert_eq!(output(&scene.run("sql/after", after).await)["rows"], json!([{"a": 1}]));
}

#[tokio::test]
async fn rows_are_moved_between_databases_altogether_or_not_at_all() {
    let scene = Scene::start().await;
    let source = "CREATE TABLE wide (id int PRIMARY KEY, \"Name\" text, tags jsonb, price numeric);
        INSERT INTO wide SELECT i, 'it''s ' || i, jsonb_build_object('n', jsonb_build_array(i, null)), i / 4.0
        FROM generate_series(1, 5000) AS i";
    output(&scene.run("sql/source", json!({"kind": "postgres", "auth": "pg", "command": source})).await);
    let copy =
        "CREATE TABLE copy (id INTEGER PRIMARY KEY, name, tags, price TEXT); INSERT INTO copy VALUES (-1, 'x', 0, 0)";
    output(&scene.run("sql/copy", json!({"kind": "sqlite", "database": "notes", "command": copy})).await);

    let out = json!({"kind": "transfer", "mode": "replace",
        "source": {"type": "postgres", "auth": "pg", "query": "SELECT * FROM wide ORDER BY id"},
        "target": {"type": "sqlite", "database": "notes", "table": "copy"}});
    let done = scene.run("sql/out", out).await;
    assert_eq!((&output(&done)["rows_transferred"], &output(&done)["transactions"]), (&json!(5000), &json!(1)));
    let look = "SELECT count(*) AS n, min(id) AS least, max(name) FILTER (WHERE id = 7) AS name,
        max(tags) FILTER (WHERE id = 7) AS tags, max(price) FILTER (WHERE id = 7) AS price FROM copy";
    let seen = scene.run("sql/seen", json!({"kind": "sqlite", "database": "notes", "query": look})).await;
    let row = &output(&seen)["rows"][0];
    assert_eq!((&row["n"], &row["least"], &row["name"]), (&json!(5000), &json!(1), &json!("it's 7")));
    assert_eq!(row["tags"], json!(r#"{"n":[7,null]}"#));
    assert!(row["price"].as_str().is_some_and(|price| price.starts_with("1.75")), "{row}");

    let back = |query: &str| {
        json!({"kind": "transfer", "mode": "upsert", "chunk_size": 100,
            "source": {"type": "sqlite", "database": "notes", "query": query},
            "target": {"type": "postgres", "auth": "pg", "table": "public.wide", "key": ["id"],
                "mapping": {"id": "id", "\"Name\"": "name", "tags": "tags", "price": "price"}}})
    };
    let again = back("SELECT id + 4900 AS id, 'new' AS name, tags, price FROM copy WHERE id <= 200 ORDER BY id");
    assert_eq!(output(&scene.run("sql/back", again).await)["rows_transferred"], 200);
    let counted = "SELECT count(*) AS n, count(*) FILTER (WHERE \"Name\" = 'new') AS new,
        count(*) FILTER (WHERE tags->'n'->>0 = '1') AS ones FROM wide";
    let count = json!({"kind": "postgres", "auth": "pg", "query": counted});
    let expected = json!([{"n": 5100, "new": 200, "ones": 2}]);
    assert_eq!(output(&scene.run("sql/count", count.clone()).await)["rows"], expected);

    let late =
        back("SELECT CASE id WHEN 4999 THEN NULL ELSE id + 9000 END AS id, 'late' AS name FROM copy ORDER BY id");
    let broken = scene.run("sql/late", late).await;
    let (code, message) = failed(&broken);
    assert!(code == "constraint" && message.contains("the target"), "{code}: {message}");
    assert_eq!(output(&scene.run("sql/kept", count).await)["rows"], expected, "nothing of it is there");

    let other = json!({"kind": "transfer", "source": {"type": "snowflake", "query": "SELECT 1"},
        "target": {"type": "postgres", "auth": "pg", "table": "wide"}});
    let (code, message) = ("unsupported_source", "`http`, `postgres` and `sqlite`");
    let refused = scene.run("sql/other", other).await;
    assert!(failed(&refused).0 == code && failed(&refused).1.contains(message), "{refused}");
}

#[tokio::test]
async fn a_name_of_the_keychain_stands_for_its_credential() {
    let scene = Scene::start().await;
    let query = |auth: Value| json!({"kind": "postgres", "auth": auth, "query": "SELECT 1 AS one"});
    let copy = json!({
        "kind": "transfer", "mode": "append",
        "source": {"type": "postgres", "auth": "mydb", "query": "SELECT 7 AS id"},
        "target": {"type": "postgres", "auth": {"credential": "mydb"}, "table": "copied"},
    });
    let made = json!({"kind": "postgres", "auth": "mydb", "command": "CREATE TABLE copied (id int)"});
    let claim = json!({"kind": "postgres", "auth": "mydb", "claim": "DELETE FROM copied RETURNING id"});
    let document = json!({
        "apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "keychain", "path": "sql/keychain"},
        "keychain": [{"name": "mydb", "credential": "pg"}], "workload": {"which": "mydb"},
        "workflow": [
            {"step": "start", "next": {"arcs": [{"step": "each"}]},
             "tool": [query(json!("mydb")), query(json!("{{ which }}")), query(json!({"credential": "mydb"})), made, copy]},
            {"step": "each", "loop": {"cursor": claim, "iterator": "row"},
             "tool": {"kind": "noop", "result": "{{ row.id }}"}},
        ],
    });
    let api = scene.api();
    let content = json!({"content": document.to_string()});
    let registered = api.post("/api/catalog/register", content).await.is(201).json();
    assert_eq!(registered["warnings"], json!([]), "the wallet has it");
    let ended = api.post("/api/execute?wait=120", json!({"path": "sql/keychain"})).await.is(200).json();
    assert_eq!(output(&ended)["results"], json!([7]), "{ended}");
}
