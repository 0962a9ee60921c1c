//! The permits and the memory that one request holds while it works on large objects: see
//! [`large_objects`](virtual_cluster::share::large_objects).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tunnel::Reservation;

use virtual_cluster::share::large_objects::Size;

/// The permits and the memory that one request holds while it works on large objects.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Whether its plan now works in its turn, and does not wait for responses.
    pub(super) is_working: AtomicBool,
    held: Mutex<Permits>,
}

#[derive(Debug, Default)]
pub(super) struct Permits {
    pub(super) at_host: Option<(Size, OwnedSemaphorePermit)>,
    /// The permit for the parsed form of a large object.
    pub(super) parsed: Option<OwnedSemaphorePermit>,
    /// The memory that is charged for this request, until [`Turn::end`] or [`Turn::release_memory`].
    pub(super) charges: Vec<Reservation>,
}

// === impl Turn ===

impl Turn {
    /// Whether the plan now works in its turn.
    pub(super) fn is_working(&self) -> &AtomicBool {
        &self.is_working
    }

    /// Releases the charged memory, because nothing that was read is needed any more.
    pub(super) fn release_memory(&self) {
        self.held().charges.clear();
    }

    /// Releases the permit for the parsed form of a large object, so that another cluster can parse one. The plan is
    /// complete, and holds no object in parsed form any more.
    pub(super) fn release_parsed(&self) {
        self.held().parsed = None;
    }

    /// What the request holds.
    pub(super) fn held(&self) -> MutexGuard<'_, Permits> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the permits and the memory.
    pub(super) fn end(&self) {
        self.is_working.store(false, Ordering::Relaxed);
        *self.held() = Permits::default();
    }
}
