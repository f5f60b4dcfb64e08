//! A bounded memory of things that are made from their key.
//!
//! Two generations: what is used moves into the young one, and when that is full the old one is forgotten. So at most
//! twice the limit is kept, whatever is used often stays, and nothing has to be counted.

use std::borrow::Borrow;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    limit: usize,
    young: BTreeMap<K, V>,
    old: BTreeMap<K, V>,
}

impl<K: Ord, V: Clone> Cache<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, young: BTreeMap::new(), old: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// What is kept for the key, or made now. What cannot be made is not kept.
    pub(crate) fn get_or_make<Q, E>(&mut self, key: &Q, make: impl FnOnce() -> Result<V, E>) -> Result<V, E>
    where
        K: Borrow<Q>,
        Q: Ord + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(value) = self.young.get(key) {
            return Ok(value.clone());
        }
        let (key, value) = match self.old.remove_entry(key) {
            Some(kept) => kept,
            None => (key.to_owned(), make()?),
        };
        if self.young.len() >= self.limit {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value.clone());
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_is_forgotten() {
        let mut cache: Cache<String, u32> = Cache::new(10);
        let mut made = 0;
        for round in 0..100 {
            for key in ["hot".to_owned(), format!("cold {round}")] {
                let value = cache.get_or_make(key.as_str(), || {
                    made += 1;
                    Ok::<_, ()>(made)
                });
                assert!(value.is_ok());
            }
            assert!(cache.young.len() + cache.old.len() <= 20);
        }
        assert_eq!(made, 101, "the hot key was made once, every other key once");
        assert_eq!(cache.get_or_make("bad", || Err(7)), Err(7));
        assert_eq!(cache.get_or_make("bad", || Ok::<_, ()>(8)), Ok(8));
    }
}
