//! The open containers while a value is skipped.

use super::fault::Defect;

/// The maximum depth. The host refuses objects of more than 10,000 levels (`maxNestingDepth` in `scanner.go` of Go's
/// `encoding/json`). But the managed fields of an object in protobuf can have as many below those of the object, and lists and
/// frames of watches add more around it. An object that the host stores must not break what it sends to others.
pub(super) const MAX_DEPTH: usize = 10_100;

/// A stack of bits, one per open container: set for an object. The first 64 levels need no allocation.
pub(super) struct Nesting {
    top: u64,
    below: Vec<u64>,
    depth: usize,
    /// Containers that are open around the value.
    outside: usize,
}

// === impl Nesting ===

impl Nesting {
    pub(super) fn within(outside: usize) -> Self {
        Self { top: 0, below: Vec::new(), depth: 0, outside }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0
    }

    /// Whether the innermost container is an object.
    pub(super) fn in_object(&self) -> bool {
        self.top & 1 == 1
    }

    /// Whether one more container may be opened.
    #[inline]
    pub(super) fn check(&self) -> Result<(), Defect> {
        if self.outside + self.depth >= MAX_DEPTH { Err(Defect::TooDeep) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn open(&mut self, object: bool) -> Result<(), Defect> {
        self.check()?;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.below.push(self.top);
        }
        self.top = self.top << 1 | u64::from(object);
        self.depth += 1;
        Ok(())
    }

    #[inline]
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.top >>= 1;
        if self.depth != 0 && self.depth.is_multiple_of(64) {
            self.top = self.below.pop().expect("pushed when this level was opened");
        }
    }
}
