//! Patterns of hosts in `http.allow`.
//!
//! A pattern is compared with the host of the address a guest asks for, before any name is resolved; the
//! host crate checks the resolved address on its own.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::InvalidId;

const RULE: &str = "use a lower-case host name such as `api.example.com`, `*.example.org` for every name below one, \
     an address such as `127.0.0.1`, each with `:port` for one port only, or `*` for every host";

/// A checked pattern: `api.example.com`, `*.example.org`, `db.example.com:8443` or `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

impl HostPattern {
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let (name, port) = split_port(&text);
        let name_is_right = name == "*" || is_host(name.strip_prefix("*.").unwrap_or(name));
        let port_is_right = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if !name_is_right || !port_is_right || text.len() > 260 {
            return Err(InvalidId { what: "host pattern", given: text.chars().take(100).collect(), rule: RULE });
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern covers a host (case does not matter, a trailing dot neither) and port.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        let (name, only_port) = split_port(&self.0);
        if only_port.is_some_and(|only| only.parse() != Ok(port)) {
            return false;
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        match name.strip_prefix('*') {
            Some("") => true,
            // What remains starts with a dot, so `*.example.org` never covers `badexample.org`.
            Some(below) => host.len() > below.len() && host.ends_with(below),
            None => host == name,
        }
    }
}

impl HostPattern {
    /// Whether everything the other pattern covers is covered by this one.
    pub fn covers(&self, other: &HostPattern) -> bool {
        let ((name, port), (other_name, other_port)) = (split_port(&self.0), split_port(&other.0));
        let any_port = port.is_none() || port == other_port;
        let name_is_covered = match (name.strip_prefix('*'), other_name.strip_prefix('*')) {
            (Some(""), _) => true,
            (Some(below), Some(other_below)) => other_below.ends_with(below),
            (Some(below), None) => other_name.len() > below.len() && other_name.ends_with(below),
            (None, _) => name == other_name,
        };
        any_port && name_is_covered
    }
}

fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    }
}

fn is_host(name: &str) -> bool {
    !name.is_empty() && name.len() <= 253 && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostPattern {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> String {
        pattern.0
    }
}
