//! How many connections nobody uses there may be.
//!
//! Each is a descriptor here and a process there. A tenant can have any number of credentials, so a bound for each of them
//! is none in all: at most [`MOST_OF_ONE`] are kept for a tenant and [`MOST`] for all. A connection that finds no place is
//! closed, and the next script makes another.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_contract::Tenant;
use parking_lot::Mutex;

const MOST: usize = 128;
const MOST_OF_ONE: usize = 32;

/// Places of all tenants.
#[derive(Debug, Clone, Default)]
pub(super) struct Places(Arc<Mutex<HashMap<Tenant, usize>>>);

/// The place of one connection, until it is used again or closed.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    tenant: Tenant,
}

impl Places {
    pub(super) fn take(&self, tenant: &Tenant) -> Option<Place> {
        let mut taken = self.0.lock();
        let own = taken.get(tenant).copied().unwrap_or(0);
        if own >= MOST_OF_ONE || taken.values().sum::<usize>() >= MOST {
            return None;
        }
        taken.insert(tenant.clone(), own + 1);
        Some(Place { places: self.clone(), tenant: tenant.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock();
        if let Some(own) = taken.get_mut(&self.tenant) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_for_a_tenant_and_in_all() {
        let places = Places::default();
        let take = |tenant: &str, count: usize| -> Vec<Place> {
            let tenant = Tenant::new(tenant).expect("a name");
            (0..count).filter_map(|_| places.take(&tenant)).collect()
        };
        let greedy = take("greedy", MOST);
        assert_eq!(greedy.len(), MOST_OF_ONE);
        let others: Vec<Place> = (0..MOST).flat_map(|number| take(&format!("t{number}"), 1)).collect();
        assert_eq!(others.len(), MOST - MOST_OF_ONE);
        drop(greedy);
        assert_eq!(take("late", 1).len(), 1);
        drop(others);
        assert!(places.0.lock().is_empty());
    }
}
