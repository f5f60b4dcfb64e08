//! Extracts are small, true and navigable.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn path(text: &str) -> Vec<String> {
    text.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn large() -> Json {
    let rows: Vec<Json> =
        (0..1000).map(|id| json!({"id": id, "name": format!("row {id}"), "tags": ["a", "b"]})).collect();
    json!({"status": "ok", "count": 1000, "rows": rows, "note": "n".repeat(5000), "nil": null, "none": [],
           "meta": {"page": 1, "next": "c"}})
}

#[test]
fn what_fits_is_whole() {
    let value = json!({"a": [1, 2, 3], "b": "x".repeat(1000)});
    assert_eq!(extract(&value, 4096, &[]), Extract { value: value.clone(), truncated: false });
    assert_eq!(extract(&value, 4096, &["a".to_owned()]).value, value, "nothing is lost without need");
}

#[test]
fn a_summary_keeps_keys_scalars_and_first_items_in_order() {
    let extract = extract(&large(), 4096, &[]);
    assert!(extract.truncated);
    let value = extract.value;
    assert_eq!(value["rows"], json!([{"id": 0, "name": "row 0", "tags": ["a"]}]));
    assert_eq!((&value["status"], &value["count"], &value["nil"]), (&json!("ok"), &json!(1000), &json!(null)));
    assert_eq!(value["meta"], json!({"page": 1, "next": "c"}));
    assert!(value["note"].as_str().is_some_and(|note| note.ends_with("n…") && note.len() <= 256));
    assert_eq!(value["_truncated"], json!(true));
    let names: Vec<_> = value.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["status", "count", "rows", "note", "nil", "none", "meta", "_truncated"]);
}

#[test]
fn fields_that_do_not_fit_are_counted() {
    let fields: Map<String, Json> = (0..1000).map(|n| (format!("field {n}"), json!(n))).collect();
    let value = extract(&Json::Object(fields), 4096, &[]).value;
    let kept = value.as_object().expect("an object").len() as u64 - 2;
    assert!(kept > 100);
    assert_eq!(value["_omitted"], json!(1000 - kept));
}

#[test]
fn selected_fields_are_kept_whole_and_alone() {
    let select = ["count", "rows.0", "meta.page", "nosuch"].map(str::to_owned);
    let value = extract(&large(), 4096, &select).value;
    assert_eq!(value["count"], json!(1000));
    assert_eq!(value["meta"], json!({"page": 1, "_omitted": 1}));
    assert_eq!(value["rows"][0]["id"], json!(0), "a list that does not fit is summarised");
    assert_eq!((&value["_omitted"], &value["_truncated"]), (&json!(4), &json!(true)));
    let value = extract(&json!({"a": "x".repeat(3000), "b": "y".repeat(3000)}), 4096, &["a".to_owned()]).value;
    assert_eq!(value["a"].as_str().map(str::len), Some(3000));
}

#[test]
fn lists_and_texts_have_extracts_too() {
    assert_eq!(extract(&json!(vec![json!({"id": 7}); 999]), 4096, &[]).value, json!([{"id": 7}]));
    let text = extract(&json!("é\"\n".repeat(5000)), 4096, &[]).value;
    assert!(text.as_str().is_some_and(|text| text.starts_with("é\"\n") && text.ends_with('…')));
    let mut deep = json!("x".repeat(5000));
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert_eq!(extract(&deep, 0, &[]).value, json!({"_omitted": 1}));
}

#[test]
fn an_extract_covers_what_it_holds_and_nothing_else() {
    let summary = extract(&large(), 4096, &[]).value;
    for (text, expected) in [
        ("count", true),
        ("data.count", true),
        ("result.data.count", true),
        ("nil", true),
        ("none", true),
        ("none.0", true),
        ("nosuch", true),
        ("data.data", true),
        ("meta.page", true),
        ("meta.nosuch", true),
        ("count.x", true),
        ("_ref", true),
        ("rows.0.id", true),
        ("rows.0.nosuch", true),
        ("rows.0.tags.0", true),
        ("", false),
        ("data", false),
        ("rows", false),
        ("rows.0", false),
        ("rows.1.id", false),
        ("rows.0.tags", false),
        ("rows.0.tags.1", false),
        ("note", false),
        ("note.0", false),
        ("meta", false),
        ("_truncated", false),
    ] {
        assert_eq!(covers(&summary, &path(text), false), expected, "{text}");
    }
    assert!(!covers(&summary, &path("nosuch"), true), "a task of a pipeline may have it");
    let selected = extract(&large(), 4096, &["count".to_owned()]).value;
    assert!(covers(&selected, &path("count"), false) && !covers(&selected, &path("status"), false));
    assert!(!covers(&selected, &path("data.status"), false), "`data` may be a field that was left out");
}

/// What is at a path as templates see it, without the fall-through of `data` and `result`.
fn at<'a>(value: &'a Json, path: &[String]) -> Option<&'a Json> {
    path.iter().try_fold(value, |value, part| match value {
        Json::Object(fields) => fields.get(part),
        Json::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_filter("JSON has no such number", |number| number.is_finite()).prop_map(Json::from),
        "[a-z\"\\\\é\u{1}…]{0,400}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
            prop::collection::vec(("[a-c\"\n]{1,3}|_truncated|_omitted", inner), 0..8)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_extract_is_small_and_true(
        value in json_value(), limit in 0usize..1500, select in prop::collection::vec("[a-c]{1,2}(\\.[a-c])?", 0..3),
        paths in prop::collection::vec(prop::collection::vec("[a-c]{1,2}|0|1|_omitted", 0..4), 8),
    ) {
        let extract = extract(&value, limit, &select);
        prop_assert!(extract.value.to_string().len() <= limit.max(LEAST), "{}", extract.value);
        prop_assert_eq!(extract.truncated, extract.value != value);
        if extract.truncated {
            for path in paths {
                if covers(&extract.value, &path, false) {
                    prop_assert_eq!(at(&extract.value, &path), at(&value, &path), "{:?} in {}", path, extract.value);
                }
            }
        }
    }
}
