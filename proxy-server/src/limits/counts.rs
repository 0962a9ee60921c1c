//! Counts by key.

use std::collections::HashMap;
use std::hash::Hash;

/// How often each key is in use. A key that is not in use occupies no memory.
#[derive(Debug)]
pub(super) struct Counts<K>(HashMap<K, usize>);

// === impl Counts ===

impl<K: Eq + Hash> Counts<K> {
    /// The count of a key; 0 if it is not in use.
    pub(super) fn get(&self, key: &K) -> usize {
        self.0.get(key).copied().unwrap_or_default()
    }

    pub(super) fn increment(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Decrements the count of a key that is in use.
    pub(super) fn decrement(&mut self, key: &K) {
        if let Some(count) = self.0.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(key);
            }
        }
    }

    /// The number of keys in use.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}
