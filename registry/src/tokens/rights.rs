//! Rights that no privilege includes: each is given to a token by name.
//!
//! A privilege says how far a token reaches; the highest has everything below it, and the administrator's token has the
//! highest from the first start on. What should not come along with that is a right: nobody has it until somebody asks for
//! it, and the log says who gave it to which token.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A right of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Right {
    /// To be answered with the values of credentials.
    #[serde(rename = "credential:reveal")]
    CredentialReveal,
}

impl Right {
    pub fn name(self) -> &'static str {
        match self {
            Right::CredentialReveal => "credential:reveal",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
