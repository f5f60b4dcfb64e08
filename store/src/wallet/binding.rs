//! Where a credential may go: a host, which port of it, and how.
//!
//! Written as `api.example.com`, `*.example.org` or `db.example.com:5432`. A port that is not named is the usual one of what is
//! spoken: 443 of HTTP, 5432 of PostgreSQL. HTTP is encrypted, unless the binding says `http://host:port` itself: a secret
//! that everybody on the way can read goes that way only if somebody has written that down.
//!
//! On the machine itself nobody is on the way, and ports are nobody's in particular: a binding to it means every port that it
//! does not narrow, encrypted or not.

use std::fmt;
use std::net::IpAddr;

use noetl_contract::ids::InvalidId;
use noetl_contract::manifest::HostPattern;
use serde::{Deserialize, Serialize};

const OPEN: &str = "http://";

/// One place. See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Binding {
    pattern: HostPattern,
    /// Also without encryption.
    open: bool,
}

/// How a credential is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Https,
    Http,
    /// By a protocol that is not HTTP, with this port as its usual one.
    Own(u16),
}

impl Way {
    /// That of a request to this address. What is not plainly encrypted counts as not encrypted.
    pub fn of(url: &str) -> Self {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")) { Self::Https } else { Self::Http }
    }

    fn usual_port(self) -> u16 {
        match self {
            Way::Https => 443,
            Way::Http => 80,
            Way::Own(port) => port,
        }
    }
}

impl Binding {
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
        let text = text.into();
        let (open, pattern) = text.strip_prefix(OPEN).map_or((false, text.as_str()), |rest| (true, rest));
        Ok(Self { pattern: HostPattern::new(pattern)?, open })
    }

    /// Whether it covers a host (a name or address without brackets) and port, reached that way.
    pub(super) fn covers(&self, host: &str, port: u16, way: Way) -> bool {
        if !self.pattern.matches(host, port) {
            return false;
        }
        let right_port = self.pattern.as_str().contains(':') || port == way.usual_port();
        is_this_machine(host) || (right_port && (way != Way::Http || self.open))
    }
}

/// By its name or address; what another name leads to is not looked at.
pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.open { OPEN } else { "" }, self.pattern)
    }
}

impl TryFrom<String> for Binding {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::new(text)
    }
}

impl From<Binding> for String {
    fn from(binding: Binding) -> String {
        binding.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_a_port_and_a_way() {
        for (binding, host, port, way, covered) in [
            ("api.example.com", "api.example.com", 443, Way::Https, true),
            ("api.example.com", "API.example.com.", 443, Way::Https, true),
            ("api.example.com", "api.example.com", 80, Way::Http, false),
            ("api.example.com", "api.example.com", 443, Way::Http, false),
            ("api.example.com", "api.example.com", 8443, Way::Https, false),
            ("api.example.com:8443", "api.example.com", 8443, Way::Https, true),
            ("api.example.com:8080", "api.example.com", 8080, Way::Http, false),
            ("http://api.example.com:8080", "api.example.com", 8080, Way::Http, true),
            ("http://api.example.com:8080", "api.example.com", 8080, Way::Https, true),
            ("http://api.example.com:8080", "api.example.com", 80, Way::Http, false),
            ("http://*.example.com", "api.example.com", 80, Way::Http, true),
            ("*.example.com", "api.example.com", 443, Way::Https, true),
            ("*", "evil.example", 8080, Way::Http, false),
            ("db.example.com", "db.example.com", 5432, Way::Own(5432), true),
            ("db.example.com", "db.example.com", 5433, Way::Own(5432), false),
            ("db.example.com:5433", "db.example.com", 5433, Way::Own(5432), true),
            ("127.0.0.1", "127.0.0.1", 8080, Way::Http, true),
            ("127.0.0.1:8080", "127.0.0.1", 8081, Way::Http, false),
            ("localhost", "localhost", 9, Way::Own(4222), true),
            ("*", "::1", 8080, Way::Http, true),
            ("localhost.example.com", "localhost.example.com", 80, Way::Http, false),
        ] {
            let made = Binding::new(binding).expect(binding);
            assert_eq!(made.covers(host, port, way), covered, "{binding}: {host}:{port} {way:?}");
            assert_eq!(made.to_string(), binding);
        }
        for bad in ["https://a.example", "http://", "ftp://a.example", "http://a.example/path", "a b", ""] {
            assert!(Binding::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_not_plainly_encrypted_is_not() {
        assert_eq!((Way::of("https://a/"), Way::of("HTTPS://a/")), (Way::Https, Way::Https));
        for open in ["http://a/?u=https://b", "httpss://a", " https://a", "a", ""] {
            assert_eq!(Way::of(open), Way::Http, "{open}");
        }
    }
}
