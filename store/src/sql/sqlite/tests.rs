//! Scripts on SQLite, and what they cannot do.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::sql::{Hidden, Parameters, Room, Rows};

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

    fn place(&self, name: &str) -> Place {
        let databases = Folder::new(self.folder.path().join("databases"));
        databases.place(&Tenant::main(), name).expect("a name")
    }

    async fn run_with(&self, place: Place, script: &str, parameters: Parameters) -> Result<Vec<Done>, SqlError> {
        run(place, Request { parameters, ..request(script) }, self.payloads.clone(), ()).await
    }

    async fn run(&self, place: Place, script: &str) -> Result<Vec<Done>, SqlError> {
        self.run_with(place, script, Parameters::None).await
    }
}

fn request(script: &str) -> Request {
    Request {
        script: script.to_owned(),
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

fn rows(done: &Done) -> Value {
    match &done.rows {
        Some(Rows::Json(text)) => serde_json::from_str(text).expect("JSON"),
        other => panic!("{other:?} is not inline"),
    }
}

#[tokio::test]
async fn statements_answer_one_by_one_with_what_they_are() {
    let scene = Scene::new();
    let script = "-- it's a table; really\ncreate table t (id integer primary key, name text, data blob, x real);
        create trigger log after insert on t begin update t set x = 1.5 where id = new.id; select 1; end;
        insert into t (name, data) values ('a;b', x'00ff'), (null, null) returning id;
        select * from t; pragma table_info(t); explain select 1";
    let done = scene.run(Place::Memory, script).await.expect("runs");
    assert_eq!(done.len(), 6);
    assert_eq!((done[2].affected, rows(&done[2])), (Some(2), json!([{"id": 1}, {"id": 2}])));
    assert_eq!(
        rows(&done[3]),
        json!([{"id": 1, "name": "a;b", "data": "AP8=", "x": 1.5}, {"id": 2, "name": null, "data": null, "x": 1.5}])
    );
    assert_eq!((done[3].columns[0].kind.as_str(), done[3].row_count, done[3].affected), ("INTEGER", 2, None));
    assert_eq!(done[4].row_count, 4);
}

#[tokio::test]
async fn parameters_are_given_by_place_or_by_name() {
    let scene = Scene::new();
    let list = Parameters::Positional(vec![json!(1), json!([1, null]), json!(null), json!(true)]);
    let done = scene.run_with(Place::Memory, "select ?1 a, $2 b, ?3 c, ?4 d", list).await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"a": 1, "b": "[1,null]", "c": null, "d": 1}]));
    let fields = Parameters::Named(json!({"a": "x", "b": 2.5}).as_object().expect("an object").clone());
    let done = scene.run_with(Place::Memory, "select :a a, @b b, $a c, ':a' d", fields.clone()).await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"a": "x", "b": 2.5, "c": "x", "d": ":a"}]));
    let missing = scene.run_with(Place::Memory, "select :c", fields).await.expect_err("not given");
    assert!(matches!(missing, SqlError::Invalid(text) if text.contains("`:c`")));
}

#[tokio::test]
async fn places_are_counted_through_the_script() {
    let scene = Scene::new();
    let script =
        "create table t (id int, name text); insert into t values (?, ?), (?, ?); update t set name = ? where id = ?;
        select ?1 first, $6 last; select id, name from t where id > ? order by id";
    let values = || vec![json!(1), json!("one"), json!(2), json!("two"), json!("deux"), json!(2)];
    let all = Parameters::Positional(values().into_iter().chain([json!(0)]).collect());
    let done = scene.run_with(Place::Memory, script, all).await.expect("runs");
    assert_eq!(rows(&done[3]), json!([{"first": 1, "last": 2}]));
    assert_eq!(rows(&done[4]), json!([{"id": 1, "name": "one"}, {"id": 2, "name": "deux"}]));
    let short = scene.run_with(Place::Memory, script, Parameters::Positional(values())).await.expect_err("too few");
    assert!(matches!(&short, SqlError::Invalid(text) if text.contains("`?7`")), "{short}");
    let long = Parameters::Positional(vec![json!(1), json!(2), json!(3)]);
    let refused = scene.run_with(Place::Memory, "select ?; select ?, '?' -- ?", long).await.expect_err("too many");
    assert!(matches!(&refused, SqlError::Invalid(text) if text.contains("2 places")), "{refused}");
    let some = Parameters::Positional(vec![json!(1), json!(2), json!(3)]);
    let done = scene.run_with(Place::Memory, "select ?3 c", some).await.expect("which leaves some out");
    assert_eq!(rows(&done[0]), json!([{"c": 3}]));
    for (script, said) in [("select $1, ?2", "2 places"), ("select '?', \"$1\" -- ?1", "no place")] {
        let long = Parameters::Positional(vec![json!(1), json!(2), json!(3)]);
        let refused = scene.run_with(Place::Memory, script, long).await.expect_err("too many");
        assert!(matches!(&refused, SqlError::Invalid(text) if text.contains(said)), "{refused}");
    }
}

