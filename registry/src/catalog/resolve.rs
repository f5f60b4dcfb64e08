//! Which version serves a call: binding, then pin, then channel, then what is compiled into the binary.
//!
//! A binding that cannot serve is an error, never a silent fall back to what it was put there to replace:
//! the replaced service may let in whom the override keeps out. A service whose running version stopped
//! being overridable serves itself again.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_contract::{PluginPath, ServiceName, Tenant, Version};
use serde::Serialize;

use super::error::ResolveError;
use super::state::{Entry, State};
use crate::names::ChannelName;

/// What a call asks for beyond the name of the service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// None is `stable`.
    pub channel: Option<ChannelName>,
    /// Exactly this version of exactly this path: bindings, pins and channels are left aside.
    pub version: Option<Version>,
}

/// Why this version serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Binding,
    /// The tenant's pin, or a version that the call itself names.
    Pin,
    Channel,
    Embedded,
}

impl Source {
    pub fn name(self) -> &'static str {
        match self {
            Source::Binding => "binding",
            Source::Pin => "pin",
            Source::Channel => "channel",
            Source::Embedded => "embedded",
        }
    }
}

/// Where the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesAt {
    /// In the payload store, under the entry's digest.
    Payload,
    Embedded(&'static [u8]),
}

/// What serves a call.
#[derive(Debug, Clone)]
pub struct Resolved {
    pub entry: Arc<Entry>,
    pub source: Source,
    pub bytes: BytesAt,
}

/// A component compiled into the binary.
#[derive(Debug, Clone)]
pub(super) struct Builtin {
    pub entry: Arc<Entry>,
    pub bytes: &'static [u8],
}

/// The events' state together with what is compiled in.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub state: &'a State,
    pub builtins: &'a BTreeMap<PluginPath, Builtin>,
}

impl View<'_> {
    pub fn resolve(
        &self,
        tenant: &Tenant,
        service: &ServiceName,
        selector: &Selector,
    ) -> Result<Resolved, ResolveError> {
        if service.owner().is_some_and(|owner| owner != *tenant) {
            return Err(ResolveError::Foreign { path: service.clone(), tenant: tenant.clone() });
        }
        if let Some(version) = &selector.version {
            return self.exactly(service, version, Source::Pin).ok_or_else(|| self.no_version(service, version));
        }
        match self.state.binding(tenant, service) {
            Some(to) => self.by_binding(tenant, service, to, selector),
            None => self.unbound(tenant, service, selector),
        }
    }

    fn by_binding(
        &self,
        tenant: &Tenant,
        service: &ServiceName,
        to: &PluginPath,
        selector: &Selector,
    ) -> Result<Resolved, ResolveError> {
        // The channel a call names is one of the plugin that serves; the service itself is judged by what
        // everyone else gets.
        let replaced = self.unbound(tenant, service, &Selector::default())?;
        if !replaced.entry.manifest.overridable {
            return self.unbound(tenant, service, selector);
        }
        let broken = |problem: String| ResolveError::BindingBroken {
            tenant: tenant.clone(),
            service: service.clone(),
            to: to.clone(),
            problem,
        };
        let mut serving = self.unbound(tenant, to, selector).map_err(|error| broken(error.to_string()))?;
        let (world, wanted) = (serving.entry.manifest.world, replaced.entry.manifest.world);
        if world != wanted {
            return Err(broken(format!("it is a {world} and not a {wanted}")));
        }
        serving.source = Source::Binding;
        Ok(serving)
    }

    /// Pin, channel, embedded.
    pub fn unbound(&self, tenant: &Tenant, path: &PluginPath, selector: &Selector) -> Result<Resolved, ResolveError> {
        if let Some(version) = self.state.pin(tenant, path) {
            return self.exactly(path, version, Source::Pin).ok_or_else(|| ResolveError::PinBroken {
                tenant: tenant.clone(),
                path: path.clone(),
                version: version.clone(),
            });
        }
        self.by_channel(path, selector.channel.as_ref())
    }

    /// What a channel serves to whoever has neither pin nor binding.
    pub fn by_channel(&self, path: &PluginPath, channel: Option<&ChannelName>) -> Result<Resolved, ResolveError> {
        let plugin = self.state.plugin(path);
        let stable = ChannelName::stable();
        let name = channel.unwrap_or(&stable);
        let known = plugin.and_then(|plugin| plugin.channels.get(name));
        if let Some(entry) =
            known.and_then(|channel| channel.current.as_ref()).and_then(|version| plugin?.live(version))
        {
            return Ok(Resolved { entry: entry.clone(), source: Source::Channel, bytes: BytesAt::Payload });
        }
        match self.builtins.get(path) {
            // A channel nobody made is an error even where a component is compiled in: the caller meant
            // something that is not there.
            Some(builtin) if known.is_some() || *name == stable => Ok(builtin.resolved()),
            None if plugin.is_none_or(|plugin| plugin.entries().next().is_none()) => {
                Err(ResolveError::NotFound(path.clone()))
            }
            _ => Err(ResolveError::NoChannel {
                path: path.clone(),
                channel: name.clone(),
                known: plugin.into_iter().flat_map(|plugin| plugin.channels.keys().cloned()).collect(),
            }),
        }
    }

    /// One version of one path, wherever it is.
    pub fn exactly(&self, path: &PluginPath, version: &Version, source: Source) -> Option<Resolved> {
        if let Some(entry) = self.state.live(path, version) {
            return Some(Resolved { entry: entry.clone(), source, bytes: BytesAt::Payload });
        }
        let builtin = self.builtins.get(path).filter(|builtin| builtin.entry.version == *version)?;
        Some(builtin.resolved())
    }

    fn no_version(&self, path: &PluginPath, version: &Version) -> ResolveError {
        match self.known_versions(path) {
            known if known.is_empty() => ResolveError::NotFound(path.clone()),
            known => ResolveError::NoVersion { path: path.clone(), version: version.clone(), known },
        }
    }

    /// All versions of a path that can serve, in semver order.
    pub fn known_versions(&self, path: &PluginPath) -> Vec<Version> {
        let pushed = self.state.plugin(path).into_iter().flat_map(|plugin| plugin.entries());
        let builtin = self.builtins.get(path).map(|builtin| &builtin.entry);
        let mut known: Vec<Version> = pushed.chain(builtin).map(|entry| entry.version.clone()).collect();
        known.sort();
        known.dedup();
        known
    }
}

impl Builtin {
    fn resolved(&self) -> Resolved {
        Resolved { entry: self.entry.clone(), source: Source::Embedded, bytes: BytesAt::Embedded(self.bytes) }
    }
}
