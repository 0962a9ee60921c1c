//! Where objects are, and what a write changes.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::Kind;

/// Where an object is, within its kind. Ordered as lists are: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Empty at the cluster scope.
    pub(crate) namespace: String,
    /// The object's name.
    pub(crate) name: String,
}

/// One write, before and after.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The version that it made.
    pub(crate) revision: u64,
    /// What kind of object it was made to.
    pub(crate) kind: &'static Kind,
    /// `None`: it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// The object as it is now; as it last was, with this revision, if it was removed.
    pub(crate) object: Arc<Value>,
    /// Whether it was removed.
    pub(crate) removed: bool,
}

// === impl Place ===

impl Place {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}
