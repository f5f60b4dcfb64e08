//! Names that cross crates: tenant, plugin path, version and digest.
//!
//! Each is checked once, here, with a message that says what a right one looks like.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Version of a plugin: semver, immutable once pushed.
pub type Version = semver::Version;

/// A name that did not have the right form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{given}` is not valid: {rule}")]
pub struct InvalidId {
    pub what: &'static str,
    pub given: String,
    pub rule: &'static str,
}

const SEGMENT_RULE: &str = "use 1 to 64 of a-z, 0-9, `_` and `-`, starting with a letter";
const PATH_RULE: &str = "use two to six segments joined by `/` (for example `acme/orders/enrich`), each of 1 to 64 \
     of a-z, 0-9, `_` and `-`, starting with a letter";

/// First path segments no tenant can have: they carry the platform's own components.
pub const RESERVED: [&str; 2] = ["system", "tools"];

fn is_segment(text: &str) -> bool {
    let mut bytes = text.bytes();
    matches!(bytes.next(), Some(b'a'..=b'z'))
        && text.len() <= 64
        && bytes.all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
}

/// Whose data and plugins something belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tenant(String);

impl Tenant {
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidId> {
        let name = name.into();
        if RESERVED.contains(&name.as_str()) {
            return Err(InvalidId { what: "tenant", given: name, rule: "`system` and `tools` are reserved" });
        }
        if !is_segment(&name) {
            return Err(InvalidId { what: "tenant", given: name, rule: SEGMENT_RULE });
        }
        Ok(Self(name))
    }

    /// The tenant of a server nobody has divided yet.
    pub fn main() -> Self {
        Self("main".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a component lives in the catalog: `system/<name>`, `tools/<name>` or `<tenant>/...`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginPath(String);

/// A service is named by the path of the component that serves it when nothing overrides it.
pub type ServiceName = PluginPath;

impl PluginPath {
    pub fn new(path: impl Into<String>) -> Result<Self, InvalidId> {
        let path = path.into();
        let segments = path.split('/').count();
        if !(2..=6).contains(&segments) || !path.split('/').all(is_segment) {
            return Err(InvalidId { what: "plugin path", given: path, rule: PATH_RULE });
        }
        Ok(Self(path))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn first(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    /// The tenant that owns the path; none for the platform's own.
    pub fn owner(&self) -> Option<Tenant> {
        (!self.is_reserved()).then(|| Tenant(self.first().to_owned()))
    }

    /// `system/` and `tools/`: pushed by an administrator only.
    pub fn is_reserved(&self) -> bool {
        RESERVED.contains(&self.first())
    }

    /// `<tenant>/system/<name>`: made to replace a system service for that tenant.
    pub fn is_tenant_service(&self) -> bool {
        !self.is_reserved() && self.0.split('/').nth(1) == Some("system")
    }
}

/// The sha256 of a component's or payload's bytes, always computed by us.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Of all that a reader has, a piece of it in memory at a time.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let (mut hash, mut piece) = (Sha256::new(), vec![0; 64 << 10]);
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(Self(hash.finalize().into())),
                Ok(count) => hash.update(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn from_bytes(raw: [u8; 32]) -> Self {
        Self(raw)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Enough of it for a person to recognise.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.short())
    }
}

impl FromStr for Digest {
    type Err = InvalidId;

    /// Accepts `sha256:<hex>` and the bare 64 digits.
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let mut raw = [0; 32];
        hex::decode_to_slice(digits, &mut raw).map_err(|_| InvalidId {
            what: "digest",
            given: text.chars().take(100).collect(),
            rule: "use `sha256:` and 64 hexadecimal digits",
        })?;
        Ok(Self(raw))
    }
}

macro_rules! string_id {
    ($id:ty, $new:path) => {
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl FromStr for $id {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                $new(text)
            }
        }
        impl TryFrom<String> for $id {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                $new(text)
            }
        }
        impl From<$id> for String {
            fn from(id: $id) -> String {
                id.0
            }
        }
    };
}
string_id!(Tenant, Tenant::new);
string_id!(PluginPath, PluginPath::new);

impl TryFrom<String> for Digest {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}
impl From<Digest> for String {
    fn from(digest: Digest) -> String {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_owner_and_its_ring_class() {
        let path = |text: &str| PluginPath::new(text).expect("valid");
        assert_eq!(path("acme/orders/enrich").owner(), Some(Tenant::new("acme").expect("valid")));
        assert!(path("system/auth").is_reserved() && path("tools/http").owner().is_none());
        assert!(path("acme/system/auth").is_tenant_service());
        assert!(!path("acme/orders/system").is_tenant_service());
    }

    #[test]
    fn names_that_could_escape_a_folder_or_collide_are_refused() {
        for bad in
            ["", "acme", "acme/", "/acme", "acme//x", "acme/..", "Acme/x", "acme/x y", "a/b/c/d/e/f/g", "acme/1x"]
        {
            assert!(PluginPath::new(bad).is_err(), "{bad:?} was accepted");
        }
        for bad in ["system", "tools", "", "a b", "../x", "1st"] {
            assert!(Tenant::new(bad).is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_digest_survives_its_text_form() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.hex().parse(), Ok(digest));
        assert!("sha256:abc".parse::<Digest>().is_err());
    }
}
