//! The versions of the latest events of each object, while a list is read that may be older.

use std::collections::HashMap;

use crate::object::{Key, NewObject, ResourceVersion};

/// The versions, unless nobody needs them.
#[derive(Debug, Default)]
pub(crate) struct Latest(Option<HashMap<Key, ResourceVersion>>);

// === impl Latest ===

impl Latest {
    /// Remembers events from now on.
    pub(crate) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    /// Forgets all events, and remembers no more.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }

    pub(crate) fn is_needed(&self) -> bool {
        self.0.is_some()
    }

    /// An event, which may be the deletion of the object.
    pub(crate) fn event<T>(&mut self, object: &NewObject<T>) {
        if let Some(versions) = &mut self.0 {
            versions.insert(object.key.clone(), object.version);
        }
    }

    /// Whether an event is as new as this object of a list.
    pub(crate) fn supersedes<T>(&self, object: &NewObject<T>) -> bool {
        let event = self.0.as_ref().and_then(|versions| versions.get(&object.key));
        event.is_some_and(|event| *event >= object.version)
    }
}
