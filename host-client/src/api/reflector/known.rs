//! The objects that were returned, so that objects that have disappeared can be reported as deleted.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::change::Change;
use super::event::Event;
use super::named::{Key, Named, remains};

/// The existing objects that were returned: name to UID.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<Key, Box<str>>);

/// The objects in the current list so far.
#[derive(Debug, Default)]
pub(super) struct Listed(HashSet<Key>);

// === impl Known ===

impl Known {
    /// Records an object of a list. If it replaces an object with the same name, that one is reported as deleted first.
    pub(super) fn listed(
        &mut self,
        listed: &mut Listed,
        named: Named,
        object: Box<RawValue>,
    ) -> Vec<Change<Box<RawValue>>> {
        listed.0.insert(named.key.clone());
        self.applied(named, object)
    }

    /// Ends a list: returns the known objects that it does not have.
    pub(super) fn vanished(&mut self, listed: &Listed) -> Vec<Change<Box<RawValue>>> {
        let vanished = self.0.extract_if(|key, _| !listed.0.contains(key));
        vanished.map(|(key, uid)| Change::Deleted(remains(&key, &uid))).collect()
    }

    /// Records an event of a watch about the object with this name.
    pub(super) fn event(&mut self, named: Named, event: Event) -> Vec<Change<Box<RawValue>>> {
        match event {
            Event::Applied(object) => self.applied(named, object),
            Event::Bookmark => Vec::new(),
            Event::Deleted(object) => {
                self.0.remove(&named.key);
                vec![Change::Deleted(object)]
            }
        }
    }

    fn applied(&mut self, named: Named, object: Box<RawValue>) -> Vec<Change<Box<RawValue>>> {
        let mut changes = Vec::new();
        if let Some(old) = self.0.get(&named.key).filter(|old| **old != named.uid) {
            changes.push(Change::Deleted(remains(&named.key, old)));
        }
        self.0.insert(named.key, named.uid);
        changes.push(Change::Applied(object));
        changes
    }
}
