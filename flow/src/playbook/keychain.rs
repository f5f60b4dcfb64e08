//! `keychain`: names that templates use, and the credentials they stand for.
//!
//! Credentials are made in the wallet and nowhere else. An entry that says how to get one from elsewhere, or has a value
//! in it, is therefore a warning: with a credential of that name the playbook runs all the same.

use super::problem::Problems;
use super::yaml::Node;
use crate::keychain::{Declared, Keychain};
use crate::template::is_template;

/// Keys that say how a value is got, or are one.
const ELSEWHERE: [&str; 6] = ["endpoint", "data", "token", "value", "values", "secret"];
/// Where entries may say their value is kept.
const OURS: [&str; 3] = ["noetl", "wallet", "local"];

pub(super) fn declared(node: Option<&Node>, problems: &mut Problems) -> Keychain {
    let mut keychain = Keychain::new();
    for entry in node.map(Node::items).unwrap_or_default() {
        let Some(name) = entry.get("name").and_then(Node::text).filter(|name| !name.trim().is_empty()) else {
            problems.warning(entry.place, "an entry without a `name` cannot be used by any template");
            continue;
        };
        if keychain.insert(name.to_owned(), one(entry, name, problems)).is_some() {
            problems.error(entry.place, format!("the keychain has `{name}` twice"));
        }
    }
    keychain
}

fn one(entry: &Node, name: &str, problems: &mut Problems) -> Declared {
    let provider = entry.get("provider").filter(|provider| provider.text().is_none_or(|text| !OURS.contains(&text)));
    if let Some(provider) = provider {
        let text = provider.text().unwrap_or("another place");
        let instead = wallet(name);
        problems.warning(provider.place, format!("secrets are not read from `{text}`: {instead}"));
        // What is beside it says how to get there.
        return Declared::undeclared(name);
    }
    for (key, value) in entry.entries() {
        if ELSEWHERE.contains(&key.name.as_str()) {
            let instead = wallet(name);
            problems.warning(value.place, format!("`{}` of a keychain entry is not used: {instead}", key.name));
        }
    }
    let alias = entry.get("credential").or_else(|| entry.get("auth"));
    let credential = match alias.map(|alias| (alias, alias.text())) {
        None => name,
        Some((_, Some(text))) if !text.trim().is_empty() && !is_template(text) => text,
        Some((alias, _)) => {
            let instead = wallet(name);
            problems.warning(alias.place, format!("a credential is named by its alias as it is: {instead}"));
            name
        }
    };
    let mut fields = std::collections::BTreeMap::new();
    for (key, field) in entry.get("map").map(Node::entries).unwrap_or_default() {
        match field.text() {
            Some(text) => drop(fields.insert(key.name.clone(), text.to_owned())),
            None => problems.warning(field.place, "`map` has names of fields, which are text"),
        }
    }
    Declared { credential: credential.to_owned(), fields }
}

/// Whether an entry says that its value is not one of the wallet's, which is told of it in any case.
pub(super) fn is_from_elsewhere(entry: &Node) -> bool {
    let is_foreign = |provider: &Node| provider.text().is_none_or(|text| !OURS.contains(&text));
    entry.get("provider").is_some_and(is_foreign) || ELSEWHERE.iter().any(|key| entry.has(key))
}

fn wallet(name: &str) -> String {
    format!("the wallet's credential `{name}` is; `noetl credential add {name}` makes it")
}
