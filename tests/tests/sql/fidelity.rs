//! Every type through a table and back: what comes out is what went in, and can go in again.

use noetl_store::sql::{Parameters, Request};
use serde_json::{Value, json};

use crate::base::{Base, list, rows, script};

/// Type, a literal of it, and how it is answered.
fn corpus() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("int2", "'-32768'", json!(-32768)),
        ("int4", "'2147483647'", json!(2147483647)),
        ("int8", "'-9223372036854775808'", json!(i64::MIN)),
        ("numeric", "'12345678901234567890.1234567890123456789'", json!("12345678901234567890.1234567890123456789")),
        ("numeric(10,2)", "'1.5'", json!("1.50")),
        ("numeric", "'NaN'", json!("NaN")),
        ("float4", "'1.1'", json!(1.1)),
        ("float8", "'1e300'", json!(1e300)),
        ("float8", "'-0.1'", json!(-0.1)),
        ("float8", "'NaN'", json!("NaN")),
        ("float8", "'-Infinity'", json!("-Infinity")),
        ("bool", "'t'", json!(true)),
        ("text", "''", json!("")),
        ("text", "E'é \\U0001F600 \\n \"q\" ''s'' \\\\ NULL'", json!("é \u{1F600} \n \"q\" 's' \\ NULL")),
        ("varchar(10)", "'abc'", json!("abc")),
        ("char(4)", "'ab'", json!("ab  ")),
        ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", json!("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")),
        ("date", "'2024-02-29'", json!("2024-02-29")),
        ("date", "'0044-03-15 BC'", json!("0044-03-15 BC")),
        ("date", "'infinity'", json!("infinity")),
        ("time", "'23:59:59.999999'", json!("23:59:59.999999")),
        ("timetz", "'12:00:00+05:30'", json!("12:00:00+05:30")),
        ("timetz", "'12:00:00+02'", json!("12:00:00+02:00")),
        ("timestamp", "'2024-01-02 03:04:05.000001'", json!("2024-01-02T03:04:05.000001")),
        ("timestamp", "'0044-03-15 12:00:00 BC'", json!("0044-03-15 12:00:00 BC")),
        ("timestamptz", "'2024-01-02 03:04:05+00'", json!("2024-01-02T03:04:05+00:00")),
        ("timestamptz", "'-infinity'", json!("-infinity")),
        ("interval", "'1 year 2 mons 3 days 04:05:06.7'", json!("P1Y2M3DT4H5M6.7S")),
        ("interval", "'-1 day'", json!("P-1D")),
        ("json", "'{\"b\": 1, \"a\": [null, {}]}'", json!({"b": 1, "a": [null, {}]})),
        ("json", "'null'", json!(null)),
        ("jsonb", "'\"text\"'", json!("text")),
        ("jsonb", "'[1, 2.50, \"\\u00e9\", null]'", json!([1, 2.50, "é", null])),
        ("bytea", "'\\x00ff10'", json!("AP8Q")),
        ("bytea", "'\\x'", json!("")),
        ("inet", "'192.168.0.1/24'", json!("192.168.0.1/24")),
        ("cidr", "'10.0.0.0/8'", json!("10.0.0.0/8")),
        ("macaddr", "'08:00:2b:01:02:03'", json!("08:00:2b:01:02:03")),
        ("bit(4)", "'1010'", json!("1010")),
        ("varbit", "'101'", json!("101")),
        ("point", "'(1,2)'", json!("(1,2)")),
        ("int4range", "'[1,5)'", json!("[1,5)")),
        ("tstzrange", "'[2024-01-01 00:00:00+00,)'", json!("[\"2024-01-01 00:00:00+00\",)")),
        ("tsvector", "'a b'", json!("'a' 'b'")),
        ("xml", "'<a/>'", json!("<a/>")),
        ("mood", "'ok'", json!("ok")),
        ("positive", "'7'", json!(7)),
        ("pair", "'(1,\"a b\")'", json!("(1,\"a b\")")),
        ("int2[]", "'{1,NULL,-3}'", json!([1, null, -3])),
        ("int8[]", "'{{1,2},{3,4}}'", json!([[1, 2], [3, 4]])),
        ("text[]", "ARRAY['', 'NULL', NULL, 'a \"b\", {c}', 'é']", json!(["", "NULL", null, "a \"b\", {c}", "é"])),
        ("numeric[]", "'{1.10,NaN}'", json!(["1.10", "NaN"])),
        ("float8[]", "'{1.5,Infinity}'", json!([1.5, "Infinity"])),
        ("bool[]", "'{t,f,NULL}'", json!([true, false, null])),
        ("uuid[]", "'{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'", json!(["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"])),
        ("timestamptz[]", "'{2024-01-02 03:04:05+00}'", json!(["2024-01-02T03:04:05+00:00"])),
        ("interval[]", "'{1 day}'", json!(["P1D"])),
        ("jsonb[]", "ARRAY['{\"a\": [1, null]}', '\"x\"', NULL]::jsonb[]", json!([{"a": [1, null]}, "x", null])),
        ("bytea[]", "ARRAY['\\x00ff'::bytea]", json!(["AP8="])),
        ("mood[]", "'{ok,sad}'", json!(["ok", "sad"])),
        ("positive[]", "'{1,2}'", json!([1, 2])),
        ("pair[]", "ARRAY['(1,a)'::pair]", json!(["(1,a)"])),
        ("text[]", "'{}'", json!([])),
        ("text", "NULL", json!(null)),
    ]
}

