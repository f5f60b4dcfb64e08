//! What differs between two sets of things, for people (`+` and `-`) and for programs.

use std::collections::BTreeSet;

use noetl_contract::CapabilitySet;
use serde_json::{Value, json};

use crate::output::{Paint, printable};

/// Items that came and went, each in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    pub added: Vec<String>,
    pub removed: Vec<String>,
}

impl Changes {
    pub fn between<S: AsRef<str>>(before: impl IntoIterator<Item = S>, after: impl IntoIterator<Item = S>) -> Self {
        let set = |items: &mut dyn Iterator<Item = S>| -> BTreeSet<String> {
            items.map(|item| item.as_ref().to_owned()).collect()
        };
        let (before, after) = (set(&mut before.into_iter()), set(&mut after.into_iter()));
        Self {
            added: after.difference(&before).cloned().collect(),
            removed: before.difference(&after).cloned().collect(),
        }
    }

    pub fn of_capabilities(before: CapabilitySet, after: CapabilitySet) -> Self {
        let names = |set: CapabilitySet| set.iter().map(|capability| capability.name()).collect();
        Self { added: as_strings(names(after.minus(before))), removed: as_strings(names(before.minus(after))) }
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    pub fn json(&self) -> Value {
        json!({ "added": self.added, "removed": self.removed })
    }

    /// One line an item, indented.
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        let added = self.added.iter().map(|item| paint.good(format!("  + {}", printable(item))));
        let removed = self.removed.iter().map(|item| paint.bad(format!("  - {}", printable(item))));
        added.chain(removed).collect()
    }
}

fn as_strings(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use noetl_contract::Capability;

    use super::*;

    #[test]
    fn what_came_and_what_went_is_told_with_signs() {
        let changes = Changes::between(["a", "b"], ["b", "c"]);
        assert_eq!(changes.lines(Paint::plain()), ["  + c", "  - a"]);
        assert!(Changes::between(["a"], ["a"]).is_empty());
        assert_eq!(changes.json()["added"][0], "c");
    }

    #[test]
    fn capabilities_are_compared_as_sets() {
        let before: CapabilitySet = [Capability::Kv, Capability::Log].into_iter().collect();
        let after: CapabilitySet = [Capability::Log, Capability::HttpClient].into_iter().collect();
        let changes = Changes::of_capabilities(before, after);
        assert_eq!((changes.added, changes.removed), (vec!["http-client".to_owned()], vec!["kv".to_owned()]));
    }
}
