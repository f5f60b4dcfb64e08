//! The statements that rows come to.

use serde_json::json;

use super::*;

type Ran = Vec<(String, Value)>;

fn work(kind: &str, options: Value, mode: Mode, chunk_size: usize) -> Work {
    let Value::Object(mut options) = options else { panic!("an object") };
    options.insert("auth".to_owned(), json!("pg"));
    if kind == "sqlite" {
        options.insert("database".to_owned(), json!("notes"));
    }
    match Target::read(kind, options, mode, chunk_size) {
        Ok(target) => target.work,
        Err(failure) => panic!("{failure}"),
    }
}

fn written(work: &Work, document: &str) -> Result<(Done, Ran), Failure> {
    let mut ran = Ran::new();
    let rows = rows::of(document, None)?;
    let done = work.write(&rows, false, &mut |text, values| {
        ran.push((text, serde_json::from_str(&values)?));
        Ok(())
    })?;
    Ok((done, ran))
}

#[test]
fn rows_go_into_a_table_many_at_a_time() {
    let work = work("postgres", json!({"table": "public.Users"}), Mode::Append, 2);
    let (done, ran) =
        written(&work, r#"[{"id": 1, "Name": "a"}, {"id": 2, "tags": ["x"]}, {"id": 3}]"#).expect("written");
    assert_eq!(
        ran,
        [(
            "INSERT INTO \"public\".\"users\" (\"id\", \"name\", \"tags\") VALUES (:p0,:p1,:p2),(:p3,:p4,:p5)\n;\n\
             INSERT INTO \"public\".\"users\" (\"id\", \"name\", \"tags\") VALUES (:p6,:p7,:p8)"
                .to_owned(),
            json!({"p0": 1, "p1": "a", "p2": null, "p3": 2, "p4": null, "p5": ["x"], "p6": 3, "p7": null, "p8": null}),
        )]
    );
    let columns = ["id", "Name", "tags"].map(str::to_owned).to_vec();
    assert_eq!(done, Done { rows: 3, columns, statements: 2, transactions: 1 });
}

#[test]
fn a_mapping_says_where_values_are() {
    let mapping = json!({"user_id": "user.id", "whole": "$", "none": "user.nothing"});
    let work = work("postgres", json!({"table": "t", "mapping": mapping}), Mode::Append, 1000);
    let (_, ran) = written(&work, r#"[{"user": {"id": 12345678901234567890123}}]"#).expect("written");
    assert_eq!(ran[0].0, r#"INSERT INTO "t" ("user_id", "whole", "none") VALUES (:p0,:p1,:p2)"#);
    assert_eq!((&ran[0].1["p0"], &ran[0].1["p2"]), (&json!("12345678901234567890123"), &Value::Null));
    assert!(ran[0].1["p1"]["user"]["id"].is_number(), "{}", ran[0].1);
}

#[test]
fn replacing_empties_the_table_in_the_same_script_and_also_for_no_rows() {
    let work = work("postgres", json!({"table": "t"}), Mode::Replace, 1000);
    let (done, ran) = written(&work, r#"{"a": 1}"#).expect("written");
    assert_eq!(ran[0].0, "DELETE FROM \"t\"\n;\nINSERT INTO \"t\" (\"a\") VALUES (:p0)");
    assert_eq!((done.rows, ran.len()), (1, 1));
    let (done, ran) = written(&work, "[]").expect("written");
    assert_eq!((done.rows, ran), (0, vec![("DELETE FROM \"t\"".to_owned(), json!({}))]));
}

#[test]
fn nothing_is_run_for_no_rows() {
    let table = work("postgres", json!({"table": "t"}), Mode::Append, 1000);
    assert_eq!(written(&table, "[]").expect("written").1, Ran::new());
    let query = work("postgres", json!({"query": "insert into t values (:id)"}), Mode::Append, 1000);
    assert_eq!(written(&query, "null").expect("written").1, Ran::new());
}

#[test]
fn an_upsert_has_the_last_row_of_each_key() {
    let upsert = |options: Value| work("postgres", options, Mode::Upsert, 1000);
    let rows = r#"[{"id": 1, "n": "a"}, {"id": null, "n": "x"}, {"id": 1, "n": "b"}, {"id": null, "n": "y"}]"#;
    let (done, ran) = written(&upsert(json!({"table": "t", "key": "ID"})), rows).expect("written");
    assert_eq!(
        ran[0].0,
        "INSERT INTO \"t\" (\"id\", \"n\") VALUES (:p0,:p1),(:p2,:p3),(:p4,:p5) \
         ON CONFLICT (\"id\") DO UPDATE SET \"n\" = excluded.\"n\""
    );
    assert_eq!((done.rows, &ran[0].1["p1"], &ran[0].1["p3"]), (3, &json!("x"), &json!("b")));
    let (_, ran) = written(&upsert(json!({"table": "t", "conflict_columns": ["id", "n"]})), rows).expect("written");
    assert!(ran[0].0.ends_with("ON CONFLICT (\"id\", \"n\") DO NOTHING"), "{}", ran[0].0);
    let refused = written(&upsert(json!({"table": "t", "key": "other"})), rows).expect_err("no such column");
    assert_eq!(refused.code, "invalid_input");
}

#[test]
fn a_query_is_run_for_every_row_in_one_script() {
    let text = "INSERT INTO t VALUES (:id, ':id') -- a row";
    let named = work("postgres", json!({"query": text}), Mode::Append, 1000);
    let (done, ran) = written(&named, r#"[{"id": 1}, {"id": 2}]"#).expect("written");
    assert_eq!(ran[0].0, "INSERT INTO t VALUES (:p0, ':id') -- a row\n;\nINSERT INTO t VALUES (:p1, ':id') -- a row");
    assert_eq!((ran[0].1.clone(), done.transactions), (json!({"p0": 1, "p1": 2}), 1));

    let placed = json!({"query": "INSERT INTO t VALUES (%s, %s)", "mapping": {"b": "x.b", "a": "x.a"}});
    let (_, ran) = written(&work("sqlite", placed, Mode::Append, 1000), r#"{"x": {"a": 1, "b": 2}}"#).expect("written");
    assert_eq!(ran[0], ("INSERT INTO t VALUES (:p0, :p1)".to_owned(), json!({"p0": 2, "p1": 1})));
}

#[test]
fn what_is_too_much_for_one_script_is_several() {
    let work = work("sqlite", json!({"table": "t"}), Mode::Append, usize::MAX);
    let row = r#"{"a":1,"b":2,"c":3}"#;
    let document = format!("[{}]", vec![row; 60_000].join(","));
    let (done, ran) = written(&work, &document).expect("written");
    assert!(done.transactions > 1 && done.transactions == ran.len(), "{}", done.transactions);
    assert_eq!(done.rows, 60_000);
    for (text, values) in &ran {
        assert!(text.len() < 1 << 20, "{}", text.len());
        assert!(text.split("\n;\n").all(|statement| statement.matches(":p").count() <= 10_000));
        assert_eq!(values.as_object().map(Map::len), Some(text.matches(":p").count()));
    }
}

#[test]
fn a_failure_says_what_is_written_already() {
    let work = work("sqlite", json!({"table": "t"}), Mode::Append, usize::MAX);
    let document = format!("[{}]", vec![r#"{"a":1,"b":2,"c":3}"#; 60_000].join(","));
    let rows = rows::of(&document, None).expect("rows");
    let mut runs = 0;
    let failed = work.write(&rows, false, &mut |_, _| {
        runs += 1;
        if runs == 2 { Err(Failure::new("locked", "busy")) } else { Ok(()) }
    });
    let failed = failed.expect_err("the second script");
    assert_eq!(failed.code, "locked");
    assert!(failed.message.starts_with("transaction 2 (those before it are written): busy"), "{failed}");
}

#[test]
fn rows_that_are_no_objects_need_a_mapping() {
    let plain = work("postgres", json!({"table": "t"}), Mode::Append, 1000);
    let refused = written(&plain, "[{\"a\": 1}, 7]").expect_err("a number");
    assert!(refused.code == "invalid_data" && refused.message.contains("row 2"), "{refused}");
    let mapped = work("postgres", json!({"table": "t", "mapping": {"n": "$"}}), Mode::Append, 1000);
    assert_eq!(written(&mapped, "[7]").expect("written").1[0].1, json!({"p0": 7}));
}
