//! How often and how much a piece of code allocates.
//!
//! The allocator of the whole program, which passes everything on to the system's and counts only while it is asked to:
//! a count that were always kept would slow down what allocates most, and flatter what it is compared with.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

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

thread_local! {
    /// What this thread has allocated since it was asked to count.
    static COUNTED: Cell<Option<Allocations>> = const { Cell::new(None) };
}

/// What `run` allocates on this thread. Calls do not nest.
pub(crate) fn count(run: impl FnOnce()) -> Allocations {
    COUNTED.set(Some(Allocations { count: 0, bytes: 0 }));
    run();
    COUNTED.take().expect("it was set above, and calls do not nest")
}

fn note(size: usize) {
    if let Some(Allocations { count, bytes }) = COUNTED.get() {
        COUNTED.set(Some(Allocations { count: count + 1, bytes: bytes + size as u64 }));
    }
}

// === impl Counting ===

#[expect(unsafe_code, reason = "an allocator can be written in no other way; every call is passed on as it came")]
// SAFETY: each method gives its arguments to the same method of `System`, and returns what that returns, so the
// contract that the caller keeps is `System`'s and what it gets is `System`'s. `note` touches a thread-local that is
// there from the beginning and has nothing to drop: it neither allocates nor panics.
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
        let counted = count(|| {
            for _ in 0..100 {
                black_box(Vec::<u8>::with_capacity(1_000));
            }
        });
        assert_eq!(counted, Allocations { count: 100, bytes: 100_000 });
    }

    #[test]
    fn growing_counts_as_one() {
        let mut bytes = vec![0_u8; 10];
        assert_eq!(count(|| bytes.reserve_exact(90)), Allocations { count: 1, bytes: 100 });
        assert_eq!(count(|| drop(black_box(bytes))), Allocations { count: 0, bytes: 0 });
    }
}
