//! Whose connections are kept, and how many at most.
//!
//! A connection that is kept is a descriptor of the whole server's that nobody uses. Each tenant has a client of its
//! own, so that no connection serves two of them: there are logins that hold for a connection. A client keeps at most
//! [`OF_ORIGIN`] connections to an origin; at most [`MOST_OF_ONE`] origins of a tenant and [`MOST`] of all have any.
//! A request to one more is sent by a client that keeps nothing, which is slower and never refused.
//!
//! An origin counts from its first request until its last connection has surely been closed. A tenant without any has no
//! client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noetl_contract::Tenant;
use parking_lot::Mutex;

/// Connections to one origin, and for how long: enough for a loop over pages, and soon gone.
pub(super) const OF_ORIGIN: usize = 4;
pub(super) const KEPT_FOR: Duration = Duration::from_secs(15);
/// Unused connections are looked for as often as they are kept for.
const SURELY_CLOSED: Duration = Duration::from_secs(2 * 15 + 1);
pub(super) const MOST_OF_ONE: usize = 32;
/// With four connections each this leaves room in the 1024 descriptors that a process usually has.
const MOST: usize = 96;

/// Those who trust any certificate share no connection with those who do not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Whose {
    pub(super) tenant: Tenant,
    pub(super) verified: bool,
}

struct OfTenant {
    client: reqwest::Client,
    origins: HashMap<String, Origin>,
}

struct Origin {
    /// Requests that have not ended.
    open: usize,
    used: Instant,
}

type Clients = Arc<Mutex<HashMap<Whose, OfTenant>>>;

#[derive(Default)]
pub(super) struct Kept(Clients);

/// Held until the answer was read or dropped.
pub(super) struct Keeping {
    clients: Clients,
    whose: Whose,
    origin: String,
}

impl Kept {
    /// The client that keeps connections to this origin; none if there are too many origins already.
    pub(super) fn client<E>(
        &self,
        whose: &Whose,
        origin: String,
        make: impl FnOnce() -> Result<reqwest::Client, E>,
    ) -> Result<Option<(reqwest::Client, Keeping)>, E> {
        let mut clients = self.0.lock();
        clients.retain(|_, of| {
            of.origins.retain(|_, origin| origin.open > 0 || origin.used.elapsed() < SURELY_CLOSED);
            !of.origins.is_empty()
        });
        let is_known = clients.get(whose).is_some_and(|of| of.origins.contains_key(&origin));
        let count = |own: bool| -> usize {
            let counted = clients.iter().filter(|(other, _)| !own || other.tenant == whose.tenant);
            counted.map(|(_, of)| of.origins.len()).sum()
        };
        if !is_known && (count(true) >= MOST_OF_ONE || count(false) >= MOST) {
            return Ok(None);
        }
        if !clients.contains_key(whose) {
            clients.insert(whose.clone(), OfTenant { client: make()?, origins: HashMap::new() });
        }
        let Some(of) = clients.get_mut(whose) else { return Ok(None) };
        let counted = of.origins.entry(origin.clone()).or_insert_with(|| Origin { open: 0, used: Instant::now() });
        counted.open += 1;
        let keeping = Keeping { clients: self.0.clone(), whose: whose.clone(), origin };
        Ok(Some((of.client.clone(), keeping)))
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let mut clients = self.clients.lock();
        if let Some(origin) = clients.get_mut(&self.whose).and_then(|of| of.origins.get_mut(&self.origin)) {
            origin.open = origin.open.saturating_sub(1);
            origin.used = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whose(tenant: &str, verified: bool) -> Whose {
        Whose { tenant: Tenant::new(tenant).expect("a name"), verified }
    }

    fn keeps(kept: &Kept, whose: &Whose, origin: usize) -> Option<Keeping> {
        let made = kept.client(whose, format!("http://a{origin}"), || Ok::<_, ()>(reqwest::Client::new()));
        made.expect("a client").map(|(_, keeping)| keeping)
    }

    #[test]
    fn origins_are_bounded_for_a_tenant_and_in_all() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kept = Kept::default();
        let greedy = whose("greedy", true);
        let used = (0..MOST_OF_ONE + 10).filter(|origin| keeps(&kept, &greedy, *origin).is_some()).count();
        assert_eq!(used, MOST_OF_ONE);
        assert!(keeps(&kept, &greedy, 0).is_some(), "what is kept is used again");
        assert!(keeps(&kept, &whose("greedy", false), 0).is_none(), "both ways to trust are one tenant's");
        let others: usize = (0..MOST).filter(|at| keeps(&kept, &whose(&format!("t{at}"), true), 0).is_some()).count();
        assert_eq!(others, MOST - MOST_OF_ONE);
        assert!(kept.0.lock().len() <= MOST);
    }

    #[test]
    fn an_origin_counts_until_its_connections_are_closed() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let kept = Kept::default();
        let one = whose("one", true);
        let open = keeps(&kept, &one, 0);
        drop(keeps(&kept, &one, 1));
        let long_ago = Instant::now().checked_sub(SURELY_CLOSED);
        let Some(long_ago) = long_ago else { return };
        kept.0.lock().values_mut().flat_map(|of| of.origins.values_mut()).for_each(|origin| origin.used = long_ago);
        drop(keeps(&kept, &whose("two", true), 0));
        let origins: Vec<String> = kept.0.lock().get(&one).expect("a client").origins.keys().cloned().collect();
        assert_eq!(origins, ["http://a0"], "one request still runs");
        drop(open);
    }
}
