//! What PostgreSQL has: a value for each type, as a server sends it and as it is read again. Differences are those of
//! decision 12 and of the notes of `noetl tool show postgres`.

use crate::compare::Case;

const NUMERIC: &str = "`numeric` is text, so that no digit is lost";
const SCALE: &str = "the column has a scale";
const ZONE: &str = "a moment is told in the zone of the session";
const PADDED: &str = "`char(n)` is filled up by the database";
const COLUMN: &str = "a parameter becomes what the column is";
const JSON_TEXT: &str = "text that is JSON is taken for it where a parameter is `json`";
const ZERO: &str = "a negative zero is a floating point number";

/// A column and its value.
pub struct Column {
    pub case: Case,
    /// As the database calls it.
    of: &'static str,
}

const TYPES: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s \"fine\"'); \
     CREATE DOMAIN positive AS int CHECK (VALUE > 0); CREATE TYPE pair AS (n int, t text)";

/// The script that makes the table.
pub fn table(columns: &[Column]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| format!("{} {}", column.case.name, column.of)).collect();
    format!("{TYPES}; CREATE TABLE fidelity (row_number int, {})", columns.join(", "))
}

/// The script that writes a row of parameters and reads all there are.
pub fn insert(columns: &[Column], row: u32) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.case.name).collect();
    let values: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    let (names, values) = (names.join(", "), values.join(", "));
    format!(
        "SET timezone TO 'UTC'; INSERT INTO fidelity (row_number, {names}) VALUES ({row}, {values}); \
         SELECT {names} FROM fidelity ORDER BY row_number"
    )
}

pub fn corpus() -> Vec<Column> {
    let mut columns = numbers();
    columns.extend(texts());
    columns.extend(documents());
    columns
}

