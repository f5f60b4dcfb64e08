//! The outcome of a call, as the rules of a tool see it: an envelope, with what the tool answered as its `data`.
//!
//! Guards and `set` of a step find the body of an HTTP answer under `output.data`, because there `output` is the answer. For
//! rules the answer is one level below, and people write the same words. So of an answer, what it does not have itself
//! is looked for in its body. `response` is what `data` was once called. Neither is listed: the envelope is what it is.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr, ValueKind};
use serde_json::Value as Json;

use super::value::from_json;

/// What rules see as `output`: its fields, and what the call answered in the place of `data`.
pub fn envelope_value(fields: &Json, data: Value) -> Value {
    let fields = from_json(fields);
    let own = fields.try_iter().into_iter().flatten();
    let inner = Value::from_pairs(own.map(|name| match name.as_str() {
        Some("data") => (name, data.clone()),
        _ => (name.clone(), fields.get_item(&name).unwrap_or_default()),
    }));
    let is_answer = data.get_attr("status_code").is_ok_and(|status| status.is_number());
    let data = if is_answer { Value::from_object(Answer { inner: data }) } else { data };
    Value::from_object(Envelope { inner, data })
}

#[derive(Debug)]
struct Envelope {
    inner: Value,
    data: Value,
}

impl Object for Envelope {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "data" | "response" => Some(self.data.clone()),
            name => there(self.inner.get_attr(name)),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        names(&self.inner)
    }
}

/// An HTTP answer.
#[derive(Debug)]
struct Answer {
    inner: Value,
}

impl Object for Answer {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        there(self.inner.get_item(key)).or_else(|| {
            let body = self.inner.get_attr("data").ok()?;
            match body.kind() {
                ValueKind::Map | ValueKind::Seq => there(body.get_item(key)),
                // The body is in a payload: the value says so to whoever looks for something in it.
                ValueKind::Invalid => Some(body),
                _ => None,
            }
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        names(&self.inner)
    }
}

fn there(found: Result<Value, minijinja::Error>) -> Option<Value> {
    found.ok().filter(|value| !value.is_undefined())
}

fn names(map: &Value) -> Enumerator {
    Enumerator::Values(map.try_iter().into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::template::{Context, Templates};

    fn render(data: Json, text: &str) -> Result<Json, String> {
        let output = envelope_value(&json!({"status": "success", "data": null, "error": null}), from_json(&data));
        let context = Context::new(0).with([("output", output)]);
        Templates::new().render_json(&json!(text), &context).map_err(|error| error.to_string())
    }

    #[test]
    fn what_an_answer_has_not_is_looked_for_in_its_body() {
        let page =
            json!({"status_code": 200, "headers": {"a": "b"}, "data": {"status_code": 7, "paging": {"more": true}}});
        for (text, expected) in [
            ("{{ output.data.paging.more }}", json!(true)),
            ("{{ output.data.data.paging.more }}", json!(true)),
            ("{{ output.response.paging.more }}", json!(true)),
            ("{{ output.data.status_code }}", json!(200)),
            ("{{ output.data.data.status_code }}", json!(7)),
            ("{{ output.data.other is defined }} {{ output.other is defined }}", json!("false false")),
            ("{{ output.status }}", json!("success")),
            // Only what is really there shows.
            ("{{ output | tojson | fromjson | length }} {{ output.data | list | length }}", json!("3 3")),
        ] {
            assert_eq!(render(page.clone(), text), Ok(expected), "{text}");
        }
        let list = json!({"status_code": 200, "data": [{"id": 4}]});
        assert_eq!(render(list, "{{ output.data[0].id }}"), Ok(json!(4)));
        let text = json!({"status_code": 200, "data": "words"});
        assert_eq!(render(text, "{{ output.data.id is defined }}"), Ok(json!(false)));
    }

    #[test]
    fn other_data_is_as_it_is() {
        let rows = json!({"rows": [1], "data": {"x": 1}});
        assert_eq!(render(rows.clone(), "{{ output.data.x is defined }}"), Ok(json!(false)));
        assert_eq!(render(rows, "{{ output.response.rows }}"), Ok(json!([1])));
        assert_eq!(render(json!([5]), "{{ output.response[0] }}"), Ok(json!(5)));
        assert_eq!(render(json!(null), "{{ output.response }}"), Ok(json!(null)));
    }

    #[test]
    fn a_body_that_is_elsewhere_says_so() {
        let kept = json!({"status_code": 200, "headers": {}, "_ref": "noetl://payload/b"});
        let error = render(kept.clone(), "{{ output.data.paging.more }}").expect_err("it is not here");
        assert!(error.contains("`_ref`"), "{error}");
        assert_eq!(render(kept, "{{ output.data._ref }}"), Ok(json!("noetl://payload/b")));
    }
}
