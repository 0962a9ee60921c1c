//! Memory: what the hub holds, and how much it may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The limits of a hub.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// If objects and events need more memory than this, in bytes, the next [`tick`](crate::Hub::tick) removes events and
    /// closes clusters. Objects that watchers still hold count, too. Between two ticks, the memory can exceed it.
    pub memory: usize,
    /// An event stays in the window at least for this time, unless the memory exceeds its limit. kube-apiserver keeps
    /// events for at least 75 s (`eventFreshDuration` in its cacher).
    pub fresh: Duration,
    /// No event stays in the window for longer.
    pub oldest: Duration,
    /// A watcher that allows bookmarks gets one after this time without an event, if the version has changed.
    pub bookmarks: Duration,
}

/// The memory in use, in bytes. Several hubs can share it.
#[derive(Debug, Default)]
pub struct Usage {
    bytes: AtomicUsize,
}

/// A part of the memory in use. Dropping it ends the use.
#[derive(Debug)]
pub struct Charge {
    usage: Arc<Usage>,
    bytes: usize,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 96 << 20,
            fresh: Duration::from_secs(2 * 60),
            oldest: Duration::from_secs(10 * 60),
            bookmarks: Duration::from_secs(15),
        }
    }
}

// === impl Usage ===

impl Usage {
    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts memory until the charge is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { usage: Arc::clone(self), bytes }
    }
}

// === impl Charge ===

impl Charge {
    /// The memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.usage.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
