//! The objects that were returned, so that objects that have disappeared can be reported as deleted.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::change::Change;
use super::event::Event;
use crate::api::error::ApiError;

/// The existing objects that were returned: name to UID.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<Key, Box<str>>);

/// The objects in the current list so far.
#[derive(Debug, Default)]
pub(super) struct Listed(HashSet<Key>);

/// The namespace (empty for cluster-scoped objects) and the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

/// The identity of an object.
#[derive(Debug)]
pub(super) struct Named {
    key: Key,
    uid: Box<str>,
}

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

// === impl Named ===

impl Named {
    pub(super) fn of(object: &RawValue) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct Object<'a> {
            #[serde(borrow)]
            metadata: Metadata<'a>,
        }
        #[derive(Deserialize)]
        struct Metadata<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow, default)]
            namespace: Cow<'a, str>,
            #[serde(borrow, default)]
            uid: Cow<'a, str>,
        }
        let Object { metadata } = serde_json::from_str(object.get()).map_err(ApiError::Json)?;
        let key = Key { namespace: metadata.namespace.into(), name: metadata.name.into() };
        Ok(Self { key, uid: metadata.uid.into() })
    }

    /// The object of an event. `None` for a bookmark.
    pub(super) fn of_event(event: &Event) -> Result<Option<Self>, ApiError> {
        match event {
            Event::Applied(object) | Event::Deleted(object) => Self::of(object).map(Some),
            Event::Bookmark => Ok(None),
        }
    }

    /// What is known about an object that was deleted.
    pub(super) fn remains(&self) -> Box<RawValue> {
        remains(&self.key, &self.uid)
    }

    /// Empty for cluster-scoped objects.
    pub(super) fn namespace(&self) -> &str {
        &self.key.namespace
    }
}

fn remains(key: &Key, uid: &str) -> Box<RawValue> {
    let mut metadata = json!({"name": key.name, "uid": uid});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(key.namespace);
    }
    to_raw_value(&json!({"metadata": metadata})).expect("a value is JSON")
}
