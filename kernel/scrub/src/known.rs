//! Secrets the server knows, because they came out of its wallet.
//!
//! Where a shape is a guess, these are certain: each is masked in all its [`forms`](crate::values), in whatever text it
//! turns up. There is one set for the server, for what its operator and its API show, and one for each tenant, for what
//! goes back to that tenant's own steps. The two differ on purpose: a tenant who calls the word `status` a secret must
//! not change the results of another.
//!
//! Invariants:
//! 1. What is learned is masked in every text that is looked at from then on, on every thread.
//! 2. A set is bounded ([`MOST_BYTES`]); beyond that the value that was learned first is forgotten.
//! 3. Values cannot be read out of a set.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::values::{Values, is_findable};

/// Bytes of all values of a set. Far more than wallets have in use; and what looks for them takes fifty times that.
const MOST_BYTES: usize = 128 << 10;
/// Longer values are looked for in pieces of this size, so that a part of one is found too.
const PIECE: usize = 4 << 10;

/// A set of known values.
#[derive(Default)]
pub struct Known {
    learned: Mutex<Learned>,
    values: ArcSwap<Values>,
}

#[derive(Default)]
struct Learned {
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    all: HashSet<Arc<str>>,
    bytes: usize,
}

/// Without the values.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("values", &self.learned.lock().order.len()).finish()
    }
}

impl Known {
    /// Masks a value from now on. One that is too short to be told from other text is not learned.
    pub fn learn(&self, value: &str) {
        let mut learned = self.learned.lock();
        let mut more = false;
        for piece in pieces(value.trim()) {
            more |= learned.add(piece);
        }
        if more {
            // Under the lock, so that of two that learn at once the later one has both.
            self.values.store(Arc::new(Values::new(learned.order.iter().map(|value| &**value))));
        }
    }

    /// A text without the values.
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values.load().mask(text)
    }

    /// JSON without the values; it is JSON still.
    pub fn mask_json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.values.load().mask_json(text)
    }
}

impl Learned {
    fn add(&mut self, value: &str) -> bool {
        if !is_findable(value) || self.all.contains(value) {
            return false;
        }
        let value: Arc<str> = value.into();
        self.bytes += value.len();
        self.order.push_back(value.clone());
        self.all.insert(value);
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= oldest.len();
            self.all.remove(&oldest);
        }
        true
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

static SERVER: LazyLock<Known> = LazyLock::new(Known::default);
static TENANTS: LazyLock<RwLock<HashMap<String, Arc<Known>>>> = LazyLock::new(RwLock::default);

/// What the server as a whole knows.
pub fn server() -> &'static Known {
    &SERVER
}

/// What is known of a tenant's secrets; nothing as long as none was opened.
pub fn of_tenant(tenant: &str) -> Option<Arc<Known>> {
    TENANTS.read().get(tenant).cloned()
}

/// Masks a tenant's secret from now on: in its results, and in everything the server shows.
pub fn learn_for(tenant: &str, value: &str) {
    server().learn(value);
    let known = of_tenant(tenant).unwrap_or_else(|| TENANTS.write().entry(tenant.to_owned()).or_default().clone());
    known.learn(value);
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
    fn a_set_is_bounded_and_forgets_the_oldest_first() {
        let known = Known::default();
        let value = |n: usize| format!("{n:04}").repeat(PIECE / 2);
        let fit = MOST_BYTES / value(0).len();
        (0..=fit).for_each(|n| known.learn(&value(n)));
        assert_eq!(known.mask(&value(0)), value(0));
        assert_eq!(known.mask(&value(1)), "[REDACTED]");
        assert_eq!(known.mask(&value(fit)), "[REDACTED]");
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
    fn a_tenants_secrets_are_masked_in_its_own_results_alone() {
        learn_for("acme", "only-of-acme");
        let masked = |tenant| of_tenant(tenant).map(|known| known.mask("only-of-acme").into_owned());
        assert_eq!(masked("acme").as_deref(), Some("[REDACTED]"));
        assert_eq!(masked("other"), None);
        assert_eq!(server().mask("only-of-acme"), "[REDACTED]");
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
}
