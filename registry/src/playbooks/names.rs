//! Names of playbooks: the path, the catalog id, and whose it is.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use noetl_contract::Tenant;
use noetl_contract::ids::InvalidId;
use serde::{Deserialize, Serialize};

/// The owner of what lives under `system/`, as text. No tenant can have this name.
pub const SHARED: &str = "system";

const PATH_RULE: &str = "use segments of letters, digits, `_`, `.` and `-` joined by `/`, at most 200 bytes, starting \
     with a letter, a digit or `_`, for example `orders/enrich`";

/// Where a playbook lives: `tests/fixtures/playbooks/hello_world`. Paths under `system/` are everybody's. Slashes in front are
/// no part of it: some people write them where a playbook is registered and not where it is called, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlaybookPath(Arc<str>);

impl PlaybookPath {
    pub fn new(path: impl AsRef<str>) -> Result<Self, InvalidId> {
        let path = path.as_ref().trim_start_matches('/');
        let segment = |segment: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
            !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(known)
        };
        let starts = path.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        if !starts || path.len() > 200 || !path.split('/').all(segment) || path == SHARED {
            let given = path.chars().take(250).collect();
            return Err(InvalidId { what: "playbook path", given, rule: PATH_RULE });
        }
        Ok(Self(path.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Under `system/`: seen by every tenant, changed only by whoever may act for the platform.
    pub fn is_shared(&self) -> bool {
        self.0.strip_prefix(SHARED).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for PlaybookPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PlaybookPath {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl TryFrom<String> for PlaybookPath {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<PlaybookPath> for String {
    fn from(path: PlaybookPath) -> String {
        path.0.as_ref().to_owned()
    }
}

/// One version of one playbook, as text `<path>@<version>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CatalogId {
    pub path: PlaybookPath,
    pub version: u32,
}

impl fmt::Display for CatalogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.path, self.version)
    }
}

impl FromStr for CatalogId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let parts = text.rsplit_once('@').and_then(|(path, version)| Some((path, version.parse().ok()?)));
        let Some((path, version)) = parts.filter(|(_, version)| *version > 0) else {
            let rule = "use a path and a version from 1 on, for example `orders/enrich@3`";
            return Err(InvalidId { what: "catalog id", given: text.chars().take(250).collect(), rule });
        };
        Ok(Self { path: PlaybookPath::new(path)?, version })
    }
}

/// Whose a playbook is: a tenant's, or everybody's. As text the tenant, or `system`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Owner {
    Shared,
    Tenant(Tenant),
}

impl Owner {
    /// Whose a path is when `tenant` names it.
    pub fn of(tenant: &Tenant, path: &PlaybookPath) -> Self {
        if path.is_shared() { Self::Shared } else { Self::Tenant(tenant.clone()) }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Shared => SHARED,
            Self::Tenant(tenant) => tenant.as_str(),
        }
    }

    /// The tenant, if it is one's.
    pub fn tenant(&self) -> Option<&Tenant> {
        match self {
            Self::Shared => None,
            Self::Tenant(tenant) => Some(tenant),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for Owner {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        if text == SHARED { Ok(Self::Shared) } else { Tenant::new(text).map(Self::Tenant) }
    }
}

impl From<Owner> for String {
    fn from(owner: Owner) -> String {
        owner.as_str().to_owned()
    }
}
