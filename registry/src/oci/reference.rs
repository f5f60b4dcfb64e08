//! Where an artefact is: `oci://registry/repository:tag`, or `@sha256:...` in the place of the tag.
//!
//! The registry is always named. A default one would send what is meant for a company's own registry to a public
//! place as soon as somebody forgets a word.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use oci_client::Reference;

use super::error::OciError;

pub const SCHEME: &str = "oci://";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciReference {
    registry: String,
    repository: String,
    /// A tag or a digest; none when it was left out.
    pub(super) name: Option<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name {
    Tag(String),
    Digest(String),
}

impl OciReference {
    /// Whether a word of the command line means an artefact.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    pub fn registry(&self) -> &str {
        &self.registry
    }

    pub fn has_name(&self) -> bool {
        self.name.is_some()
    }

    /// The same repository under a tag, in letters a tag may have.
    pub fn with_tag(&self, tag: &str) -> Self {
        let tag = tag.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' });
        Self { name: Some(Name::Tag(tag.collect())), ..self.clone() }
    }

    /// Whether the registry is on this machine, where TLS protects nothing.
    pub fn is_this_machine(&self) -> bool {
        let host = match self.registry.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => self.registry.split(':').next().unwrap_or_default(),
        };
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    pub(super) fn client_form(&self) -> Result<Reference, OciError> {
        let (registry, repository) = (self.registry.clone(), self.repository.clone());
        match &self.name {
            Some(Name::Tag(tag)) => Ok(Reference::with_tag(registry, repository, tag.clone())),
            Some(Name::Digest(digest)) => Ok(Reference::with_digest(registry, repository, digest.clone())),
            None => {
                Err(OciError::Reference { given: self.to_string(), problem: "it has no tag and no digest".to_owned() })
            }
        }
    }
}

impl FromStr for OciReference {
    type Err = OciError;
    fn from_str(text: &str) -> Result<Self, OciError> {
        let wrong = |problem: &str| OciError::Reference { given: text.to_owned(), problem: problem.to_owned() };
        let rest = text.strip_prefix(SCHEME).ok_or_else(|| wrong("it does not start with `oci://`"))?;
        let (registry, path) = rest.split_once('/').ok_or_else(|| wrong("it names no repository"))?;
        if !(registry.contains(['.', ':']) || registry == "localhost") || registry.contains('@') {
            return Err(wrong("it does not start with the name of a registry"));
        }
        // The name is cut off by hand: the parser would put `latest` where none is given.
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_named = last.contains([':', '@']);
        let whole: Reference = rest.parse().map_err(|error: oci_client::ParseError| wrong(&error.to_string()))?;
        let name = match (whole.digest(), whole.tag()) {
            (Some(digest), _) => Some(Name::Digest(digest.to_owned())),
            (None, Some(tag)) if is_named => Some(Name::Tag(tag.to_owned())),
            _ => None,
        };
        Ok(Self { registry: registry.to_owned(), repository: whole.repository().to_owned(), name })
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.registry, self.repository)?;
        match &self.name {
            Some(Name::Tag(tag)) => write!(f, ":{tag}"),
            Some(Name::Digest(digest)) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}
