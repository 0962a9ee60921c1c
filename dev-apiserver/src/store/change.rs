//! Keys of objects, and changes of objects.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::Kind;

/// The key of an object within its kind. The order is that of lists: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
}

/// A write to one object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The resource version that the write created.
    pub(crate) revision: u64,
    /// The kind of the object.
    pub(crate) kind: &'static Kind,
    /// The object before the write. `None` if the write created it.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after the write. If the write removed it: its last state, with the new resource version.
    pub(crate) object: Arc<Value>,
    /// Whether the write removed the object.
    pub(crate) removed: bool,
}

// === impl ObjectKey ===

impl ObjectKey {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}
