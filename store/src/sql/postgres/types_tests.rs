//! Values from the server's text and back.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn shown(kind: &Kind, text: &str) -> String {
    let mut out = String::new();
    write(&mut out, &kind.read(text));
    out
}

fn of(name: &str) -> Kind {
    let (oid, ..) = KNOWN.iter().find(|(_, known, ..)| *known == name).expect("a known type");
    known(*oid).expect("known by its number").kind
}

fn list_of(name: &str) -> Kind {
    Kind::Array(Arc::new(of(name)), b',')
}

#[test]
fn every_type_keeps_its_values() {
    for (name, text, expected) in [
        ("bool", "t", "true"),
        ("bool", "f", "false"),
        ("int2", "-32768", "-32768"),
        ("int8", "9223372036854775807", "9223372036854775807"),
        ("float4", "1.1", "1.1"),
        ("float8", "1e+300", "1e+300"),
        ("float8", "NaN", "\"NaN\""),
        ("float8", "-Infinity", "\"-Infinity\""),
        ("numeric", "123456789012345678901234567890.123456789", "\"123456789012345678901234567890.123456789\""),
        ("numeric", "NaN", "\"NaN\""),
        ("text", "", "\"\""),
        ("json", "null", "null"),
        (
            "json",
            "{\"b\": 1, \"a\": [null, 12345678901234567890123]}",
            "{\"b\": 1, \"a\": [null, 12345678901234567890123]}",
        ),
        ("json", "\"\\ud800\"", "\"\\\"\\\\ud800\\\"\""),
        ("jsonb", "\"\\u00e9\"", "\"\\u00e9\""),
        ("bytea", "\\x00ff", "\"AP8=\""),
        ("bytea", "\\x", "\"\""),
        ("timestamp", "2024-01-02 03:04:05.123456", "\"2024-01-02T03:04:05.123456\""),
        ("timestamptz", "2024-01-02 03:04:05+00", "\"2024-01-02T03:04:05+00:00\""),
        ("timestamptz", "2024-01-02 03:04:05-05:30", "\"2024-01-02T03:04:05-05:30\""),
        ("timestamptz", "0044-03-15 12:00:00+00 BC", "\"0044-03-15 12:00:00+00 BC\""),
        ("timestamp", "infinity", "\"infinity\""),
        ("date", "0044-03-15 BC", "\"0044-03-15 BC\""),
        ("timetz", "03:04:05+00", "\"03:04:05+00:00\""),
        ("interval", "P1Y2M3DT4H5M6.7S", "\"P1Y2M3DT4H5M6.7S\""),
        ("void", "", "null"),
        ("record", "(1,\"a b\")", "\"(1,\\\"a b\\\")\""),
    ] {
        assert_eq!(shown(&of(name), text), expected, "{name} {text}");
    }
}

#[test]
fn arrays_are_lists_of_any_depth() {
    for (name, text, expected) in [
        ("int4", "{}", "[]"),
        ("int4", "{1,NULL,3}", "[1,null,3]"),
        ("int4", "{{1,2},{3,NULL}}", "[[1,2],[3,null]]"),
        ("int4", "[0:1]={1,2}", "[1,2]"),
        ("text", r#"{"NULL",NULL,"a \"b\", \\ c","",é}"#, r#"["NULL",null,"a \"b\", \\ c","","é"]"#),
        ("bool", "{t,f}", "[true,false]"),
        ("jsonb", r#"{"{\"a\": 1}",null,NULL}"#, r#"[{"a": 1},null,null]"#),
        ("bytea", r#"{"\\x00ff"}"#, r#"["AP8="]"#),
        ("timestamptz", r#"{"2024-01-02 03:04:05+00"}"#, r#"["2024-01-02T03:04:05+00:00"]"#),
        ("float8", "{NaN,1.5}", r#"["NaN",1.5]"#),
    ] {
        assert_eq!(shown(&list_of(name), text), expected, "{name} {text}");
    }
    for broken in ["", "{", "{1", "{1}}", "{1}x", "1", "{\"a}", "[0:1"] {
        assert_eq!(shown(&list_of("text"), broken), json!(broken).to_string(), "text that is no array stays text");
    }
}

#[test]
fn parameters_are_written_the_way_their_type_wants() {
    let text = |value: Value, kind: &Kind| bound(&value, kind).expect("fits");
    assert_eq!(text(json!(null), &of("int4")), None);
    assert_eq!(text(json!(5.0), &of("int4")).as_deref(), Some("5"));
    assert_eq!(text(json!(5.5), &of("int4")).as_deref(), Some("5.5"), "the server says what is wrong with it");
    assert_eq!(text(json!(5), &of("text")).as_deref(), Some("5"));
    assert_eq!(text(json!("2024-01-01"), &of("date")).as_deref(), Some("2024-01-01"));
    assert_eq!(text(json!({"a": [1]}), &of("jsonb")).as_deref(), Some(r#"{"a":[1]}"#));
    assert_eq!(text(json!([1, "x"]), &of("jsonb")).as_deref(), Some(r#"[1,"x"]"#));
    assert_eq!(text(json!("{\"a\": 1}"), &of("jsonb")).as_deref(), Some("{\"a\": 1}"), "JSON that is text already");
    assert_eq!(text(json!("plain"), &of("jsonb")).as_deref(), Some("\"plain\""));
    assert_eq!(text(json!([1, null, [2]]), &list_of("int4")).as_deref(), Some(r#"{"1",NULL,{"2"}}"#));
    assert_eq!(text(json!(["a\"b\\c", ""]), &list_of("text")).as_deref(), Some(r#"{"a\"b\\c",""}"#));
    assert_eq!(text(json!([[1], {"a": 2}]), &list_of("jsonb")).as_deref(), Some(r#"{"[1]","{\"a\":2}"}"#));
    assert_eq!(text(json!([1, 2]), &of("text")).as_deref(), Some("[1,2]"));
    assert_eq!(text(json!("AP8="), &of("bytea")).as_deref(), Some("\\x00ff"));
    assert_eq!(text(json!("\\x00ff"), &of("bytea")).as_deref(), Some("\\x00ff"));
    assert!(bound(&json!("no base64!"), &of("bytea")).is_err());
}

proptest! {
    #[test]
    fn a_list_of_texts_is_the_same_after_a_round(list in prop::collection::vec(prop::option::of(".{0,12}"), 1..8)) {
        let value = json!(list);
        let text = bound(&value, &list_of("text")).expect("fits").expect("not null");
        let back: Value = serde_json::from_str(&shown(&list_of("text"), &text)).expect("JSON");
        prop_assert_eq!(back, value);
    }

    #[test]
    fn any_text_of_an_array_is_an_answer(text in ".{0,30}", name in prop::sample::select(vec!["int4", "text", "jsonb"])) {
        let _shown = shown(&list_of(name), &text);
    }
}
