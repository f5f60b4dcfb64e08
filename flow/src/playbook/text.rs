//! Templates in a document: each has to compile, and should use only what there is.

use serde_json::Value as Json;

use super::problem::{Place, Problems, Severity};
use super::yaml::{Node, Value};
use crate::template::{self, Unknown};

/// Every text of a value, and every name in it.
pub(super) fn check(node: &Node, severity: Severity, problems: &mut Problems) {
    match &node.value {
        Value::Scalar(Json::String(text)) => {
            if let Err(why) = template::check(text) {
                problems.add(severity, node.place, format!("the template does not compile: {why}"), None);
            }
            warn_of(node.place, template::unknown(text), problems);
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
    warn_of(node.place, template::unknown_in_guard(when), problems);
    Some(when.clone())
}

/// A warning, because the template may never be rendered, and the rest of the playbook is none the worse for it.
fn warn_of(place: Place, unknown: Vec<Unknown>, problems: &mut Problems) {
    for Unknown { what, name, nearest } in unknown {
        let message = format!("there is no {what} `{name}`: rendering the template fails");
        problems.add(Severity::Warning, place, message, nearest.map(|name| format!("did you mean `{name}`?")));
    }
}
