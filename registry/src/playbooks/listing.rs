//! What there is, for lists and for the scheduler. Reads one snapshot; takes no lock.

use std::ops::Bound;
use std::sync::Arc;

use noetl_contract::Tenant;

use super::Playbooks;
use super::names::{Owner, PlaybookPath, SHARED};
use super::state::{Playbook, PlaybookEntry, State};

/// Which paths to list. The default lists all that are not archived.
#[derive(Debug, Clone, Default)]
pub struct PlaybookFilter {
    /// Only paths that start with this text.
    pub prefix: Option<String>,
    pub kind: Option<String>,
    /// Also paths all of whose versions are archived; each path shows its newest version, archived or not.
    pub include_archived: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlaybookPage {
    /// One version a path, by path.
    pub entries: Vec<Arc<PlaybookEntry>>,
    /// Path to go on after, if there is more.
    pub next: Option<PlaybookPath>,
}

impl PlaybookFilter {
    /// The version a path is shown by.
    fn shown<'a>(&self, playbook: &'a Playbook) -> Option<&'a Arc<PlaybookEntry>> {
        let shown = if self.include_archived { playbook.versions().next_back() } else { playbook.newest() };
        shown.filter(|entry| self.kind.as_ref().is_none_or(|kind| entry.kind == *kind))
    }

    /// The first `limit` of an owner's paths after `after`.
    fn of_owner(
        &self,
        state: &State,
        owner: &str,
        after: Option<&PlaybookPath>,
        limit: usize,
    ) -> Vec<Arc<PlaybookEntry>> {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let paths = state.paths(owner).into_iter().flat_map(|paths| paths.range((from, Bound::Unbounded)));
        paths
            .skip_while(|(path, _)| path.as_str() < prefix)
            .take_while(|(path, _)| path.as_str().starts_with(prefix))
            .filter_map(|(_, playbook)| self.shown(playbook).cloned())
            .take(limit)
            .collect()
    }
}

impl Playbooks {
    /// A page of what a tenant can see: its own paths and those under `system/`. `after` is `next` of the page before.
    pub fn list(
        &self,
        tenant: &Tenant,
        filter: &PlaybookFilter,
        after: Option<&PlaybookPath>,
        size: usize,
    ) -> PlaybookPage {
        let size = size.max(1);
        let mut entries = self.ledger.with(|state| {
            let mut entries = filter.of_owner(state, tenant.as_str(), after, size + 1);
            entries.extend(filter.of_owner(state, SHARED, after, size + 1));
            entries
        });
        entries.sort_by(|one, other| one.path.cmp(&other.path));
        let more = entries.len() > size;
        entries.truncate(size);
        let next = entries.last().filter(|_| more).map(|entry| entry.path.clone());
        PlaybookPage { entries, next }
    }

    /// All versions of a path, oldest first, archived ones too.
    pub fn versions(&self, tenant: &Tenant, path: &PlaybookPath) -> Vec<Arc<PlaybookEntry>> {
        let owner = Owner::of(tenant, path);
        self.ledger.with(|state| {
            state.playbook(owner.as_str(), path).into_iter().flat_map(|playbook| playbook.versions().cloned()).collect()
        })
    }

    /// Of every owner's every path, what the path alone means, if that has a schedule.
    pub fn scheduled(&self) -> Vec<Arc<PlaybookEntry>> {
        self.ledger.with(|state| {
            let newest = state.playbooks().filter_map(Playbook::newest);
            newest.filter(|entry| entry.schedule.is_some()).cloned().collect()
        })
    }
}
