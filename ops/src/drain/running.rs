//! Which tasks are running, by name. A drain that was given up reports them to the operator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts per name. Names are literals, so their number is limited.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    counts: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

/// One running task; dropping it takes the task out of the count.
#[derive(Debug)]
pub(super) struct Entry {
    running: Running,
    name: &'static str,
}

// === impl Running ===

impl Running {
    pub(super) fn enter(&self, name: &'static str) -> Entry {
        *self.lock().entry(name).or_default() += 1;
        Entry { running: self.clone(), name }
    }

    /// The names of what is running, and how many of each.
    pub(super) fn names(&self) -> Vec<(&'static str, usize)> {
        self.lock().iter().filter(|(_, count)| **count > 0).map(|(name, count)| (*name, *count)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        // No code that can panic runs under this lock, so a poisoned map is consistent.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Entry ===

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(count) = self.running.lock().get_mut(self.name) {
            *count = count.saturating_sub(1);
        }
    }
}
