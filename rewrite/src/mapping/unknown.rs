//! Names that a mapping was asked for and does not know.
//!
//! A namespace is created before its objects, but a watch of objects can be ahead of the watch that fills the
//! [`Index`](super::Index). An event in a namespace that is not in the index yet looks like one of somebody else's. The
//! caller must be able to tell the two apart, and to try again.

use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::is_label;

/// Collects host names of namespaces that are not in the index. Its clones share one collection. The default collects
/// nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownNames(Option<Arc<Mutex<Names>>>);

type Names = Vec<Box<[u8]>>;

// === impl UnknownNames ===

impl UnknownNames {
    /// A new collection.
    pub(crate) fn collecting() -> Self {
        Self(Some(Arc::default()))
    }

    /// The names since the last call, each of them once.
    pub(crate) fn take(&self) -> Names {
        self.names().map(|mut names| take(&mut *names)).unwrap_or_default()
    }

    /// Forgets all names.
    pub(crate) fn clear(&self) {
        if let Some(mut names) = self.names() {
            names.clear();
        }
    }

    /// A name was looked up that is not in the index.
    pub(super) fn note(&self, host: &[u8]) {
        if self.0.is_some() && is_label(host) {
            self.add(host);
        }
    }

    #[cold]
    fn add(&self, host: &[u8]) {
        if let Some(mut names) = self.names()
            && !names.iter().any(|known| **known == *host)
        {
            names.push(host.into());
        }
    }

    fn names(&self) -> Option<MutexGuard<'_, Names>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
