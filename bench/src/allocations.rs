//! How often and how much a piece of code allocates.
//!
//! The allocator of the whole program, which passes everything on to the system's and counts only while it is asked to:
//! a count that were always kept would slow down what allocates most, and flatter what it is compared with.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::Serialize;

/// The allocator.
pub(crate) struct Counting;

/// What was allocated, whether or not it was freed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Allocations {
    /// How many times; growing counts as one.
    pub(crate) count: u64,
    /// How much in all.
    pub(crate) bytes: u64,
}

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// What all threads allocate while `run` runs; there should be no other one. Calls do not nest.
pub(crate) fn count(run: impl FnOnce()) -> Allocations {
    COUNT.store(0, Ordering::Relaxed);
    BYTES.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::SeqCst);
    run();
    IS_COUNTING.store(false, Ordering::SeqCst);
    Allocations { count: COUNT.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

fn note(size: usize) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size as u64, Ordering::Relaxed);
    }
}

// === impl Counting ===

#[expect(unsafe_code, reason = "an allocator can be written in no other way; every call is passed on as it came")]
// SAFETY: each method gives its arguments to the same method of `System`, and returns what that returns, so the
// contract that the caller keeps is `System`'s and what it gets is `System`'s. `note` touches atomics only: it neither
// allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: see above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: see above.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[test]
    fn what_a_closure_allocates_is_counted() {
        // Other tests may run beside this one, so there is no upper bound.
        let counted = count(|| {
            for _ in 0..100 {
                black_box(Vec::<u8>::with_capacity(1_000));
            }
        });
        assert!(counted.count >= 100 && counted.bytes >= 100_000, "{counted:?}");
    }
}
