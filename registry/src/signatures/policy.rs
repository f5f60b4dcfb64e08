//! Which signers a namespace wants.
//!
//! An entry is `NAMESPACE=KEY|KEY`: whatever lies under the namespace needs a signature of one of the keys. `acme/pay/` is
//! what lies under it, `acme/pay` the path itself as well, and neither is `acme/payments`. `*` is every path. All entries that match a path have to be met, so two entries of one namespace ask for two signers, and
//! an entry for a part never loosens the one for the whole.
//!
//! Components compiled into the binary are not asked: they are trusted as the binary is.

use std::fmt;
use std::str::FromStr;

use noetl_contract::{Digest, PluginPath, Version};

use super::{Envelope, PublicKey, about};

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    namespace: String,
    keys: Vec<PublicKey>,
}

impl Requirement {
    fn covers(&self, path: &PluginPath) -> bool {
        let rest = path.as_str().strip_prefix(&self.namespace);
        // A name ends at a slash, its own or the one that follows.
        self.namespace == "*"
            || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || self.namespace.ends_with('/'))
    }
}

impl FromStr for Requirement {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(100).collect();
        let wrong = |what: &str| {
            format!(
                "`{shown}` {what}: write a namespace and the keys of which one must have signed, such as `system/=ed25519:...|ed25519:...`"
            )
        };
        let (namespace, keys) = text.split_once('=').ok_or_else(|| wrong("has no `=`"))?;
        let namespace = namespace.trim();
        let path = namespace.strip_suffix('/').unwrap_or(namespace);
        // A lone first segment is no path of a plugin, but it is a namespace.
        let is_path = PluginPath::new(path).is_ok() || PluginPath::new(format!("{path}/x")).is_ok();
        if namespace != "*" && !is_path {
            return Err(wrong("names no namespace"));
        }
        if namespace != "*" && !namespace.ends_with('/') && !namespace.contains('/') {
            return Err(wrong("names a namespace without its `/` at the end"));
        }
        let keys: Result<Vec<PublicKey>, _> = keys.split('|').map(|key| key.trim().parse()).collect();
        let keys = keys.map_err(|error: super::KeyError| error.to_string())?;
        Ok(Self { namespace: namespace.to_owned(), keys })
    }
}

/// All entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignerPolicy(Vec<Requirement>);

impl SignerPolicy {
    pub fn new(requirements: Vec<Requirement>) -> Self {
        Self(requirements)
    }

    /// Whether what is known about these bytes satisfies every entry that covers the path. Every signature is
    /// verified here and now.
    pub fn check(
        &self,
        path: &PluginPath,
        version: &Version,
        digest: &Digest,
        envelopes: &[Envelope],
    ) -> Result<(), Box<Unsigned>> {
        let mut covering = self.0.iter().filter(|requirement| requirement.covers(path)).peekable();
        if covering.peek().is_none() {
            return Ok(());
        }
        let (signers, _) = about(digest, envelopes);
        match covering.find(|requirement| !requirement.keys.iter().any(|key| signers.contains(key))) {
            None => Ok(()),
            Some(unmet) => Err(Box::new(Unsigned {
                path: path.clone(),
                version: version.clone(),
                namespace: unmet.namespace.clone(),
                accepted: unmet.keys.clone(),
                signers,
                there: false,
            })),
        }
    }
}

/// A version that lacks a signature its namespace wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsigned {
    pub path: PluginPath,
    pub version: Version,
    /// The entry that is not met, and the keys it would take.
    pub namespace: String,
    pub accepted: Vec<PublicKey>,
    /// Who has signed.
    pub signers: Vec<PublicKey>,
    /// Whether the catalog has the version, so that it can be signed where it is. What a push brings is refused and not
    /// kept: whoever brought it knows how to sign it, and says so.
    pub there: bool,
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |keys: &[PublicKey]| keys.iter().map(PublicKey::to_string).collect::<Vec<_>>().join(" or ");
        let Self { path, version, namespace, accepted, signers, there } = self;
        write!(f, "{path} {version} is ")?;
        match signers.as_slice() {
            [] => f.write_str("not signed")?,
            signers => write!(f, "signed by {} only", list(signers))?,
        }
        write!(f, "; `{namespace}` takes what is signed by {} (`policy.signers`)", list(accepted))?;
        if *there {
            write!(
                f,
                ": sign it with `noetl plugin sign {path}@{version} --key NAME`; `noetl key list` shows your keys"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsigned {}
