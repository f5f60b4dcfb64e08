//! Rings and capabilities, read from `rings.toml`.
//!
//! The table is data so that an operator, the documentation and the tests read the same thing the linker
//! obeys. It is compiled in: a server cannot be talked into another table by its environment.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::ids::{InvalidId, PluginPath};

/// How far a component is trusted, least first; the order is that of the derive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ring {
    Pure,
    User,
    Tenant,
    System,
}

/// One package of the contract that a component can be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capability {
    Log,
    Metrics,
    Clock,
    Random,
    Kv,
    Objects,
    Payload,
    HttpClient,
    Secrets,
    Files,
    Sql,
    Nats,
    Process,
}

impl Ring {
    pub const ALL: [Ring; 4] = [Ring::Pure, Ring::User, Ring::Tenant, Ring::System];

    /// The ring a component gets: what its path allows, cut to what the pusher may give.
    pub fn of(path: &PluginPath, privilege: Ring) -> Ring {
        let by_path = if path.is_reserved() {
            Ring::System
        } else if path.is_tenant_service() {
            Ring::Tenant
        } else {
            Ring::User
        };
        by_path.min(privilege)
    }

    pub fn name(self) -> &'static str {
        match self {
            Ring::Pure => "pure",
            Ring::User => "user",
            Ring::Tenant => "tenant",
            Ring::System => "system",
        }
    }

    /// Whether the harmless part of WASI is linked.
    pub fn has_wasi(self) -> bool {
        TABLE.ring[&self].wasi
    }

    pub fn meaning(self) -> &'static str {
        &TABLE.ring[&self].meaning
    }

    pub fn capabilities(self) -> CapabilitySet {
        Capability::ALL.into_iter().filter(|capability| capability.rings().contains(&self)).collect()
    }
}

impl Capability {
    pub const ALL: [Capability; 13] = [
        Capability::Log,
        Capability::Metrics,
        Capability::Clock,
        Capability::Random,
        Capability::Kv,
        Capability::Objects,
        Capability::Payload,
        Capability::HttpClient,
        Capability::Secrets,
        Capability::Files,
        Capability::Sql,
        Capability::Nats,
        Capability::Process,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Capability::Log => "log",
            Capability::Metrics => "metrics",
            Capability::Clock => "clock",
            Capability::Random => "random",
            Capability::Kv => "kv",
            Capability::Objects => "objects",
            Capability::Payload => "payload",
            Capability::HttpClient => "http-client",
            Capability::Secrets => "secrets",
            Capability::Files => "files",
            Capability::Sql => "sql",
            Capability::Nats => "nats",
            Capability::Process => "process",
        }
    }

    /// The WIT package, without a version: `noetl:kv`.
    pub fn package(self) -> &'static str {
        &TABLE.capability[&self].package
    }

    /// The rings that may hold it.
    pub fn rings(self) -> &'static [Ring] {
        &TABLE.capability[&self].rings
    }

    /// Capabilities whose types it speaks in, so that it is of no use without them.
    pub fn needs(self) -> &'static [Capability] {
        &TABLE.capability[&self].needs
    }

    /// The capability an import such as `noetl:kv/kv@0.1.0` belongs to.
    pub fn of_import(import: &str) -> Option<Capability> {
        let package = import.split('/').next()?;
        Capability::ALL.into_iter().find(|capability| capability.package() == package)
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Ring {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Ring::ALL.into_iter().find(|ring| ring.name() == text).ok_or_else(|| InvalidId {
            what: "ring",
            given: text.to_owned(),
            rule: "use pure, user, tenant or system",
        })
    }
}

impl FromStr for Capability {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Capability::ALL.into_iter().find(|capability| capability.name() == text).ok_or_else(|| InvalidId {
            what: "capability",
            given: text.to_owned(),
            rule: "use log, metrics, clock, random, kv, objects, payload, http-client, secrets, files, sql, nats or process",
        })
    }
}

/// A set of capabilities as one word, because it is part of the key of every linker and instance template.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<Capability>", into = "Vec<Capability>")]
pub struct CapabilitySet(u32);

impl CapabilitySet {
    pub const EMPTY: CapabilitySet = CapabilitySet(0);

    pub fn all() -> Self {
        Capability::ALL.into_iter().collect()
    }

    pub fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }

    pub fn insert(&mut self, capability: Capability) {
        self.0 |= 1 << capability as u32;
    }

    pub fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in `self` and not in `other`.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        let mut set = Self::EMPTY;
        capabilities.into_iter().for_each(|capability| set.insert(capability));
        set
    }
}

impl From<CapabilitySet> for Vec<Capability> {
    fn from(set: CapabilitySet) -> Self {
        set.iter().collect()
    }
}

impl From<Vec<Capability>> for CapabilitySet {
    fn from(list: Vec<Capability>) -> Self {
        list.into_iter().collect()
    }
}

impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let names: Vec<_> = self.iter().map(Capability::name).collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    order: Vec<Ring>,
    ring: BTreeMap<Ring, RingRow>,
    capability: BTreeMap<Capability, CapabilityRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RingRow {
    meaning: String,
    wasi: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilityRow {
    package: String,
    rings: Vec<Ring>,
    #[serde(default)]
    needs: Vec<Capability>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let table: Table = toml::from_str(include_str!("../rings.toml")).expect("rings.toml is compiled in and tested");
    assert_eq!(table.order, Ring::ALL, "the order of the file is the order of the type");
    table
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_for_every_ring_and_capability() {
        assert_eq!(TABLE.order, Ring::ALL);
        assert!(Ring::ALL.iter().all(|ring| TABLE.ring.contains_key(ring)));
        assert!(Capability::ALL.iter().all(|capability| TABLE.capability.contains_key(capability)));
    }

    #[test]
    fn a_more_trusted_ring_never_has_less() {
        for pair in Ring::ALL.windows(2) {
            assert!(pair[0].capabilities().minus(pair[1].capabilities()).is_empty());
        }
    }

    #[test]
    fn the_ring_comes_from_path_and_privilege_alone() {
        let ring = |path: &str, privilege| Ring::of(&PluginPath::new(path).expect("valid"), privilege);
        assert_eq!(ring("system/auth", Ring::System), Ring::System);
        assert_eq!(ring("system/auth", Ring::Pure), Ring::Pure);
        assert_eq!(ring("acme/system/auth", Ring::System), Ring::Tenant);
        assert_eq!(ring("acme/orders/enrich", Ring::System), Ring::User);
    }
}
