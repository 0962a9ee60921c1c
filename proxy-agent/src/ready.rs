//! What readiness counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tunnels that are up.
#[derive(Debug, Default)]
pub struct Tunnels(AtomicUsize);

/// One tunnel, for as long as it is held.
#[derive(Debug)]
pub struct Up(Arc<Tunnels>);

// === impl Tunnels ===

impl Tunnels {
    /// Counts one more.
    pub fn one_more(self: &Arc<Self>) -> Up {
        self.0.fetch_add(1, Ordering::Relaxed);
        Up(Arc::clone(self))
    }

    /// How many are up.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl Up ===

impl Drop for Up {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
