//! The times of a hub.

use std::time::Duration;

/// How long a hub keeps events, and when it sends bookmarks.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// An event stays in the window at least for this time, unless the hub must free memory. kube-apiserver keeps events
    /// for at least 75 s (`eventFreshDuration` in its cacher).
    pub fresh: Duration,
    /// No event stays in the window for longer.
    pub oldest: Duration,
    /// A watcher that allows bookmarks gets one after this time without an event, if the version has changed.
    pub bookmarks: Duration,
}

// === impl Limits ===

impl Default for Limits {
    fn default() -> Self {
        Self {
            fresh: Duration::from_secs(2 * 60),
            oldest: Duration::from_secs(10 * 60),
            bookmarks: Duration::from_secs(15),
        }
    }
}
