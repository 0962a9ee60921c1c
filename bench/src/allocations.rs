//! The number and size of the allocations of a piece of code.
//!
//! The program's allocator forwards all calls to the system allocator. It counts only when requested, because counting
//! would slow down the code that allocates most, and distort comparisons.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use serde::Serialize;

/// The allocator.
pub(crate) struct Counting;

/// The allocations of a piece of code, including those that it freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Allocations {
    /// The number of allocations. A reallocation counts as one.
    pub(crate) count: u64,
    /// The total size.
    pub(crate) bytes: u64,
}

thread_local! {
    /// The allocations of this thread since [`count`] was called.
    static COUNTED: Cell<Option<Allocations>> = const { Cell::new(None) };
}

/// Counts what `run` allocates on this thread. Calls cannot be nested.
pub(crate) fn count(run: impl FnOnce()) -> Allocations {
    COUNTED.set(Some(Allocations { count: 0, bytes: 0 }));
    run();
    COUNTED.take().expect("it is set above, and calls are not nested")
}

fn note(size: usize) {
    if let Some(Allocations { count, bytes }) = COUNTED.get() {
        COUNTED.set(Some(Allocations { count: count + 1, bytes: bytes + size as u64 }));
    }
}

// === impl Counting ===

#[expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait; every call is forwarded unchanged")]
// SAFETY: each method passes its arguments to the same method of `System` and returns its result, so the contract is
// that of `System`. `note` uses a thread-local with a constant initializer and without a destructor, so it neither
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
    fn allocations_of_a_closure_are_counted() {
        let counted = count(|| {
            for _ in 0..100 {
                black_box(Vec::<u8>::with_capacity(1_000));
            }
        });
        assert_eq!(counted, Allocations { count: 100, bytes: 100_000 });
    }

    #[test]
    fn a_reallocation_counts_as_one() {
        let mut bytes = vec![0_u8; 10];
        assert_eq!(count(|| bytes.reserve_exact(90)), Allocations { count: 1, bytes: 100 });
        assert_eq!(count(|| drop(black_box(bytes))), Allocations { count: 0, bytes: 0 });
    }
}
