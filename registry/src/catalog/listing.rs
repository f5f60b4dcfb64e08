//! What the catalog holds, for lists and pages. Reads one snapshot; takes no lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use noetl_contract::{PluginPath, ServiceName, Tenant, Version};
use serde::Serialize;

use super::state::{Change, Entry, Plugin};
use super::{Catalog, Resolved, Source, View};
use crate::names::ChannelName;

/// Which entries to list. The default lists all.
#[derive(Debug, Clone, Default)]
pub struct EntryFilter {
    /// Only what this tenant can see: its own paths and the platform's.
    pub visible_to: Option<Tenant>,
    /// Only paths that start with this text.
    pub prefix: Option<String>,
}

/// A version in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    pub entry: Arc<Entry>,
    /// Channels that serve it now.
    pub channels: Vec<ChannelName>,
    /// Compiled into the binary.
    pub embedded: bool,
}

/// All about one path.
#[derive(Debug, Clone, Serialize)]
pub struct PluginView {
    pub path: PluginPath,
    /// In semver order.
    pub versions: Vec<Listed>,
    /// What each channel serves.
    pub channels: BTreeMap<ChannelName, Version>,
    pub pins: BTreeMap<Tenant, Version>,
    /// Tenants for whom another plugin serves in the place of this one.
    pub bindings: BTreeMap<Tenant, PluginPath>,
    /// Services this one is bound to serve.
    pub serves: BTreeMap<Tenant, Vec<ServiceName>>,
}

impl EntryFilter {
    fn takes(&self, path: &PluginPath) -> bool {
        let visible = self.visible_to.as_ref().is_none_or(|tenant| path.owner().is_none_or(|owner| owner == *tenant));
        visible && self.prefix.as_ref().is_none_or(|prefix| path.as_str().starts_with(prefix))
    }
}

impl Catalog {
    /// Every version of every path the filter takes, by path and version.
    pub fn entries(&self, filter: &EntryFilter) -> Vec<Listed> {
        let state = self.ledger.state();
        let view = self.view(&state);
        let mut paths: Vec<&PluginPath> = state.plugins.keys().chain(self.builtins.keys()).collect();
        paths.sort();
        paths.dedup();
        paths.into_iter().filter(|path| filter.takes(path)).flat_map(|path| view.listed(path)).collect()
    }

    /// All about one path; none when it never existed or all its versions are deleted.
    pub fn plugin(&self, path: &PluginPath) -> Option<PluginView> {
        let state = self.ledger.state();
        let view = self.view(&state);
        let versions = view.listed(path);
        if versions.is_empty() {
            return None;
        }
        let of_path = |(key, tenant): &(PluginPath, Tenant)| (key == path).then(|| tenant.clone());
        let mut serves: BTreeMap<Tenant, Vec<ServiceName>> = BTreeMap::new();
        for ((service, tenant), _) in state.bindings.iter().filter(|(_, to)| *to == path) {
            serves.entry(tenant.clone()).or_default().push(service.clone());
        }
        Some(PluginView {
            path: path.clone(),
            versions,
            channels: view.channels(path),
            pins: state.pins.iter().filter_map(|(key, version)| Some((of_path(key)?, version.clone()))).collect(),
            bindings: state.bindings.iter().filter_map(|(key, to)| Some((of_path(key)?, to.clone()))).collect(),
            serves,
        })
    }

    /// Every version some call can reach now without naming it: what channels serve, what tenants are pinned
    /// to, and what is compiled in where nothing else serves.
    pub fn active(&self) -> Vec<Resolved> {
        let state = self.ledger.state();
        let view = self.view(&state);
        let paths: BTreeSet<&PluginPath> = state.plugins.keys().chain(self.builtins.keys()).collect();
        let on_channels = paths.into_iter().flat_map(|path| {
            let channels: Vec<ChannelName> = view.channels(path).into_keys().collect();
            let view = &view;
            channels.into_iter().filter_map(move |name| view.by_channel(path, Some(&name)).ok())
        });
        let pinned = state.pins.iter().filter_map(|((path, _), version)| view.exactly(path, version, Source::Pin));
        on_channels.chain(pinned).collect()
    }

    /// What happened to a path, oldest first. It outlives the path's versions.
    pub fn history(&self, path: &PluginPath) -> Vec<Change> {
        self.ledger.with(|state| {
            let plugin: Option<&Plugin> = state.plugin(path);
            plugin.into_iter().flat_map(|plugin| &plugin.history).map(|change| Change::clone(change)).collect()
        })
    }
}

impl View<'_> {
    fn channels(&self, path: &PluginPath) -> BTreeMap<ChannelName, Version> {
        let named = self.state.plugin(path).into_iter().flat_map(|plugin| plugin.channels.keys().cloned());
        let names = named.chain([ChannelName::stable()]);
        names
            .filter_map(|name| Some((name.clone(), self.by_channel(path, Some(&name)).ok()?.entry.version.clone())))
            .collect()
    }

    fn listed(&self, path: &PluginPath) -> Vec<Listed> {
        let channels = self.channels(path);
        let on = |version: &Version| {
            channels.iter().filter(|(_, served)| *served == version).map(|(name, _)| name.clone()).collect()
        };
        let versions = self.known_versions(path);
        versions
            .iter()
            .filter_map(|version| self.exactly(path, version, Source::Channel))
            .map(|resolved| Listed {
                channels: on(&resolved.entry.version),
                embedded: resolved.source == Source::Embedded,
                entry: resolved.entry,
            })
            .collect()
    }
}
