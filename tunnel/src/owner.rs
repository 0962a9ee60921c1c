//! Owners of unread bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A party that shares a [budget](crate::Budget) with others, such as a virtual cluster. Copies are the same owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner(usize);

// === impl Owner ===

impl Owner {
    /// The owner of all streams that have no other.
    pub const NOBODY: Self = Self(0);

    /// A new owner.
    #[expect(clippy::new_without_default, reason = "each call returns a different owner")]
    pub fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
