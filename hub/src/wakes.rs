//! Watchers to wake.

use std::task::Waker;

/// The wakers of watchers that can make progress. A waker can run code of the driver, so the driver wakes them after it
/// has released the lock of the hub.
#[derive(Debug, Default)]
#[must_use = "watchers that are not woken wait forever"]
pub struct Wakes {
    wakers: Vec<Waker>,
}

// === impl Wakes ===

impl Wakes {
    /// Wakes all watchers.
    pub fn wake(self) {
        self.wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn add(&mut self, waker: Option<Waker>) {
        self.wakers.extend(waker);
    }
}
