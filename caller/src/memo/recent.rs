//! A bounded map that forgets what has not been used for the longest time, roughly.
//!
//! Entries are in a young and an old half, and use moves an entry to the young half. When the young half is full, it becomes
//! the old one, and the entries of the previous old half go. This is O(1) and needs no list.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Values of type `V` by keys of type `K`.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    half: usize,
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

// === impl Recent ===

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Holds at most `capacity` entries, and at least two.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { half: (capacity / 2).max(1), young: HashMap::new(), old: HashMap::new() }
    }

    /// The value of a key, which is now the most recently used one.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.get_mut(key).map(|value| &*value)
    }

    /// A mutable reference to the value of a key, which is now the most recently used one.
    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// Forgets a key.
    pub(crate) fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.young.remove(key);
        self.old.remove(key);
    }

    /// Forgets all values for which `keep` returns false.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&V) -> bool) {
        for half in [&mut self.young, &mut self.old] {
            half.retain(|_, value| keep(value));
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        (self.young, self.old) = (HashMap::new(), HashMap::new());
    }

    /// The number of entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_entries_are_kept() {
        let mut recent = Recent::new(4);
        for key in 0..100 {
            recent.insert(key, key);
            assert_eq!(recent.get(&0), Some(&0));
            assert_eq!(recent.get(&key), Some(&key));
            assert!(recent.len() <= 4);
        }
        assert_eq!(recent.get(&1), None);
        recent.remove(&0);
        assert_eq!(recent.get(&0), None);
        recent.clear();
        assert_eq!(recent.len(), 0);
    }
}