fn numbers() -> Vec<Column> {
    let same = |name, of, sent: &str, kind| Column { case: Case::same(name, sent, kind), of };
    let other =
        |name, of, sent: &str, back: &str, kind, why| Column { case: Case::other(name, sent, back, kind, why), of };
    vec![
        same("c_int2", "int2", "-32768", "int"),
        same("c_int4", "int4", "2147483647", "int"),
        same("c_int8", "int8", "-9223372036854775808", "int"),
        same("c_int8_beyond_2_53", "int8", "9007199254740993", "int"),
        other("c_int4_float", "int4", "5.0", "5", "int", COLUMN),
        other("c_int4_text", "int4", r#""5""#, "5", "int", COLUMN),
        same("c_oid", "oid", "4294967295", "int"),
        same("c_numeric", "numeric", r#""12345678901234567890.12345678901234567890""#, "str"),
        other("c_numeric_u64", "numeric", "18446744073709551615", r#""18446744073709551615""#, "str", NUMERIC),
        other("c_numeric_float", "numeric", "0.1", r#""0.1""#, "str", NUMERIC),
        other("c_numeric_scale", "numeric(20,4)", "12.5", r#""12.5000""#, "str", SCALE),
        same("c_numeric_zeros", "numeric", r#""1.500""#, "str"),
        same("c_numeric_nan", "numeric", r#""NaN""#, "str"),
        Column {
            case: Case::other("c_numeric_large", r#""1e400""#, format!("\"1{}\"", "0".repeat(400)), "str", NUMERIC),
            of: "numeric",
        },
        same("c_float4", "float4", "1.1", "float"),
        same("c_float4_most", "float4", "3.4028235e38", "float"),
        same("c_float4_nan", "float4", r#""NaN""#, "str"),
        same("c_float8", "float8", "0.30000000000000004", "float"),
        same("c_float8_last_digit", "float8", "248.77816480489122", "float"),
        same("c_float8_largest", "float8", "1.7976931348623157e308", "float"),
        same("c_float8_small", "float8", "1e-300", "float"),
        other("c_float8_minus_zero", "float8", "-0", "-0.0", "float", ZERO),
        same("c_float8_nan", "float8", r#""NaN""#, "str"),
        same("c_float8_infinity", "float8", r#""Infinity""#, "str"),
        same("c_float8_minus_infinity", "float8", r#""-Infinity""#, "str"),
        same("c_bool", "bool", "true", "bool"),
        same("c_bool_false", "bool", "false", "bool"),
        other("c_bool_text", "bool", r#""false""#, "false", "bool", COLUMN),
        same("c_positive", "positive", "7", "int"),
        same("c_null_int", "int4", "null", "NoneType"),
        same("c_null_text", "text", "null", "NoneType"),
        same("c_null_numeric", "numeric", "null", "NoneType"),
        same("c_null_array", "int4[]", "null", "NoneType"),
        same("c_null_bytes", "bytea", "null", "NoneType"),
    ]
}

fn texts() -> Vec<Column> {
    let text = |name, of, sent: &str| Column { case: Case::same(name, sent, "str"), of };
    let other = |name, of, sent: &str, back: &str, why| Column { case: Case::other(name, sent, back, "str", why), of };
    vec![
        text("c_text", "text", "\"\u{1F600} e\u{301} \u{e9} \\n \\\"q\\\" 's' \\\\ $1 :x %(x)s\""),
        text("c_text_empty", "text", r#""""#),
        text("c_text_null", "text", r#""null""#),
        text("c_text_true", "text", r#""true""#),
        text("c_text_agent", "text", r#""007""#),
        text("c_text_nan", "text", r#""NaN""#),
        text("c_text_too_large", "text", r#""1e400""#),
        text("c_text_day", "text", r#""2024-02-29""#),
        text("c_text_braces", "text", r#""{1,NULL}""#),
        other("c_text_number", "text", "5", r#""5""#, COLUMN),
        text("c_varchar", "varchar(10)", r#""007 ""#),
        other("c_char", "char(4)", r#""ab""#, r#""ab  ""#, PADDED),
        text("c_name", "name", r#""a name""#),
        text("c_uuid", "uuid", r#""a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11""#),
        text("c_date", "date", r#""2024-02-29""#),
        text("c_date_bc", "date", r#""0044-03-15 BC""#),
        text("c_date_infinity", "date", r#""infinity""#),
        text("c_time", "time", r#""23:59:59.999999""#),
        text("c_timetz", "timetz", r#""12:00:00+05:30""#),
        text("c_timestamp", "timestamp", r#""2024-01-02T03:04:05.000001""#),
        text("c_timestamptz", "timestamptz", r#""2024-01-02T03:04:05.678901+00:00""#),
        other(
            "c_timestamptz_zone",
            "timestamptz",
            r#""2024-01-02T03:04:05+05:30""#,
            r#""2024-01-01T21:34:05+00:00""#,
            ZONE,
        ),
        text("c_timestamptz_infinity", "timestamptz", r#""-infinity""#),
        text("c_interval", "interval", r#""P1Y2M3DT4H5M6.7S""#),
        text("c_interval_negative", "interval", r#""P-1D""#),
        text("c_bytea", "bytea", r#""AP8Q""#),
        text("c_bytea_empty", "bytea", r#""""#),
        text("c_mood", "mood", r#""it's \"fine\"""#),
        text("c_pair", "pair", r#""(1,\"a b\")""#),
        text("c_inet", "inet", r#""192.168.0.1/24""#),
        text("c_inet_6", "inet", r#""2001:db8::1""#),
        text("c_cidr", "cidr", r#""10.0.0.0/8""#),
        text("c_macaddr", "macaddr", r#""08:00:2b:01:02:03""#),
        text("c_bit", "bit(4)", r#""1010""#),
        text("c_varbit", "varbit", r#""101""#),
        text("c_point", "point", r#""(1,2)""#),
        text("c_box", "box", r#""(1,1),(0,0)""#),
        text("c_circle", "circle", r#""<(0,0),1>""#),
        text("c_int4range", "int4range", r#""[1,5)""#),
        text("c_int4range_empty", "int4range", r#""empty""#),
        text("c_numrange", "numrange", r#""[1.50,)""#),
        text("c_daterange", "daterange", r#""[2024-01-01,2024-02-01)""#),
        text("c_tstzrange", "tstzrange", r#""[\"2024-01-01 00:00:00+00\",)""#),
        text("c_int4multirange", "int4multirange", r#""{[1,3),[5,7)}""#),
        text("c_tsvector", "tsvector", r#""'a' 'b'""#),
        text("c_xml", "xml", r#""<a/>""#),
    ]
}

fn documents() -> Vec<Column> {
    let same = |name, of, sent: &str, kind| Column { case: Case::same(name, sent, kind), of };
    let other =
        |name, of, sent: &str, back: &str, kind| Column { case: Case::other(name, sent, back, kind, JSON_TEXT), of };
    let list = |name, of, sent: &str| same(name, of, sent, "list");
    vec![
        same("c_json", "json", r#"{"b": 1, "a": [null, {}], "c": {"d": null}}"#, "dict"),
        same("c_json_empty", "json", "{}", "dict"),
        same("c_jsonb", "jsonb", r#"{"a": {"b": null}, "c": [null, [], {}, "", "null", "007", 1.5, 1.0]}"#, "dict"),
        same("c_jsonb_list", "jsonb", r#"[1, [2, null], {"a": 9007199254740993}]"#, "list"),
        same("c_jsonb_number", "jsonb", "18446744073709551615", "int"),
        same("c_jsonb_float", "jsonb", "248.77816480489122", "float"),
        same("c_jsonb_bool", "jsonb", "false", "bool"),
        same("c_jsonb_text", "jsonb", "\"plain \u{1F600}\"", "str"),
        same("c_jsonb_agent", "jsonb", r#""007""#, "str"),
        // A null is the database's own.
        same("c_jsonb_null", "jsonb", "null", "NoneType"),
        other("c_jsonb_word_null", "jsonb", r#""null""#, "null", "NoneType"),
        other("c_jsonb_word_true", "jsonb", r#""true""#, "true", "bool"),
        other("c_jsonb_list_text", "jsonb", r#""[1, null]""#, "[1, null]", "list"),
        list("c_int2s", "int2[]", "[1, null, -3]"),
        list("c_int8s", "int8[]", "[[1, 9007199254740993], [3, null]]"),
        list("c_texts", "text[]", r#"["", "NULL", null, "a \"b\", {c} \\", "é", "null", "007"]"#),
        list("c_texts_none", "text[]", "[]"),
        list("c_numerics", "numeric[]", r#"["1.10", "NaN", null]"#),
        list("c_floats", "float8[]", r#"[1.5, "Infinity", null]"#),
        list("c_bools", "bool[]", "[true, false, null]"),
        list("c_uuids", "uuid[]", r#"["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]"#),
        list("c_dates", "date[]", r#"["2024-02-29", null]"#),
        list("c_timestamps", "timestamptz[]", r#"["2024-01-02T03:04:05+00:00"]"#),
        list("c_intervals", "interval[]", r#"["P1D", "PT1H"]"#),
        list("c_jsonbs", "jsonb[]", r#"[{"a": [1, null]}, "x", null]"#),
        list("c_byteas", "bytea[]", r#"["AP8=", "", null]"#),
        list("c_moods", "mood[]", r#"["ok", "it's \"fine\"", null]"#),
        list("c_positives", "positive[]", "[1, 2]"),
        list("c_pairs", "pair[]", r#"["(1,a)"]"#),
    ]
}
