//! The wrapper around everything that serde and the YAML library pass to each other.

use std::cell::RefCell;
use std::path::Path;

use super::keys::Keys;
use crate::config::problem::Problems;

/// What all levels of a document share.
pub(super) struct Reading<'a> {
    pub(super) directory: &'a Path,
    pub(super) problems: RefCell<&'a mut Problems>,
}

/// A part of a document that is read strictly. It implements each trait of serde that `T` implements.
pub(super) struct Strict<'a, T> {
    pub(super) inner: T,
    pub(super) reading: &'a Reading<'a>,
    pub(super) expected: Expected,
}

/// What a part of a document is known to be.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    /// The document itself.
    Document,
    /// A struct with these keys. Other keys are recorded and skipped.
    Struct(Keys),
    /// Anything else.
    Anything,
}

// === impl Strict ===

impl<'a, T> Strict<'a, T> {
    /// Anything that is read within this.
    pub(super) fn around<U>(&self, inner: U) -> Strict<'a, U> {
        Strict::new(inner, self.reading)
    }

    pub(super) fn new(inner: T, reading: &'a Reading<'a>) -> Self {
        Self { inner, reading, expected: Expected::Anything }
    }
}
