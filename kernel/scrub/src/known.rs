//! Secrets the server knows, because they came out of its wallet.
//!
//! Where a shape is a guess, these are certain: each is masked in all its [`forms`](crate::values), in whatever text it
//! turns up. There is one set for each tenant. What a tenant gets to see is masked by its own set alone: a tenant who calls
//! the word `status` a secret must not change what another reads, nor find out by trying which words are secrets of
//! others. All sets together are used where nobody but the operator looks.
//!
//! To learn a value is cheap: its forms are made before anything is locked, and what looks for all of them is made by the
//! first one who needs it afterwards, once for all that was learned meanwhile.
//!
//! Invariants:
//! 1. What is learned is masked in every text that is looked at from then on, on every thread.
//! 2. A set is bounded ([`MOST_BYTES`]); beyond that the value goes that was not opened for the longest. Every use of a
//!    credential is an opening, so what running executions work with stays, and a tenant pushes out its own alone.
//! 3. Values cannot be read out of a set.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::forms;
use crate::values::{Values, is_findable};

/// Bytes of the forms of all values of a set. Far more than a tenant has in use: a token of usual length has some 2 KiB of
/// them. What looks for them has a state for each byte, so this bounds its memory as well.
const MOST_BYTES: usize = 4 << 20;
/// Longer values are looked for in pieces of this size, so that a part of one is found too.
const PIECE: usize = 4 << 10;

/// A set of known values.
#[derive(Default)]
pub struct Known {
    learned: Mutex<Learned>,
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

#[derive(Default)]
struct Learned {
    all: HashMap<Arc<str>, Entry>,
    /// Of all forms.
    bytes: usize,
    /// Counts openings.
    now: u64,
}

struct Entry {
    forms: Arc<[String]>,
    /// When it was opened last.
    opened: u64,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.forms.iter().map(String::len).sum()
    }
}

/// Without the values.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("values", &self.learned.lock().all.len()).finish()
    }
}

impl Known {
    /// Masks a value from now on. One that is too short to be told from other text is not learned.
    pub fn learn(&self, value: &str) {
        for piece in pieces(value.trim()).into_iter().filter(|piece| is_findable(piece)) {
            if self.learned.lock().reopened(piece) {
                continue;
            }
            let forms: Arc<[String]> = forms::of(piece).into_iter().collect();
            let mut learned = self.learned.lock();
            learned.add(piece, forms);
            self.changes.fetch_add(1, Ordering::Release);
        }
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
        let (after, forms): (u64, Vec<Arc<[String]>>) = {
            let learned = self.learned.lock();
            let forms = learned.all.values().map(|entry| entry.forms.clone());
            (self.changes.load(Ordering::Acquire), forms.collect())
        };
        let values = Arc::new(Values::of_forms(forms.iter().map(|forms| &**forms)));
        self.built.store(Arc::new(Built { after, values: values.clone() }));
        values
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values().mask(text)
    }

    /// JSON without the values; it is JSON still.
    pub fn mask_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values().mask_json(text)
    }
}

impl Learned {
    /// Whether it is there; if so, it was opened just now.
    fn reopened(&mut self, value: &str) -> bool {
        self.now += 1;
        let Some(entry) = self.all.get_mut(value) else { return false };
        entry.opened = self.now;
        true
    }

    fn add(&mut self, value: &str, forms: Arc<[String]>) {
        self.now += 1;
        let entry = Entry { forms, opened: self.now };
        self.bytes += entry.bytes();
        if let Some(before) = self.all.insert(value.into(), entry) {
            self.bytes -= before.bytes();
        }
        while self.bytes > MOST_BYTES {
            let oldest = self.all.iter().min_by_key(|(_, entry)| entry.opened).map(|(value, _)| value.clone());
            let Some(entry) = oldest.and_then(|oldest| self.all.remove(&oldest)) else { break };
            self.bytes -= entry.bytes();
        }
    }
}

/// A value, or its parts when it is long.
fn pieces(value: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), value);
    while rest.len() > 2 * PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
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

