//! Names of languages in `source.language`.
//!
//! The contract knows no language: a name is the last segment of the path at which its interpreter lives, so a new
//! language is a plugin that is pushed and nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{InvalidId, PluginPath};

/// Where interpreters live.
const HOME: &str = "system/interpreters";

/// A checked name, such as `python`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language(String);

impl Language {
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        if text.contains('/') || PluginPath::new(format!("{HOME}/{text}")).is_err() {
            return Err(InvalidId {
                what: "language",
                given: text.chars().take(100).collect(),
                rule: "use the name of an interpreter of the server, such as `python` or `js`",
            });
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The plugin that runs programs of the language.
    pub fn interpreter(&self) -> PluginPath {
        PluginPath::new(format!("{HOME}/{}", self.0)).expect("checked when the name was made")
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Language {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<Language> for String {
    fn from(language: Language) -> String {
        language.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_where_its_interpreter_lives() {
        assert_eq!(Language::new("python").expect("valid").interpreter().as_str(), "system/interpreters/python");
        for bad in ["", "Python", "a/b", "../x", "python 3"] {
            assert!(Language::new(bad).is_err(), "{bad}");
        }
    }
}
