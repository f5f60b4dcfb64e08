//! Secrets as playbooks know them: by the name of a credential and of a field, and never by value.
//!
//! A template that reads `keychain.<name>.<field>` gives a placeholder, a text of fixed form that the host replaces where
//! a request leaves for a host the credential is bound to. So results, variables and events have the placeholder, and
//! every step that passes it on to a tool passes on the secret without having it.
//!
//! The form is the contract's (`noetl_contract::placeholder`), which this crate does not depend on; a test of the whole
//! holds the two against each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The declarations of a playbook, by name.
pub type Keychain = BTreeMap<String, Declared>;

/// One declaration: what a name in templates stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// The alias of the credential.
    pub credential: String,
    /// Fields that are called otherwise in templates than in the credential.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
}

impl Declared {
    /// What a name that is not declared is taken for.
    pub fn undeclared(name: &str) -> Self {
        Self { credential: name.to_owned(), fields: BTreeMap::new() }
    }

    /// The placeholder of a field, by its name in templates.
    pub fn placeholder(&self, field: &str) -> String {
        placeholder(&self.credential, self.fields.get(field).map_or(field, String::as_str))
    }
}

/// What stands for a field of a credential.
pub fn placeholder(alias: &str, field: &str) -> String {
    let mut text = "NOETL~SECRET".to_owned();
    for name in [alias, field] {
        text.push('~');
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!(".{byte:02X}"));
            }
        }
    }
    text.push_str("~END");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_credential_and_fields() {
        let plain = Declared::undeclared("pg");
        assert_eq!(plain.placeholder("password"), "NOETL~SECRET~pg~password~END");
        let fields = BTreeMap::from([("key".to_owned(), "api key".to_owned())]);
        let named = Declared { credential: "main/openai".to_owned(), fields };
        assert_eq!(named.placeholder("key"), "NOETL~SECRET~main.2Fopenai~api.20key~END");
        assert_eq!(named.placeholder("token"), "NOETL~SECRET~main.2Fopenai~token~END");
    }
}