/// Masks a tenant's secret from now on.
pub fn learn_for(tenant: &str, value: &str) {
    let known = of_tenant(tenant).unwrap_or_else(|| {
        TENANTS.rcu(|tenants| {
            let mut tenants = (**tenants).clone();
            tenants.entry(tenant.to_owned()).or_default();
            tenants
        });
        of_tenant(tenant).unwrap_or_default()
    });
    known.learn(value);
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
mod tests {
    use super::*;

    #[test]
    fn what_is_learned_is_masked_from_then_on() {
        let known = Known::default();
        assert_eq!(known.mask("token abcdef-1"), "token abcdef-1");
        known.learn("abcdef-1\n");
        known.learn("short");
        assert_eq!(known.mask("token abcdef-1 and short"), "token [REDACTED] and short");
        assert_eq!(known.mask_json(r#"{"a":"abcdef-1"}"#), r#"{"a":"[REDACTED]"}"#);
        assert!(!format!("{known:?}").contains("abcdef"));
    }

    #[test]
    fn a_set_is_bounded_and_forgets_what_was_not_opened_for_the_longest() {
        let known = Known::default();
        let value = |n: usize| format!("{n:04}").repeat(PIECE / 2);
        let size = |n: usize| forms::of(&value(n)).iter().map(String::len).sum::<usize>();
        let fit = MOST_BYTES / size(0);
        assert!((1..=fit).all(|n| size(n) == size(0)), "one takes the place of one");
        (0..fit).for_each(|n| known.learn(&value(n)));
        known.learn(&value(0));
        known.learn(&value(fit));
        assert_eq!(known.mask(&value(1)), value(1));
        for n in [0, 2, fit] {
            assert_eq!(known.mask(&value(n)), "[REDACTED]", "{n}");
        }
    }

    #[test]
    fn a_long_value_is_found_in_parts_too() {
        let known = Known::default();
        let long: String = (0..4_000).map(|n| format!("ü{n:x}")).collect();
        known.learn(&long);
        assert_eq!(known.mask(&long).replace("[REDACTED]", ""), "");
        assert!(known.mask(&long[..long.floor_char_boundary(long.len() / 2)]).starts_with("[REDACTED]"));
    }

    #[test]
    fn a_tenants_secrets_are_masked_in_its_own_texts_and_in_the_operators() {
        learn_for("acme", "only-of-acme");
        let masked = |tenant| of_tenant(tenant).map(|known| known.mask("only-of-acme").into_owned());
        assert_eq!(masked("acme").as_deref(), Some("[REDACTED]"));
        assert_eq!(masked("other"), None);
        assert_eq!(mask_for("acme", "an only-of-acme"), "an [REDACTED]");
        assert_eq!(mask_for("other", "only-of-acme"), "only-of-acme");
        learn_for("beta", "only-of-beta");
        assert_eq!(mask_for_operator("only-of-acme, only-of-beta"), "[REDACTED], [REDACTED]");
    }

    #[test]
    fn threads_that_learn_at_once_lose_nothing() {
        let known = Known::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let known = &known;
                scope.spawn(move || (0..25).for_each(|n| known.learn(&format!("value-{thread}-{n:02}"))));
            }
        });
        for (thread, n) in (0..4).flat_map(|thread| (0..25).map(move |n| (thread, n))) {
            assert_eq!(known.mask(&format!("value-{thread}-{n:02}")), "[REDACTED]");
        }
    }

    #[test]
    fn what_looks_for_values_is_made_once_for_all_that_was_learned() {
        let known = Known::default();
        known.learn("first-value");
        known.learn("second-value");
        let values = known.values();
        known.learn("first-value");
        assert!(Arc::ptr_eq(&values, &known.values()), "a value that is known already changes nothing");
        known.learn("third-value");
        assert!(!Arc::ptr_eq(&values, &known.values()));
        assert!(known.values().are_in("a third-value") && !values.are_in("a third-value"));
    }
}
