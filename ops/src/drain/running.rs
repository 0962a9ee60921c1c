//! Which tasks are running, by name. A drain that was given up reports them to the operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts per name. Names are literals, so there are few of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    counts: Arc<Mutex<Vec<(&'static str, usize)>>>,
}

/// One running task; dropping it takes the task out of the count.
#[derive(Debug)]
pub(super) struct Entry {
    running: Running,
    /// The place of its name. No name is ever removed.
    index: usize,
}

// === impl Running ===

impl Running {
    pub(super) fn enter(&self, name: &'static str) -> Entry {
        let mut counts = self.lock();
        let is_same = |known: &'static str| std::ptr::eq(known, name) || known == name;
        let index = counts.iter().position(|(known, _)| is_same(known)).unwrap_or_else(|| {
            counts.push((name, 0));
            counts.len() - 1
        });
        counts[index].1 += 1;
        drop(counts);
        Entry { running: self.clone(), index }
    }

    /// The names of what is running, and how many of each.
    pub(super) fn names(&self) -> Vec<(&'static str, usize)> {
        let mut names: Vec<_> = self.lock().iter().filter(|(_, count)| *count > 0).copied().collect();
        names.sort_unstable();
        names
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(&'static str, usize)>> {
        // No code that can panic runs under this lock, so a poisoned list is consistent.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Entry ===

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some((_, count)) = self.running.lock().get_mut(self.index) {
            *count = count.saturating_sub(1);
        }
    }
}
