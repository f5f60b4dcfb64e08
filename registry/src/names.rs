//! Who acts, and the names of channels.

use std::fmt;
use std::str::FromStr;

use noetl_contract::ids::InvalidId;
use noetl_contract::{PluginPath, Tenant};
use serde::{Deserialize, Serialize};

/// Whoever asks for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Name or id of the token, as it appears in the history.
    pub name: String,
    /// None may act for every tenant and on the platform's own paths.
    pub tenant: Option<Tenant>,
}

impl Actor {
    /// The server itself, for instance when it takes back a bad version.
    pub fn server() -> Self {
        Self { name: "server".to_owned(), tenant: None }
    }

    /// Whether the actor may change what lives at a path.
    pub fn owns(&self, path: &PluginPath) -> bool {
        self.tenant.is_none() || self.tenant == path.owner()
    }

    /// Whether the actor may decide for a tenant.
    pub fn speaks_for(&self, tenant: &Tenant) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }
}

/// A movable name for a version: `stable`, `canary`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelName(String);

impl ChannelName {
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidId> {
        let name = name.into();
        let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
        let rest = name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !starts || !rest || name.len() > 32 {
            let rule = "use 1 to 32 of a-z, 0-9 and `-`, starting with a letter, for example `canary`";
            return Err(InvalidId { what: "channel", given: name.chars().take(100).collect(), rule });
        }
        Ok(Self(name))
    }

    /// The channel that calls take when nothing else is said.
    pub fn stable() -> Self {
        Self("stable".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ChannelName {
    fn default() -> Self {
        Self::stable()
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ChannelName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl TryFrom<String> for ChannelName {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<ChannelName> for String {
    fn from(name: ChannelName) -> String {
        name.0
    }
}
