//! Names of the playbook's `keychain` where a tool is told its credential.
//!
//! A name that the playbook declares means the same in `auth: mydb` as in `{{ keychain.mydb.password }}`: the credential it
//! stands for. Tools know aliases only, so names become aliases here, after templates were rendered and before the call.
//! What is not declared is an alias already.

use serde_json::{Map, Value as Json};

use super::{Tool, early};
use crate::keychain::Keychain;

type Fields = Map<String, Json>;

/// Fields of a tool that name a credential.
pub(crate) const NAMED: [&str; 2] = ["auth", "credential"];
/// The ends of a transfer, each of which has fields of its own.
pub(crate) const ENDS: [&str; 2] = ["source", "target"];
/// What the alias is called where the field is a map, as the tools look for it.
pub(crate) const IN_MAP: [&str; 4] = ["credential", "alias", "name", "key"];

/// Puts aliases in the place of names. `kind`: of the tool that gets the fields.
pub(super) fn resolve(keychain: &Keychain, kind: &str, fields: &mut Fields) {
    if keychain.is_empty() {
        return;
    }
    resolve_named(keychain, fields);
    if kind == "transfer" {
        let ends = fields.iter_mut().filter(|(name, _)| ENDS.contains(&name.as_str()));
        ends.filter_map(|(_, end)| end.as_object_mut()).for_each(|end| resolve_named(keychain, end));
    }
}

/// Whether a tool may be told a name, so that the declarations have to go with it.
pub(crate) fn may_name(tool: &Tool) -> bool {
    let names = |fields: &Fields| NAMED.iter().any(|name| fields.contains_key(*name));
    let (kind, fields) = match tool.kind.as_str() {
        "wasm" => (early::called(&tool.config).unwrap_or_default(), &tool.input),
        kind => (kind, &tool.config),
    };
    let mut ends = ENDS.iter().filter_map(|end| fields.get(*end)?.as_object());
    // All of an input that is one expression is known when it is rendered.
    names(fields) || fields.contains_key(super::WHOLE) || kind == "transfer" && ends.any(names)
}

fn resolve_named(keychain: &Keychain, fields: &mut Fields) {
    for name in NAMED {
        if let Some(alias) = fields.get_mut(name).and_then(|given| alias(given, true))
            && let Some(declared) = keychain.get(alias.trim())
        {
            *alias = declared.credential.clone();
        }
    }
}

/// The alias by itself, or in a map, or in the only map in that.
fn alias(given: &mut Json, may_be_below: bool) -> Option<&mut String> {
    match given {
        Json::String(text) => Some(text),
        Json::Object(fields) => {
            let name = IN_MAP.into_iter().find(|name| fields.get(*name).is_some_and(Json::is_string));
            match name {
                Some(name) => alias(fields.get_mut(name)?, false),
                None if may_be_below && fields.len() == 1 => {
                    alias(fields.values_mut().next().filter(|below| below.is_object())?, false)
                }
                None => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::keychain::Declared;

    #[test]
    fn a_declared_name_becomes_its_credential_wherever_a_tool_looks_for_one() {
        let keychain = Keychain::from([("mydb".to_owned(), Declared::undeclared("pg"))]);
        for (kind, given, expected) in [
            ("postgres", json!({"auth": "mydb"}), json!({"auth": "pg"})),
            ("postgres", json!({"credential": " mydb "}), json!({"credential": "pg"})),
            ("postgres", json!({"auth": {"credential": "mydb"}}), json!({"auth": {"credential": "pg"}})),
            ("nats", json!({"auth": {"n": {"key": "mydb"}}}), json!({"auth": {"n": {"key": "pg"}}})),
            ("nats", json!({"auth": "other", "key": "mydb"}), json!({"auth": "other", "key": "mydb"})),
            (
                "http",
                json!({"auth": {"a": 1, "b": 2}, "json": "mydb"}),
                json!({"auth": {"a": 1, "b": 2}, "json": "mydb"}),
            ),
            (
                "transfer",
                json!({"source": {"auth": "mydb"}, "target": {"auth": {"credential": "mydb"}}}),
                json!({"source": {"auth": "pg"}, "target": {"auth": {"credential": "pg"}}}),
            ),
            ("http", json!({"source": {"auth": "mydb"}}), json!({"source": {"auth": "mydb"}})),
        ] {
            let Json::Object(mut fields) = given else { panic!("an object") };
            resolve(&keychain, kind, &mut fields);
            assert_eq!(Json::Object(fields), expected, "{kind}");
        }
    }
}
