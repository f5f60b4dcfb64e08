//! Secrets as playbooks know them: by the name of a credential and of a field, and never by value.
//!
//! A template that reads `keychain.<name>.<field>` gives a placeholder, a text of fixed form that the host replaces where
//! a request leaves for a host the credential is bound to. So results, variables and events have the placeholder, and
//! every step that passes it on to a tool passes on the secret without having it. What tells it from the same text in data
//! is its tag, made with a seal that the kernel gives each execution and no template can read.
//!
//! The form is the contract's (`noetl_contract::placeholder`), which this crate does not depend on; a test of the whole
//! holds the two against each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What the seal is called among the values an execution is started with.
pub const SEAL: &str = "NOETL~SEAL";

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
    pub fn placeholder(&self, seal: Option<&str>, field: &str) -> String {
        placeholder(seal, &self.credential, self.fields.get(field).map_or(field, String::as_str))
    }
}

/// What stands for a field of a credential. The tag at its end is made with the seal that the execution was given: data
/// that has a text of this form in it has no tag that fits. Without a seal there is none, and it stands for nothing.
pub fn placeholder(seal: Option<&str>, alias: &str, field: &str) -> String {
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
    if let Some(seal) = seal {
        text.push('~');
        text.push_str(&tag(seal, alias, field));
    }
    text.push_str("~END");
    text
}

/// HMAC-SHA256 of both names, each with its length before it; half of it.
fn tag(seal: &str, alias: &str, field: &str) -> String {
    let mut block = [0u8; 64];
    let key = seal.as_bytes();
    match block.get_mut(..key.len()) {
        Some(start) => start.copy_from_slice(key),
        None => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let mut inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36));
    for name in [alias, field] {
        inner.update((name.len() as u64).to_le_bytes());
        inner.update(name.as_bytes());
    }
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner.finalize());
    hex::encode(&outer.finalize()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_credential_and_fields() {
        let plain = Declared::undeclared("pg");
        assert_eq!(plain.placeholder(None, "password"), "NOETL~SECRET~pg~password~END");
        let fields = BTreeMap::from([("key".to_owned(), "api key".to_owned())]);
        let named = Declared { credential: "main/openai".to_owned(), fields };
        assert_eq!(named.placeholder(None, "key"), "NOETL~SECRET~main.2Fopenai~api.20key~END");
        assert_eq!(named.placeholder(None, "token"), "NOETL~SECRET~main.2Fopenai~token~END");
    }

    #[test]
    fn a_tag_depends_on_seal_and_names() {
        let tagged = placeholder(Some("seal"), "pg", "password");
        let middle = tagged.strip_prefix("NOETL~SECRET~pg~password~").and_then(|rest| rest.strip_suffix("~END"));
        assert!(middle.is_some_and(|tag| tag.len() == 32), "{tagged}");
        let tag = |seal: &str, alias: &str, field: &str| tag(seal, alias, field);
        let all = [
            tag("seal", "pg", "password"),
            tag("other", "pg", "password"),
            tag("seal", "p", "gpassword"),
            tag("seal", "pg", "user"),
            tag(&"long".repeat(40), "pg", "user"),
        ];
        assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), all.len());
    }
}
