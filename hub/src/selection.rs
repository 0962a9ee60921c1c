//! What a watch or a list selects.

use std::sync::Arc;

use kube_wire::selector::{FieldSelector, LabelSelector};

use crate::object::{Key, Object};
use crate::place::ClusterId;
use crate::window::{Before, Event, EventKind};

/// The maximum number of comparisons with terms of selectors in one call. During a watcher's call, the driver waits for the lock
/// of the hub: with 4,096 comparisons, well below a millisecond.
const COMPARISONS: usize = 4096;

/// Selectors with at most this many requirements and terms are quick.
const QUICK: usize = 4;

/// The namespaces of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All namespaces of the virtual cluster, or a cluster-scoped resource.
    All,
    /// These host namespaces. A virtual namespace can have two: its own, and that from which objects are projected.
    Namespaces(Vec<Arc<str>>),
}

/// What a request selects. The cluster and the scope are always part of it.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The virtual cluster.
    pub cluster: ClusterId,
    /// The namespaces.
    pub scope: Scope,
    /// The label selector.
    pub labels: LabelSelector,
    /// Terms for `metadata.name` and `metadata.namespace`, with host names. The driver serves no other field.
    pub fields: FieldSelector,
}

/// How an event changes what a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The object begins to be selected.
    Begins,
    /// The object stays selected.
    Changes,
    /// The object was deleted.
    Ends,
    /// The object still exists, but is no longer selected.
    Leaves,
    /// The object was not selected, and is not.
    None,
}

// === impl Scope ===

impl Scope {
    /// Whether objects of this namespace are in it.
    pub(crate) fn contains(&self, key: &Key) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(namespaces) => namespaces.contains(&key.namespace),
        }
    }
}

// === impl Selection ===

impl Selection {
    /// All objects of a virtual cluster.
    pub fn everything(cluster: ClusterId) -> Self {
        let (labels, fields) = (LabelSelector::everything(), FieldSelector::everything());
        Self { cluster, scope: Scope::All, labels, fields }
    }

    /// The number of objects or events that one call examines.
    pub(crate) fn max_examined(&self) -> usize {
        COMPARISONS / (1 + self.labels.requirements().len() + self.fields.terms().len()) + 1
    }

    /// Whether it selects an object.
    pub fn selects<T>(&self, object: &Object<T>) -> bool {
        self.names(&object.key) && self.selects_version(object)
    }

    /// The effect of an event (`convertToWatchEvent` in `cache_watcher.go` of kube-apiserver).
    pub(crate) fn effect<T>(&self, event: &Event<T>) -> Effect {
        // The name of an object never changes.
        if !self.names(&event.object.key) {
            return Effect::None;
        }
        let now = self.selects_version(&event.object);
        let before = match &event.before {
            Before::Absent => false,
            Before::Alike => now,
            Before::Other(former) => self.selects_version(former),
        };
        match (before, now && event.kind == EventKind::Written) {
            (false, true) => Effect::Begins,
            (true, true) => Effect::Changes,
            (false, false) => Effect::None,
            // The object of a deletion has the labels of the last version. If the request selects it, the client gets
            // it. Otherwise, it was selected only before.
            (true, false) if now => Effect::Ends,
            (true, false) => Effect::Leaves,
        }
    }

    /// Whether an event may have an effect. The hub asks this for each watcher, while the driver holds its lock, so a long
    /// label selector is not evaluated. A short one is evaluated, because this costs less than to wake a watcher without
    /// need: an event that concerns every cluster can wake the watchers of all clusters.
    pub(crate) fn may_concern<T>(&self, event: &Event<T>) -> bool {
        if self.labels.requirements().len() + self.fields.terms().len() > QUICK {
            return self.scope.contains(&event.object.key);
        }
        self.effect(event) != Effect::None
    }

    /// Whether it selects objects of this name, with the right labels.
    fn names(&self, key: &Key) -> bool {
        self.scope.contains(key)
            && self.fields.terms().iter().all(|term| {
                let value: &str = match term.field() {
                    "metadata.namespace" => &key.namespace,
                    "metadata.name" => &key.name,
                    _ => return false,
                };
                (value == term.value()) != term.is_negated()
            })
    }

    fn selects_version<T>(&self, object: &Object<T>) -> bool {
        object.place.contains(self.cluster) && self.labels.matches(|key| object.labels.get(key))
    }
}
