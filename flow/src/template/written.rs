//! The JSON text of a template's value, without a tree in between.
//!
//! It is the text of what [`to_json`](super::to_json) gives, under the same limits: rows that a step hands on are written by
//! `tojson` and into every continuation, and a tree of them costs more than all the rest of it.

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::ValueKind;

use super::VALUE_BYTES;
use super::error::Cause;
use super::value::{DEPTH, NODE, convert, number, take};

/// A value as JSON text.
#[derive(Debug)]
pub struct Written {
    pub text: String,
    /// Whether the value is lists, maps and plain values throughout, so that reading the text again gives the same value.
    pub is_plain: bool,
}

/// JSON text of a value, if it is not too large.
pub fn written(value: &Value) -> Result<Written, Cause> {
    let mut writing = Writing { out: Vec::new(), left: VALUE_BYTES, is_plain: true };
    writing.value(value, 0)?;
    let text = String::from_utf8(writing.out).map_err(|error| Cause::Failed(error.to_string()))?;
    Ok(Written { text, is_plain: writing.is_plain })
}

struct Writing {
    out: Vec<u8>,
    left: usize,
    is_plain: bool,
}

impl Writing {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Cause> {
        if matches!(value.kind(), ValueKind::String | ValueKind::Number | ValueKind::Bool | ValueKind::None) {
            take(&mut self.left, NODE)?;
            return self.scalar(value);
        }
        let object = value.as_object();
        if let Some(items) = object.and_then(|object| object.downcast_ref::<Vec<Value>>()) {
            self.enter(depth)?;
            self.out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                self.comma(at);
                self.value(item, depth + 1)?;
            }
            self.out.push(b']');
            return Ok(());
        }
        let map = object.and_then(|object| object.downcast_ref::<IndexMap<Value, Value>>());
        // Of other keys than texts two can be the same text.
        if let Some(map) = map.filter(|map| map.keys().all(|key| key.as_str().is_some())) {
            self.enter(depth)?;
            self.out.push(b'{');
            for (at, (name, field)) in map.iter().enumerate() {
                self.comma(at);
                self.scalar(name)?;
                self.out.push(b':');
                self.value(field, depth + 1)?;
            }
            self.out.push(b'}');
            return Ok(());
        }
        // Whatever else there is becomes JSON by its own rules, and may be something else when it is read again.
        self.is_plain = false;
        let json = convert(value, &mut self.left, depth)?;
        self.push(&json)
    }

    fn enter(&mut self, depth: usize) -> Result<(), Cause> {
        take(&mut self.left, NODE)?;
        if depth > DEPTH { Err(Cause::Value) } else { Ok(()) }
    }

    fn scalar(&mut self, value: &Value) -> Result<(), Cause> {
        match (value.as_str(), value.kind()) {
            (Some(text), _) => {
                take(&mut self.left, text.len())?;
                self.push(text)
            }
            (None, ValueKind::Number) => self.push(&number(value)?),
            (None, ValueKind::Bool) => self.push(&value.is_true()),
            _ => self.push(&()),
        }
    }

    fn comma(&mut self, at: usize) {
        if at > 0 {
            self.out.push(b',');
        }
    }

    fn push<T: serde::Serialize + ?Sized>(&mut self, json: &T) -> Result<(), Cause> {
        serde_json::to_writer(&mut self.out, json).map_err(|error| Cause::Failed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::template::{from_json, step_value, to_json};

    #[test]
    fn the_text_is_that_of_the_tree() {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        for data in [
            json!(null),
            json!({"a": [1, -2.5, 1e300, 18_446_744_073_709_551_615_u64, true, null, "\u{e9}\"\n"], "": {"b": []}}),
            json!("text"),
            deep,
        ] {
            let value = from_json(&data);
            let Written { text, is_plain } = written(&value).expect("it can be written");
            assert_eq!(text, to_json(&value).expect("a tree").to_string());
            assert!(is_plain, "{data}");
        }
    }

    #[test]
    fn what_is_more_than_its_json_is_not_plain() {
        let step = step_value(&json!({"a": 1}), false, None);
        let keys = Value::from_pairs([(Value::from(1), Value::from("n")), (Value::from("1"), Value::from("t"))]);
        let inside = Value::from(vec![step.clone()]);
        for (value, expected) in [(step, json!({"a": 1})), (keys, json!({"1": "t"})), (inside, json!([{"a": 1}]))] {
            let Written { text, is_plain } = written(&value).expect("it can be written");
            assert_eq!(serde_json::from_str::<Json>(&text).expect("JSON"), expected);
            assert!(!is_plain, "{text}");
        }
        let too_deep = (0..200).fold(Value::from(1), |inner, _| Value::from(vec![inner]));
        assert!(written(&too_deep).is_err());
        assert!(written(&Value::from(f64::NAN)).is_err());
    }
}
