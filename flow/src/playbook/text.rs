//! Templates in a document: each has to compile.

use serde_json::Value as Json;

use super::problem::{Problems, Severity};
use super::yaml::{Node, Value};
use crate::template;

/// Every text of a value, and every name in it.
pub(super) fn check(node: &Node, severity: Severity, problems: &mut Problems) {
    match &node.value {
        Value::Scalar(Json::String(text)) => {
            if let Err(why) = template::check(text) {
                problems.add(severity, node.place, format!("the template does not compile: {why}"), None);
            }
        }
        Value::Scalar(_) => {}
        Value::List(items) => items.iter().for_each(|item| check(item, severity, problems)),
        Value::Map(entries) => {
            for (key, value) in entries {
                if let Err(why) = template::check(&key.name) {
                    problems.add(severity, key.place, format!("the template does not compile: {why}"), None);
                }
                check(value, severity, problems);
            }
        }
    }
}

/// The condition at a value, if there is one that can be one.
pub(super) fn guard(node: Option<&Node>, problems: &mut Problems) -> Option<Json> {
    let node = node?;
    let when = node.scalar()?;
    if let Err(why) = template::check_guard(when) {
        problems.error(node.place, format!("the condition does not compile: {why}"));
    }
    Some(when.clone())
}
