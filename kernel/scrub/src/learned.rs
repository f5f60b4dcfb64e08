//! What was learned of one tenant's secrets: which values, what stands for each, and for how long they are held.
//!
//! Invariants:
//! 1. For one field of one credential there is one value at a time. The one it had before is held on, and nothing stands for it.
//! 2. What is in the wallet now has a budget of its own ([`MOST_KEPT`]): no token that was fetched and no former value takes
//!    its place. Those share another one ([`MOST_OTHERS`]), and what is not good any more goes first.
//! 3. Within a budget the value goes that was not opened for the longest. Every use of a credential is an opening.

use std::collections::HashMap;
use std::sync::Arc;

use crate::forms::Forms;
use crate::values::{Known, StandIn};

/// Bytes of the forms of all values that are in the wallet now. Far more than a tenant has in use: a token of usual length has
/// some 3 KiB of them. What looks for them has a state for each byte, so this bounds its memory as well.
pub const MOST_KEPT: usize = 4 << 20;
/// The same of all others.
pub const MOST_OTHERS: usize = 2 << 20;

/// Where a value is from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub alias: Arc<str>,
    pub field: Arc<str>,
}

/// What stands for a value.
#[derive(Debug, Clone)]
pub struct Standing {
    pub place: Place,
    pub placeholder: Arc<str>,
    /// What stands for what was made of it.
    pub computed: Arc<str>,
    /// Of the credential: an older one never takes the place of a newer one.
    pub revision: u64,
    /// Whether the value is in the wallet, and not fetched for what is there.
    pub kept: bool,
}

#[derive(Default)]
pub struct Learned {
    all: HashMap<Arc<str>, Entry>,
    /// The value that each place has now.
    now: HashMap<Place, Arc<str>>,
    /// Counts openings.
    openings: u64,
}

#[derive(Default)]
struct Entry {
    forms: Arc<Forms>,
    bytes: usize,
    standing: Vec<Standing>,
    /// When it was opened last.
    opened: u64,
}

impl Entry {
    fn is_kept(&self) -> bool {
        self.standing.iter().any(|standing| standing.kept)
    }
}

impl Learned {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is nothing to learn about a value; if so, it was opened just now.
    pub fn reopened(&mut self, value: &str, standing: Option<&Standing>) -> bool {
        self.openings += 1;
        let Some(entry) = self.all.get_mut(value) else { return false };
        entry.opened = self.openings;
        let Some(new) = standing else { return true };
        let same = |held: &&mut Standing| held.place == new.place && held.kept == new.kept;
        match entry.standing.iter_mut().find(same) {
            Some(held) => {
                held.revision = held.revision.max(new.revision);
                true
            }
            None => false,
        }
    }

    pub fn add(&mut self, value: &str, forms: Forms, standing: Option<Standing>) {
        self.openings += 1;
        let opened = self.openings;
        let standing = standing.filter(|new| self.takes_place(new, value));
        let (value, bytes): (Arc<str>, usize) = (value.into(), forms.bytes());
        let entry = self.all.entry(value.clone()).or_default();
        entry.opened = opened;
        // One that was former before has fewer of them.
        if bytes > entry.bytes {
            (entry.forms, entry.bytes) = (Arc::new(forms), bytes);
        }
        if let Some(new) = standing {
            self.now.insert(new.place.clone(), value);
            entry.standing.retain(|held| held.place != new.place);
            entry.standing.push(new);
            entry.standing.sort_by(|one, other| one.place.alias.cmp(&other.place.alias));
        }
        self.make_room();
    }

    /// Gives the place up for the new one, unless what is there is newer.
    fn takes_place(&mut self, new: &Standing, value: &str) -> bool {
        let Some(before) = self.now.get(&new.place).cloned() else { return true };
        if *before == *value {
            return true;
        }
        let Some(entry) = self.all.get_mut(&before) else { return true };
        if entry.standing.iter().any(|held| held.place == new.place && held.revision > new.revision) {
            return false;
        }
        entry.standing.retain(|held| held.place != new.place);
        true
    }

    /// Nothing stands for the values of a credential any more: it was deleted, or has others from now on.
    pub fn retire(&mut self, alias: &str) {
        self.now.retain(|place, _| *place.alias != *alias);
        for entry in self.all.values_mut() {
            entry.standing.retain(|held| *held.place.alias != *alias);
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        for (kept, most) in [(true, MOST_KEPT), (false, MOST_OTHERS)] {
            let of_kind = |entry: &&Entry| entry.is_kept() == kept;
            let mut bytes: usize = self.all.values().filter(of_kind).map(|entry| entry.bytes).sum();
            while bytes > most {
                let all = self.all.iter().filter(|(_, entry)| entry.is_kept() == kept);
                let first = all.min_by_key(|(_, entry)| (!entry.standing.is_empty(), entry.opened));
                let Some(value) = first.map(|(value, _)| value.clone()) else { break };
                bytes -= self.all.remove(&value).map_or(bytes, |entry| entry.bytes);
                self.now.retain(|_, held| *held != value);
            }
        }
    }

    /// All there is, for what looks for it.
    pub fn all(&self) -> Vec<(Arc<str>, Arc<Forms>, Vec<StandIn>)> {
        let stands = |standing: &Standing| StandIn {
            alias: standing.place.alias.clone(),
            placeholder: standing.placeholder.clone(),
            computed: standing.computed.clone(),
        };
        let one = |(value, entry): (&Arc<str>, &Entry)| {
            (value.clone(), entry.forms.clone(), entry.standing.iter().map(stands).collect())
        };
        self.all.iter().map(one).collect()
    }
}

/// As what looks for it takes it.
pub fn known(all: &[(Arc<str>, Arc<Forms>, Vec<StandIn>)]) -> Vec<Known<'_>> {
    all.iter().map(|(value, forms, stands)| Known { value, forms, stands: stands.clone() }).collect()
}