const TYPES: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN positive AS int CHECK (VALUE > 0); \
     CREATE TYPE pair AS (n int, t text)";

#[tokio::test]
async fn every_type_is_read_as_it_was_written_and_can_be_written_again() {
    let base = Base::start();
    base.run(script(TYPES)).await.expect("types");
    for (number, (kind, literal, expected)) in corpus().into_iter().enumerate() {
        let made = format!(
            "SET timezone TO 'UTC'; CREATE TABLE t{number} (v {kind}); \
             INSERT INTO t{number} VALUES ({literal}) RETURNING v"
        );
        let done = base.run(Request { objects: false, ..script(&made) }).await;
        let done = done.unwrap_or_else(|error| panic!("{kind} {literal}: {error}"));
        assert_eq!(rows(&done[2]), json!([[expected]]), "{kind} {literal}");
        // What was read is bound to the same type, and is the same value to the server.
        let again = format!("SELECT v IS NOT DISTINCT FROM $1::{kind} FROM t{number}");
        let comparable = !matches!(kind, "json" | "point" | "xml");
        if comparable && !(kind.starts_with("json") && expected.is_null()) {
            let request = Request { parameters: list(json!([expected])), objects: false, ..script(&again) };
            let done = base.run(request).await.unwrap_or_else(|error| panic!("{kind} {literal} again: {error}"));
            assert_eq!(rows(&done[0]), json!([[true]]), "{kind} {literal} after a round");
        }
    }
}

#[tokio::test]
async fn a_parameter_is_what_the_statement_takes_it_for() {
    let base = Base::start();
    base.run(script("CREATE TABLE t (d date, n numeric, j jsonb, a int[], s text, f float8, b bool)"))
        .await
        .expect("made");
    let insert = Request {
        parameters: list(json!(["2024-01-01", 12.5, {"a": [1, null]}, [1, 2], 5, "NaN", "true"])),
        ..script("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7)")
    };
    assert_eq!(base.run(insert).await.expect("inserted")[0].affected, Some(1));
    assert_eq!(
        base.rows("SELECT * FROM t").await,
        json!([{"d": "2024-01-01", "n": "12.5", "j": {"a": [1, null]}, "a": [1, 2], "s": "5", "f": "NaN", "b": true}])
    );
    let named = Parameters::Named(json!({"d": "2024-01-01", "wanted": [1, 2]}).as_object().expect("fields").clone());
    let text = "SELECT ':d' || s FROM t WHERE d = :d::date AND a = %(wanted)s -- :nobody";
    assert_eq!(base.value(text, named).await, json!(":d5"));
    let missing = Request { parameters: list(json!([1])), ..script("SELECT $1::int, $2::int") };
    let refused = base.run(missing).await.expect_err("one is missing").to_string();
    assert!(refused.contains("$2") && refused.contains("1 parameters"), "{refused}");
}
