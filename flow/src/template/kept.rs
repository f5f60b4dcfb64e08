//! Results whose bulk is in a payload and not in them: rows of SQL as a table, a body of HTTP that is large.
//!
//! A name that is not there is undefined in a template, and what is undefined has the length 0: a step that goes through the
//! rows would find none and succeed. So the names that bulk has when it is there give an error that says where it is. They
//! are not listed: the rest of the result is data like any other.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, Value};
use serde_json::{Map, Value as Json};

use crate::extract::is_mark;

/// How far below a step's result there are statements and tasks.
pub(super) const DEEPEST: usize = 4;

const ROWS: &[&str] = &["rows"];
const BODY: &[&str] = &["data", "body"];

/// What is not in an object because it is in a payload, and what to do about it.
pub(super) fn missing(fields: &Map<String, Json>) -> Option<(&'static [&'static str], String)> {
    let is_number = |name: &str| fields.get(name).is_some_and(Json::is_number);
    let names = if fields.contains_key("affected_rows") && is_number("row_count") && fields.contains_key("columns") {
        ROWS
    } else if fields.contains_key("_ref") && is_number("status_code") {
        BODY
    } else {
        return None;
    };
    // An extract has marks where something was left out, and the whole of it is fetched before anybody asks.
    if names.iter().any(|name| fields.contains_key(*name)) || fields.keys().any(|name| is_mark(name)) {
        return None;
    }
    let what = match names {
        ROWS => {
            "the rows are too large for a result and are a table in a payload (`_ref` of the result): select fewer of \
                 them, hand `_ref` on, or move them with the tool `transfer`"
        }
        _ => {
            "the body is not in the result but in a payload (`_ref` of the result): hand `_ref` on as `body_ref` of an \
              `http` step, or read it with the tool `artifact`"
        }
    };
    Some((names, what.to_owned()))
}

#[derive(Debug)]
pub(super) struct Kept {
    pub inner: Value,
    pub names: &'static [&'static str],
    pub why: String,
}

impl Object for Kept {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if key.as_str().is_some_and(|name| self.names.contains(&name)) {
            return Some(Value::from(Error::new(ErrorKind::InvalidOperation, self.why.clone())));
        }
        self.inner.get_item(key).ok().filter(|value| !value.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.inner.try_iter().into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use crate::template::{Context, Templates, from_json, step_value};

    fn context() -> Context {
        let command = json!({"row_count": 5000, "columns": ["n"], "affected_rows": 0, "status": "SELECT 5000"});
        let large = json!({"row_count": 5000, "columns": ["n"], "affected_rows": 0, "command_0": command,
                           "_ref": "noetl://payload/a", "_media_type": "application/vnd.apache.arrow.stream"});
        let small = json!({"rows": [{"n": 1}], "row_count": 1, "columns": ["n"], "affected_rows": 0});
        let page = json!({"status_code": 200, "headers": {}, "size": 9, "_ref": "noetl://payload/b"});
        let extract = json!({"row_count": 1, "columns": [], "affected_rows": 0, "_omitted": 1});
        let pipeline = json!({"get": page, "put": small});
        Context::new(0).with([
            ("large", step_value(&large, false, None)),
            ("small", step_value(&small, false, None)),
            ("page", step_value(&page, false, None)),
            ("extract", step_value(&extract, false, None)),
            ("pipe", step_value(&pipeline, true, None)),
            ("output", from_json(&json!({"data": large}))),
        ])
    }

    fn render(text: &str) -> Result<Json, String> {
        Templates::new().render_json(&json!(text), &context()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_in_a_payload_is_no_empty_list() {
        for text in [
            "{{ large.rows | length }}",
            "{{ large.data.rows }}",
            "{{ large.command_0.rows[0].n }}",
            "{{ large.rows | default([]) }}",
            "{% for row in large.rows %}x{% endfor %}",
            "{{ output.data.rows | tojson }}",
            "{{ page.data }}",
            "{{ page.body }}",
            "{{ page.data['items'] | length }}",
        ] {
            let error = render(text).expect_err(text);
            assert!(error.contains("`_ref`"), "{text}: {error}");
        }
    }

    #[test]
    fn the_rest_of_such_a_result_is_as_it_was() {
        for (text, expected) in [
            ("{{ large.row_count }}", json!(5000)),
            ("{{ large._ref }}", json!("noetl://payload/a")),
            ("{{ (large | tojson | fromjson).row_count }}", json!(5000)),
            ("{{ large is mapping }} {{ 'rows' in large | list }}", json!("true false")),
            ("{{ page.status_code }}", json!(200)),
            ("{{ page.http.status }}", json!(200)),
            ("{{ small.rows | length }}", json!(1)),
            ("{{ extract.rows }}", json!(null)),
            // Another task has rows, and the pipeline as a whole is there too.
            ("{{ pipe.rows | length }}", json!(1)),
            ("{{ pipe.data.rows | length }}", json!(1)),
            ("{{ pipe.get.status_code }}", json!(200)),
        ] {
            assert_eq!(render(text), Ok(expected), "{text}");
        }
        assert!(render("{{ pipe.get.data }}").is_err());
    }
}
