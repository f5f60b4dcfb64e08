//! Rows of JSON, without being read into values: what is not looked at stays what it was.

use noetl_sdk::Failure;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What is named when there is nothing.
const MOST_NAMED: usize = 20;

/// The rows of a document: those of the list that `path` leads to, or the one object there.
pub fn of<'a>(document: &'a str, path: Option<&str>) -> Result<Vec<&'a RawValue>, Failure> {
    let whole: &RawValue = serde_json::from_str(document.trim())
        .map_err(|error| Failure::new("invalid_data", format_args!("what came is not JSON: {error}")))?;
    let found = match path {
        None => whole,
        Some(path) => find(whole, path).ok_or_else(|| {
            let there = fields(whole).map(|fields| names(&fields)).unwrap_or_default();
            Failure::new(
                "invalid_data",
                format_args!("`data_path` is `{path}`, and there is nothing in what came; at the top it has: {there}"),
            )
        })?,
    };
    match found.get().as_bytes().first() {
        Some(b'[') => Ok(items(found).unwrap_or_default()),
        Some(b'{') => Ok(vec![found]),
        Some(b'n') => Ok(Vec::new()),
        _ => Err(Failure::new("invalid_data", "what came is neither a list of rows nor a row: is `data_path` right?")),
    }
}

fn names(fields: &[(String, &RawValue)]) -> String {
    let names: Vec<String> = fields.iter().take(MOST_NAMED).map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}

/// What a path leads to: `a.b`, `a.0.b`, `a[0].b`; `$` is the value itself, and a key with a dot in it is found first.
pub fn find<'a>(value: &'a RawValue, path: &str) -> Option<&'a RawValue> {
    let path = path.trim();
    if let Some(found) = fields(value).and_then(|fields| get(&fields, path)) {
        return Some(found);
    }
    let path = path.strip_prefix('$').unwrap_or(path);
    let mut parts = path.split(['.', '[', ']']).map(str::trim).filter(|part| !part.is_empty());
    parts.try_fold(value, |value, part| match fields(value) {
        Some(fields) => get(&fields, part),
        None => items(value)?.get(part.parse::<usize>().ok()?).copied(),
    })
}

/// The fields of an object, in their order.
pub fn fields(value: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Fields<'_>>(value.get()).ok().map(|fields| fields.0)
}

/// Of several with one name the last counts, as everywhere in JSON.
pub fn get<'a>(fields: &[(String, &'a RawValue)], name: &str) -> Option<&'a RawValue> {
    fields.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value)
}

fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(document: &str, path: Option<&str>) -> Vec<String> {
        let rows = of(document, path).unwrap_or_else(|failure| panic!("{document}: {failure}"));
        rows.iter().map(|row| row.get().to_owned()).collect()
    }

    #[test]
    fn a_path_leads_to_the_list_or_to_one_row() {
        let page =
            r#" {"data": {"items": [{"n": 12345678901234567890123}, {"n": 1.50}]}, "a.b": [{"x": 1}], "none": null} "#;
        assert_eq!(texts(page, Some("data.items")), [r#"{"n": 12345678901234567890123}"#, r#"{"n": 1.50}"#]);
        assert_eq!(texts(page, Some("$.data.items[1]")), [r#"{"n": 1.50}"#]);
        assert_eq!(texts(page, Some("a.b")), [r#"{"x": 1}"#]);
        assert_eq!(texts(page, Some("none")), Vec::<String>::new());
        assert_eq!(texts(page, None), [page.trim()]);
        assert_eq!(texts("[1, [2]]", None), ["1", "[2]"]);
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let missing = of(r#"{"users": [], "total": 3}"#, Some("data")).expect_err("no such key");
        assert_eq!(missing.code, "invalid_data");
        assert!(missing.message.contains("`users`, `total`"), "{missing}");
        for wrong in ["no json", "7", "\"text\""] {
            assert_eq!(of(wrong, None).expect_err(wrong).code, "invalid_data");
        }
    }

    #[test]
    fn a_field_is_found_in_depth_and_the_last_of_two_counts() {
        let row: &RawValue = serde_json::from_str(r#"{"a": {"b": [10, {"c": "x"}]}, "d": 1, "d": 2}"#).expect("JSON");
        let text = |path: &str| find(row, path).map(RawValue::get);
        assert_eq!((text("a.b.0"), text("a.b[1].c"), text("d")), (Some("10"), Some("\"x\""), Some("2")));
        assert_eq!((text("$"), text("a.z"), text("d.e")), (Some(row.get()), None, None));
    }
}
