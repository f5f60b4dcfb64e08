//! Options as playbooks write them: those that a tool does not know, and the ways to name a credential.
//!
//! A playbook that was written for other tools has words that mean nothing to this one, and it should run all the same. But
//! a misspelt option does not apply either, and whoever looks for the reason should find it: each unknown word is a line in
//! the log, with the known word that was probably meant.

use serde_json::{Map, Value};

use crate::{Failure, log};

/// Words of playbooks that are the engine's, or for people. No tool has to say that it does not read them.
const NOT_FOR_TOOLS: [&str; 10] =
    ["input", "args", "assert", "output", "sink", "iterator", "desc", "description", "title", "name"];

/// Longer words than these are not mistyped ones.
const LONGEST: usize = 64;

/// Leaves the options that are known, and says in the log what it took away.
pub fn keep_known(tool: &str, options: &mut Map<String, Value>, known: &[&str]) {
    options.retain(|name, _| {
        let is_known = known.contains(&name.as_str());
        if !is_known && !NOT_FOR_TOOLS.contains(&name.as_str()) {
            warn(tool, name, known);
        }
        is_known
    });
}

/// Says in the log that a tool passes over an option.
pub fn warn(tool: &str, name: &str, known: &[&str]) {
    match nearest(name, known) {
        Some(meant) => log::warn!(
            "the tool `{tool}` does not know the option `{name}` and passes it over; did you mean `{meant}`?"
        ),
        None => log::warn!("the tool `{tool}` does not know the option `{name}` and passes it over"),
    }
}

/// The alias of a credential under `name`, if one is given: by itself, or in a map, where older playbooks have it as
/// `credential` or `key`, also below a name of its own (`auth: {pg: {type: postgres, credential: orders}}`).
pub fn alias(name: &str, given: Option<&Value>) -> Result<Option<String>, Failure> {
    let text = match given {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => Some(text.as_str()),
        Some(Value::Object(fields)) => named(fields).or_else(|| match fields.values().next() {
            Some(Value::Object(below)) if fields.len() == 1 => named(below),
            _ => None,
        }),
        Some(_) => None,
    };
    match text.map(str::trim) {
        Some("") => Ok(None),
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Failure::invalid_input(format_args!("`{name}` does not name a credential: write its alias"))),
    }
}

fn named(fields: &Map<String, Value>) -> Option<&str> {
    ["credential", "alias", "name", "key"].iter().find_map(|name| fields.get(*name)?.as_str())
}

/// The known word that was probably meant: at most a third of its letters differ.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters: Vec<char> = name.to_lowercase().chars().collect();
    if letters.len() > LONGEST {
        return None;
    }
    let far = |other: &str| distance(&letters, &other.chars().collect::<Vec<_>>());
    let near = known.iter().copied().map(|other| (far(other), other));
    let near = near.filter(|(far, other)| *far <= (letters.len().max(other.len()) / 3).max(1) && *far < letters.len());
    near.min_by_key(|(far, _)| *far).map(|(_, other)| other)
}

/// How many letters have to be put in, left out or replaced.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, letter) in left.iter().enumerate() {
        let mut this = vec![row + 1];
        for (column, other) in right.iter().enumerate() {
            let replaced = last[column] + usize::from(letter != other);
            this.push(replaced.min(last[column + 1] + 1).min(this[column] + 1));
        }
        last = this;
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_known_options_stay() {
        let mut options = json!({"url": "x", "time_out": 3, "input": {"a": 1}, "timeout": null});
        let options = options.as_object_mut().expect("an object");
        keep_known("http", options, &["url", "timeout"]);
        assert!(options.len() == 2 && options.contains_key("url") && options.contains_key("timeout"), "{options:?}");
    }

    #[test]
    fn a_credential_is_named_in_several_ways() {
        for (given, expected) in [
            (json!("pg"), Some("pg")),
            (json!(" "), None),
            (json!(null), None),
            (json!({"type": "postgres", "credential": "pg"}), Some("pg")),
            (json!({"main": {"source": "credential", "key": "pg"}}), Some("pg")),
        ] {
            assert_eq!(alias("auth", Some(&given)), Ok(expected.map(str::to_owned)), "{given}");
        }
        for wrong in [json!(7), json!({"type": "bearer"}), json!({"a": {"type": "x"}}), json!({"a": {}, "b": {}})] {
            assert!(alias("auth", Some(&wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_slip_is_told_from_another_word() {
        let known = ["url", "timeout", "follow_redirects"];
        assert_eq!(nearest("time_out", &known), Some("timeout"));
        assert_eq!(nearest("Timeot", &known), Some("timeout"));
        assert_eq!(nearest("follow_redirect", &known), Some("follow_redirects"));
        assert_eq!(nearest("retries", &known), None);
        assert_eq!(nearest(&"timeout".repeat(1000), &known), None);
    }
}
