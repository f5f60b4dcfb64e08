//! Secrets the server knows, because they came out of its wallet.
//!
//! Where a shape is a guess, these are certain: each is found in all its [`forms`](crate::values), in whatever text it
//! turns up. There is one set for each tenant. What a tenant gets to see is masked by its own set alone: a tenant who calls
//! the word `status` a secret must not change what another reads, nor find out by trying which words are secrets of
//! others. All sets together are used where nobody but the operator looks.
//!
//! What people read is masked. Data that goes on has in the place of a secret what stands for it ([`Data`]).
//!
//! To learn a value is cheap: its forms are made before anything is locked, and what looks for all of them is made by the
//! first one who needs it afterwards, once for all that was learned meanwhile.
//!
//! Invariants:
//! 1. What is learned is found in every text that is looked at from then on, on every thread.
//! 2. A set is bounded ([`learned`](crate::learned)), and a tenant pushes out its own alone.
//! 3. Values cannot be read out of a set.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use noetl_contract::placeholder::{COMPUTED, Seal};
use parking_lot::Mutex;

use crate::data::Data;
use crate::forms;
use crate::learned::{self, Learned, Place, Standing};
use crate::values::{Values, is_findable};

/// A set of known values.
#[derive(Default)]
pub struct Known {
    learned: Mutex<Learned>,
    /// What placeholders of the tenant have on them, from when the first was written.
    seal: Mutex<Option<Seal>>,
    /// Counts changes of what was learned; changed under the lock of `learned`.
    changes: AtomicU64,
    built: ArcSwap<Built>,
    /// Held by the one who builds, so that others wait for it instead of doing the same.
    building: Mutex<()>,
}

/// What looks for the values, as they were after so many changes.
#[derive(Default)]
struct Built {
    after: u64,
    values: Arc<Values>,
}

/// A field of a credential, as far as it decides what stands for its value.
#[derive(Debug, Clone, Copy)]
pub struct Field<'f> {
    pub alias: &'f str,
    pub field: &'f str,
    pub revision: u64,
    /// Whether the wallet has the value, and did not fetch it.
    pub kept: bool,
}

/// Without the values.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("values", &self.learned.lock().len()).finish()
    }
}

impl Known {
    /// Masks a value from now on that nothing stands for. One that is too short to be told from other text is not learned.
    pub fn learn(&self, value: &str) {
        self.add(value, None);
    }

    /// The same of a value that is used now; its placeholder stands for it.
    pub fn learn_field(&self, seal: &Seal, field: Field<'_>, value: &str) {
        let standing = Standing {
            place: Place { alias: field.alias.into(), field: field.field.into() },
            placeholder: seal.write(field.alias, field.field).into(),
            computed: seal.write(field.alias, COMPUTED).into(),
            revision: field.revision,
            kept: field.kept,
        };
        self.seal.lock().get_or_insert_with(|| seal.clone());
        self.add(value, Some(standing));
    }

    fn add(&self, value: &str, standing: Option<Standing>) {
        let trimmed = value.trim();
        if !is_findable(trimmed) {
            return;
        }
        // What has blanks around it is not what its placeholder would put in.
        let standing = standing.map(|standing| (standing, value == trimmed));
        let standing = standing.and_then(|(standing, same)| same.then_some(standing));
        if self.learned.lock().reopened(trimmed, standing.as_ref()) {
            return;
        }
        // Of values that are not used any more there can be many.
        let forms = if standing.is_some() { forms::of_all_parts(trimmed) } else { forms::of_parts(trimmed) };
        let mut learned = self.learned.lock();
        learned.add(trimmed, forms, standing);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Nothing stands for what a credential had any more.
    pub fn retire(&self, alias: &str) {
        let mut learned = self.learned.lock();
        learned.retire(alias);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// What looks for the values; whoever has it goes on with what was known then.
    pub fn values(&self) -> Arc<Values> {
        let built = self.built.load();
        if built.after == self.changes.load(Ordering::Acquire) {
            return built.values.clone();
        }
        let _building = self.building.lock();
        let built = self.built.load();
        if built.after == self.changes.load(Ordering::Acquire) {
            return built.values.clone();
        }
        let (after, all) = {
            let learned = self.learned.lock();
            (self.changes.load(Ordering::Acquire), learned.all())
        };
        let values = Arc::new(Values::of(learned::known(&all), self.seal.lock().clone()));
        self.built.store(Arc::new(Built { after, values: values.clone() }));
        values
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values().mask(text)
    }
}

static TENANTS: LazyLock<ArcSwap<HashMap<String, Arc<Known>>>> = LazyLock::new(ArcSwap::default);

/// What is known of a tenant's secrets; nothing as long as none was opened.
pub fn of_tenant(tenant: &str) -> Option<Arc<Known>> {
    TENANTS.load().get(tenant).cloned()
}

/// What looks for a tenant's secrets; nothing as long as there is nothing to look for.
pub fn values_of(tenant: &str) -> Option<Arc<Values>> {
    Some(of_tenant(tenant)?.values()).filter(|values| !values.is_empty())
}

/// What rewrites data of a tenant's; nothing as long as there is nothing to look for.
pub fn data_of(tenant: &str) -> Option<Data> {
    values_of(tenant).map(Data::new)
}

/// Masks a tenant's secret from now on.
pub fn learn_for(tenant: &str, value: &str) {
    set_of(tenant).learn(value);
}

/// The set of a tenant, made if there is none.
pub fn set_of(tenant: &str) -> Arc<Known> {
    of_tenant(tenant).unwrap_or_else(|| {
        TENANTS.rcu(|tenants| {
            let mut tenants = (**tenants).clone();
            tenants.entry(tenant.to_owned()).or_default();
            tenants
        });
        of_tenant(tenant).unwrap_or_default()
    })
}

/// A text without the secrets of a tenant.
pub fn mask_for<'t>(tenant: &str, text: &'t str) -> Cow<'t, str> {
    values_of(tenant).map_or(Cow::Borrowed(text), |values| values.mask(text))
}

/// A text without the secrets of any tenant, for the operator's eyes: what is masked in it tells which words are secrets.
pub fn mask_for_operator(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for known in TENANTS.load().values() {
        let masked = match known.mask(&clean) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        };
        clean = masked.map_or(clean, Cow::Owned);
    }
    clean
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
