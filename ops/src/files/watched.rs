//! A value that may be replaced while it is used.

use std::fmt;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use tokio::sync::watch;

/// The newest valid value that was read from some files. Cheap to clone; all clones see the same value.
pub struct Watched<T>(Arc<Slot<T>>);

/// Reports when a [`Watched`] value was replaced.
#[derive(Clone, Debug)]
pub struct Changes(watch::Receiver<u64>);

/// The reloading side of a [`Watched`]: does not keep it alive.
pub(super) struct Publisher<T>(Weak<Slot<T>>);

struct Slot<T> {
    value: ArcSwap<T>,
    generation: watch::Sender<u64>,
}

// === impl Watched ===

impl<T> Watched<T> {
    /// A value that never changes: given inline instead of in a file, or created at start.
    pub fn fixed(value: T) -> Self {
        Self::shared(Arc::new(value))
    }

    /// Like [`Watched::fixed`], for a value that others hold too.
    pub fn shared(value: Arc<T>) -> Self {
        Self(Arc::new(Slot { value: ArcSwap::new(value), generation: watch::Sender::new(0) }))
    }

    /// The newest value. It stays valid as long as it is held. If two uses must agree, take it once for both.
    pub fn borrow(&self) -> Arc<T> {
        self.0.value.load_full()
    }

    /// Reports replacements from now on.
    pub fn changes(&self) -> Changes {
        Changes(self.0.generation.subscribe())
    }

    pub(super) fn publisher(&self) -> Publisher<T> {
        Publisher(Arc::downgrade(&self.0))
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is often a key.
        f.debug_struct("Watched").field("generation", &*self.0.generation.borrow()).finish_non_exhaustive()
    }
}

// === impl Changes ===

impl Changes {
    /// Waits until the value has been replaced since the last call (several replacements count once). `false` once no
    /// clone of the [`Watched`] is left.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

// === impl Publisher ===

impl<T> Publisher<T> {
    /// Whether a clone of the [`Watched`] is left.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Replaces the value.
    pub(super) fn publish(&self, value: T) {
        if let Some(slot) = self.0.upgrade() {
            slot.value.store(Arc::new(value));
            slot.generation.send_modify(|generation| *generation += 1);
        }
    }
}