#[tokio::test]
async fn a_script_is_done_as_a_whole_or_not_at_all() {
    let scene = Scene::new();
    let place = || scene.place("orders");
    scene.run(place(), "create table t (id integer primary key)").await.expect("runs");
    let failed = scene.run(place(), "insert into t values (1); insert into t values (1)").await.expect_err("twice");
    let SqlError::Sql(fault) = failed else { panic!("{failed:?}") };
    assert_eq!((fault.statement, fault.sqlstate.as_str()), (2, "23505"));
    let done = scene.run(place(), "select count(*) n from t").await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"n": 0}]), "the first is undone too");
    let each = Request { transaction: false, ..request("insert into t values (1); insert into t values (1)") };
    run(place(), each, scene.payloads.clone(), ()).await.expect_err("twice");
    let done = scene.run(place(), "select count(*) n from t").await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"n": 1}]));
}

#[tokio::test]
async fn nothing_outside_of_the_database_is_reached() {
    let scene = Scene::new();
    let outside = scene.folder.path().join("outside.sqlite");
    for script in [
        format!("attach '{}' as o", outside.display()),
        format!("vacuum into '{}'", outside.display()),
        "attach 'file:outside.sqlite?mode=rwc' as o".to_owned(),
        "select load_extension('libm.so')".to_owned(),
        "select fts3_tokenizer('simple')".to_owned(),
        "attach ':memory:' as m".to_owned(),
        "vacuum".to_owned(),
        "create virtual table f using fts3(a)".to_owned(),
        "pragma database_list".to_owned(),
        "pragma journal_mode = off".to_owned(),
        "pragma max_page_count = 1000000000".to_owned(),
        "pragma temp_store_directory = '/tmp'".to_owned(),
        "pragma writable_schema = on".to_owned(),
    ] {
        let refused = scene.run(scene.place("mine"), &script).await.expect_err("refused");
        assert!(matches!(refused, SqlError::Denied(_)), "{script}: {refused:?}");
    }
    assert!(!outside.exists());
    for name in ["", "../other/x", "/etc/passwd", ".hidden", "a/b", "a\0b", &"x".repeat(65)] {
        let databases = Folder::new(scene.folder.path().join("databases"));
        assert!(matches!(databases.place(&Tenant::main(), name), Err(SqlError::Denied(_))), "{name}");
    }
    scene.run(scene.place("mine"), "create table t (a)").await.expect("its own database is its own");
    let big = scene.run(Place::Memory, "select zeroblob(500000000)").await.expect_err("too big");
    assert!(matches!(big, SqlError::Sql(fault) if fault.sqlstate == "54000"));
}

const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";

#[tokio::test]
async fn an_endless_script_ends_with_its_time() {
    let scene = Scene::new();
    let short = Request { time: Duration::from_millis(50), ..request(ENDLESS) };
    assert!(matches!(run(Place::Memory, short, scene.payloads.clone(), ()).await, Err(SqlError::Timeout)));
    // Each of these is over long before anybody looks at the time.
    let many = Request { time: Duration::ZERO, ..request("select 1; select 2; select 3") };
    assert!(matches!(run(Place::Memory, many, scene.payloads.clone(), ()).await, Err(SqlError::Timeout)));
}

