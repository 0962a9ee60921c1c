//! Memory: what hubs hold, and how much they may hold.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A memory limit that several hubs share.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    usages: Mutex<Vec<Weak<Usage>>>,
}

/// The memory that a hub uses.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicUsize,
}

/// A part of the memory in use. Dropping it ends the use.
#[derive(Debug)]
pub(crate) struct Charge {
    usage: Arc<Usage>,
    bytes: usize,
}

// === impl Budget ===

impl Budget {
    /// A limit in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, usages: Mutex::default() }
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The memory that all hubs use, in bytes.
    pub fn bytes(&self) -> usize {
        self.usages().iter().map(|usage| usage.bytes()).sum()
    }

    /// The usage of a new hub.
    pub fn usage(&self) -> Arc<Usage> {
        let usage = Arc::new(Usage::default());
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        usages.retain(|usage| usage.strong_count() > 0);
        usages.push(Arc::downgrade(&usage));
        usage
    }

    /// What this hub must free, in bytes. If the memory exceeds the limit, the hub that uses the most must free memory,
    /// because one resource must not take the memory from the others.
    pub fn excess(&self, usage: &Usage) -> usize {
        let usages = self.usages();
        let total: usize = usages.iter().map(|usage| usage.bytes()).sum();
        let largest = usages.iter().map(|usage| usage.bytes()).max().unwrap_or_default();
        if usage.bytes() < largest { 0 } else { total.saturating_sub(self.limit) }
    }

    fn usages(&self) -> Vec<Arc<Usage>> {
        let usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        usages.iter().filter_map(Weak::upgrade).collect()
    }
}

// === impl Usage ===

impl Usage {
    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts memory until the charge is dropped.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { usage: Arc::clone(self), bytes }
    }
}

// === impl Charge ===

impl Charge {
    /// The memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
