//! Names that were looked up in a mapping and are not in it.
//!
//! A namespace is created before its objects, but a watch of objects can be ahead of the watch that fills the
//! [`Index`](super::index::Index). An event in a namespace that is not in the index yet looks like an event of another
//! virtual cluster. The caller must be able to tell the two apart, and to try again. Only names that can be those of the
//! virtual cluster are collected: others change nothing once they are known. The same holds for lists.

use std::collections::HashSet;
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::is_label;

/// Collects host names of namespaces that are not in the index. Its clones share one collection. The default collects
/// nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownNames(Option<Arc<Collection>>);

/// The maximum number of names that are collected between two calls of [`UnknownNames::take`]. One event can contain 70,000.
const MAX: usize = 256;

/// The bytes of a name.
pub(crate) type Name = Box<[u8]>;

#[derive(Debug)]
struct Collection {
    /// Whether only names by which an object would be visible are collected.
    only_hiding: bool,
    /// Whether there is such a name. Without one, the lock is not taken.
    is_hiding: AtomicBool,
    names: Mutex<Names>,
}

#[derive(Debug, Default)]
struct Names {
    /// In the order in which they were looked up.
    ordered: Vec<Name>,
    present: HashSet<Name>,
    /// The name by which an object would be visible. One of `ordered`, unless those are too many.
    hiding: Option<Name>,
}

// === impl UnknownNames ===

impl UnknownNames {
    /// A new collection.
    pub(crate) fn collecting() -> Self {
        Self::begin(false)
    }

    /// A new collection only of the last name by which an object would be visible.
    pub(crate) fn collecting_hiding() -> Self {
        Self::begin(true)
    }

    fn begin(only_hiding: bool) -> Self {
        let (is_hiding, names) = (AtomicBool::new(false), Mutex::default());
        Self(Some(Arc::new(Collection { only_hiding, is_hiding, names })))
    }

    /// The name by which an object would be visible, since the last call. This is cheap if there is none.
    pub(crate) fn take_hiding(&self) -> Option<Name> {
        let collection = self.0.as_ref()?;
        // Each list is handled by one thread at a time.
        if !collection.is_hiding.load(Ordering::Relaxed) {
            return None;
        }
        collection.is_hiding.store(false, Ordering::Relaxed);
        self.names()?.hiding.take()
    }

    /// The names since the last call, each of them once. Also returns the name by which an object would be visible.
    pub(crate) fn take(&self) -> (Vec<Name>, Option<Name>) {
        let names = self.names().map(|mut names| take(&mut *names)).unwrap_or_default();
        (names.ordered, names.hiding)
    }

    /// Forgets all names.
    pub(crate) fn clear(&self) {
        if let Some(mut names) = self.names().filter(|names| !names.ordered.is_empty()) {
            *names = Names::default();
        }
    }

    /// A name was looked up that is not in the index.
    pub(super) fn note(&self, host: &[u8]) {
        if self.0.as_ref().is_some_and(|collection| !collection.only_hiding) && is_label(host) {
            self.add(host);
        }
    }

    /// The same for a name by which the object would be visible.
    pub(super) fn note_hiding(&self, host: &[u8]) {
        self.note(host);
        let Some(collection) = self.0.as_ref().filter(|_| is_label(host)) else { return };
        if let Some(mut names) = self.names() {
            names.hiding = Some(host.into());
        }
        collection.is_hiding.store(true, Ordering::Relaxed);
    }

    #[cold]
    fn add(&self, host: &[u8]) {
        if let Some(mut names) = self.names()
            && names.ordered.len() < MAX
            && !names.present.contains(host)
        {
            names.present.insert(host.into());
            names.ordered.push(host.into());
        }
    }

    fn names(&self) -> Option<MutexGuard<'_, Names>> {
        Some(self.0.as_ref()?.names.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_collected_once_up_to_a_limit() {
        let names = UnknownNames::collecting();
        for name in (0..2 * MAX).chain(0..MAX) {
            names.note(format!("ns-{name}").as_bytes());
        }
        let (taken, hiding) = names.take();
        assert_eq!(hiding, None);
        assert_eq!((taken.len(), &*taken[0], &*taken[MAX - 1]), (MAX, &b"ns-0"[..], &b"ns-255"[..]));
        names.note_hiding(b"ns-0");
        assert_eq!(names.take(), (vec![b"ns-0"[..].into()], Some(b"ns-0"[..].into())));
        names.note_hiding(b"ns-0");
        names.clear();
        assert_eq!(names.take(), (Vec::new(), None));
        UnknownNames::default().note(b"ns-0");
    }

    #[test]
    fn only_the_name_that_hides_is_collected() {
        let names = UnknownNames::collecting_hiding();
        names.note(b"ns-0");
        assert_eq!(names.take_hiding(), None);
        names.note_hiding(b"ns-1");
        names.note_hiding(b"ns-2");
        names.note_hiding(b"not a label");
        assert_eq!((names.take_hiding(), names.take_hiding()), (Some(b"ns-2"[..].into()), None));
        assert_eq!(names.take(), (Vec::new(), None));
    }
}
