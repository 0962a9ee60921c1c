//! The identity of an object.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::event::Event;
use crate::api::error::ApiError;

/// The namespace (empty for cluster-scoped objects) and the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    namespace: Box<str>,
    name: Box<str>,
}

/// The identity of an object.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) key: Key,
    pub(super) uid: Box<str>,
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

    /// What is known about it after it was deleted.
    pub(super) fn remains(&self) -> Box<RawValue> {
        remains(&self.key, &self.uid)
    }

    /// Empty for cluster-scoped objects.
    pub(super) fn namespace(&self) -> &str {
        &self.key.namespace
    }
}

/// What is known about an object after it was deleted.
pub(super) fn remains(key: &Key, uid: &str) -> Box<RawValue> {
    let mut metadata = json!({"name": key.name, "uid": uid});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(key.namespace);
    }
    to_raw_value(&json!({"metadata": metadata})).expect("a value is JSON")
}