#[tokio::test]
async fn what_a_script_holds_is_given_back_when_its_thread_ends_and_not_when_nobody_waits() {
    let scene = Scene::new();
    let place = || scene.place("locked");
    scene.run(place(), "create table t (a)").await.expect("runs");
    let Place::File(path) = place() else { panic!("a file") };
    let other = Connection::open(path).expect("opens");
    other.execute_batch("begin exclusive").expect("locked");
    let (held, given_back) = tokio::sync::oneshot::channel::<()>();
    let script = request("insert into t values (1); insert into t values (2)");
    let mut waiting = Box::pin(run(place(), script, scene.payloads.clone(), held));
    assert!(futures::poll!(&mut waiting).is_pending());
    drop(waiting);
    let mut given_back = Box::pin(given_back);
    assert!(futures::poll!(&mut given_back).is_pending(), "the thread still waits for the lock");
    other.execute_batch("rollback").expect("unlocked");
    // The channel closes with what was held.
    given_back.await.expect_err("nothing is ever sent");
    let done = scene.run(place(), "select count(*) n from t").await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"n": 0}]), "nobody waited for it any more");
}

#[tokio::test]
async fn values_statements_and_tables_have_a_largest_size() {
    let scene = Scene::new();
    let filling = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
        select i, hex(randomblob(100000)) from n";
    let columns = vec!["1"; 501].join(",");
    let depth = vec!["1"; 300].join("+");
    for (script, sqlstate) in [
        ("select replace(hex(zeroblob(1000)), '0', hex(zeroblob(1000)))".to_owned(), "54000"),
        ("select group_concat(hex(zeroblob(500000))) from (select 1 union all select 2)".to_owned(), "54000"),
        (format!("select 'a' like '{}'", "%".repeat(1001)), "42000"),
        (format!("select '{}'", "a".repeat(2 << 20)), "54000"),
        (format!("select {columns}"), "42000"),
        (format!("select {}", vec!["instr('a', 'b')"; 101].join(",")), "54000"),
        (format!("select {}", ["json_patch('{}', '{}')"; 6].join(",")), "54000"),
        (format!("select {depth}"), "42000"),
        (format!("create table t as {filling}"), "53100"),
        (format!("create temp table t as {filling}"), "53100"),
    ] {
        let refused = scene.run(Place::Memory, &script).await.expect_err("too much");
        let SqlError::Sql(fault) = refused else { panic!("{}: {refused:?}", &script[..60.min(script.len())]) };
        assert_eq!(fault.sqlstate, sqlstate, "{}: {}", &script[..60.min(script.len())], fault.message);
    }
    let refused = scene.run(scene.place("temporary"), &format!("create temp table t as {filling}")).await;
    assert!(matches!(refused, Err(SqlError::Sql(fault)) if fault.sqlstate == "53100"));
}

#[tokio::test]
async fn letters_are_trimmed_as_the_library_does_it_and_long_texts_in_no_time() {
    let scene = Scene::new();
    let script = "select trim('xxaxbxx', 'x') a, ltrim('xya', 'yx') b, rtrim('aüü', 'ü') c, trim(null, 'x') d,
        trim('a', null) e, trim('  a ') f, trim(1001, 1) g, trim('x', 'x') h, trim('a', '') i";
    let done = scene.run(Place::Memory, script).await.expect("runs");
    let wanted =
        json!([{"a": "axb", "b": "a", "c": "a", "d": null, "e": null, "f": "a", "g": "00", "h": "", "i": "a"}]);
    assert_eq!(rows(&done[0]), wanted);
    // As the library has it, this is an hour.
    let long = "select length(trim(printf('%.*c', 1000000, 'a'), printf('%.*c', 999999, 'b') || 'a')) n";
    let done = scene.run(Place::Memory, long).await.expect("runs");
    assert_eq!(rows(&done[0]), json!([{"n": 0}]));
}

#[tokio::test]
async fn a_database_is_for_the_servers_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    scene.run(scene.place("mine"), "create table t (a)").await.expect("runs");
    let Place::File(path) = scene.place("mine") else { panic!("a file") };
    let mode = |path: &std::path::Path| path.metadata().expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
}

#[tokio::test]
async fn many_rows_become_a_table() {
    let scene = Scene::new();
    let script = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
        select i, 'row ' || i as name, i / 2.0 as half from n";
    let done = scene.run(Place::Memory, script).await.expect("runs");
    let Some(Rows::Table(table)) = &done[0].rows else { panic!("a table") };
    assert_eq!(done[0].row_count, 100_000);
    let bytes = table.read_range(0, table.size()).await.expect("readable");
    let reader = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None).expect("a stream");
    assert_eq!(reader.map(|batch| batch.expect("whole").num_rows()).sum::<usize>(), 100_000);
}
