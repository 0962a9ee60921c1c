//! Names that a mapping was asked for and does not know.
//!
//! A namespace is created before its objects, but a watch of objects can be ahead of the watch that fills the
//! [`Index`](super::Index). An event in a namespace that is not in the index yet looks like one of somebody else's. The
//! caller must be able to tell the two apart, and to try again.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use super::Mapping;

/// Collects host names of namespaces that are not in the index. Its clones share one collection.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownNames(Arc<Mutex<Vec<Box<[u8]>>>>);

// === impl UnknownNames ===

impl UnknownNames {
    /// The names since the last call, each of them once.
    pub(crate) fn take(&self) -> Vec<Box<[u8]>> {
        take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets all names.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    #[cold]
    fn note(&self, name: &[u8]) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
}

// === impl Mapping ===

impl Mapping {
    /// The same names. Those that it does not know are added to `unknown`.
    #[must_use]
    pub(crate) fn noting(mut self, unknown: UnknownNames) -> Self {
        self.unknown = Some(unknown);
        self
    }

    /// A name was looked up that is not in the index.
    pub(super) fn note_unknown(&self, host: &[u8]) {
        if let Some(unknown) = &self.unknown
            && crate::name::is_label(host)
        {
            unknown.note(host);
        }
    }
}
