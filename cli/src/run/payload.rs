//! The payload of an execution: `--payload`, and `--set` on top of it.
//!
//! The playbook's own `workload` has the defaults; each top-level name of the payload replaces the default of that
//! name whole, and `--set` changes the payload. So `--set a.b=1` alone gives `a` no other field than `b`.

use clap::Args;
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::given;

/// What an execution is given.
#[derive(Debug, Args)]
pub struct Payload {
    /// A value of the workload; JSON if it reads as JSON, else text. Dots in the name make objects. Can be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<Setting>,
    /// The workload as one JSON object, `@FILE` or `-`; --set goes on top.
    #[arg(long, value_name = "JSON|@FILE|-")]
    payload: Option<String>,
}

impl Payload {
    /// One object.
    pub fn value(&self) -> Outcome<Map<String, Value>> {
        let mut payload = match &self.payload {
            None => Map::new(),
            Some(text) => match given::json("--payload", text)? {
                Value::Object(payload) => payload,
                _ => return Err(Failure::usage("--payload must be one JSON object, such as '{\"city\": \"Oslo\"}'")),
            },
        };
        for setting in &self.set {
            setting.put(&mut payload);
        }
        Ok(payload)
    }
}

/// One `--set`.
#[derive(Debug, Clone, PartialEq)]
struct Setting {
    /// At least one name, none of them empty.
    names: Vec<String>,
    value: Value,
}

fn setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` has no `=`: write a name and a value, such as city=Oslo"))?;
    let names: Vec<String> = name.split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(format!(
            "`{name}` is not a name: use for example `city`, or `address.city` for a field of an object"
        ));
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok(Setting { names, value })
}

impl Setting {
    /// What stands in the way of a name with dots is replaced: what is set last counts.
    fn put(&self, payload: &mut Map<String, Value>) {
        let (last, above) = self.names.split_last().expect("the parser gives at least one name");
        let mut at = payload;
        for name in above {
            let below = at.entry(name.clone()).or_insert(Value::Null);
            if !below.is_object() {
                *below = Value::Object(Map::new());
            }
            at = below.as_object_mut().expect("it has just been made one");
        }
        at.insert(last.clone(), self.value.clone());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn payload(payload: Option<&str>, set: &[&str]) -> Outcome<Value> {
        let set = set.iter().map(|text| setting(text).expect("a setting")).collect();
        Payload { set, payload: payload.map(str::to_owned) }.value().map(Value::Object)
    }

    #[test]
    fn values_are_json_if_they_read_as_json_and_text_otherwise() {
        let set =
            ["n=3", "t=three", "zip=007", "yes=true", "none=null", "list=[1,2]", "q=\"3\"", "empty=", "url=a?b=c"];
        assert_eq!(
            payload(None, &set).expect("valid"),
            json!({"n": 3, "t": "three", "zip": "007", "yes": true, "none": null, "list": [1, 2], "q": "3",
                   "empty": "", "url": "a?b=c"})
        );
    }

    #[test]
    fn dots_make_objects_and_what_is_set_goes_over_the_payload() {
        let given = r#"{"a": {"b": 1, "c": 2}, "x": 5}"#;
        assert_eq!(
            payload(Some(given), &["a.b=7", "x.y.z=1", "d.e=t", "d.f=u"]).expect("valid"),
            json!({"a": {"b": 7, "c": 2}, "x": {"y": {"z": 1}}, "d": {"e": "t", "f": "u"}})
        );
        assert_eq!(payload(None, &["a=1", "a=2"]).expect("valid"), json!({"a": 2}));
        assert_eq!(payload(None, &[]).expect("valid"), json!({}));
    }

    #[test]
    fn what_is_no_setting_or_no_object_is_told() {
        for bad in ["city", "=1", ".a=1", "a.=1", "a..b=1"] {
            assert!(setting(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(setting("city").expect_err("no value").contains("city=Oslo"));
        assert!(payload(Some("[1]"), &[]).is_err() && payload(Some("{"), &[]).is_err());
    }
}
