//! The positions of names in the objects of one kind, in the form that the scanner uses.
//!
//! A [`Program`] is a tree of keys. Some of its nodes have a [`Place`], which defines the content of the field. What is *not*
//! here: how the content changes. [`view`](crate::view) and [`request`](crate::request) decide that for their direction.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::descriptor::KindMessage;
use crate::same::Same;

mod node;
mod path;
mod place;
mod rule;
mod walk;

pub(crate) use node::Node;
pub use path::BadPath;
pub use place::Place;
pub(crate) use rule::Names;
pub(crate) use walk::{Visitor, descend, walk};

/// The places of one kind. Cheap to clone.
#[derive(Clone, Default)]
pub struct Program {
    root: Arc<Node>,
    /// The kind in protobuf, if it is known there.
    message: Option<&'static KindMessage>,
}

// === impl Program ===

impl Program {
    /// A program of paths such as `spec.rules[].subjects[].name`. `[]` stands for the elements of an array, `{}` for the values
    /// of a map, and `\.` for a dot in a key.
    pub fn new<'a>(places: impl IntoIterator<Item = (&'a str, Place)>) -> Result<Self, BadPath> {
        let mut program = Self::default();
        for (path, place) in places {
            program.add(path, place)?;
        }
        Ok(program)
    }

    /// Adds the places of a pod specification at `path` (`spec.workload.template.spec`), with its guard and its managed fields.
    /// It is for custom kinds with pod templates.
    pub fn add_pod_spec(&mut self, path: &str) -> Result<(), BadPath> {
        self.add(path, Place::PodSpec)?;
        for (key, here, owned) in [
            ("nodeSelector", Place::NodeSelector, Place::OwnedNodeSelector),
            ("tolerations", Place::Tolerations, Place::OwnedTolerations),
        ] {
            self.add(&format!("{path}.{key}"), here)?;
            self.add(&path::owned(&format!("{path}.{key}")), owned)?;
        }
        self.add(&format!("{path}.nodeName"), Place::NodeName)
    }

    /// Adds one place. Replaces an existing one.
    pub fn add(&mut self, path: &str, place: Place) -> Result<(), BadPath> {
        path::insert(Arc::make_mut(&mut self.root), path, place)
    }

    /// The places of every `metav1.Status`.
    pub(crate) fn status() -> Self {
        static STATUS: LazyLock<Program> = LazyLock::new(|| {
            Program::new([
                ("message", Place::Message),
                ("details", Place::Details),
                ("details.name", Place::DetailsName),
                ("details.causes[].message", Place::Message),
                ("details.causes[].field", Place::Message),
            ])
            .expect("five paths")
        });
        STATUS.clone()
    }

    /// Whether the target of a JSON pointer (RFC 6901) is a place, is inside of one, or contains one. Segments are split as in
    /// the patch library of kube-apiserver: text before the first slash is ignored.
    pub fn touches(&self, pointer: &str) -> bool {
        let mut node = self.root();
        for segment in pointer.split('/').skip(1) {
            if node.place.is_some_and(|place| !place.is_frame()) {
                return true;
            }
            let key = segment.replace("~1", "/").replace("~0", "~");
            let member = node.members.iter().find(|(name, _)| **name == *key).map(|(_, member)| member);
            let Some(next) = member.or(node.element.as_deref()).or(node.any.as_deref()) else { return false };
            node = next;
        }
        true
    }

    /// The path of the field that names the node of a pod, as in field errors.
    pub fn node_field(&self) -> Option<String> {
        let path = |place| self.root.path_to(place);
        let name = |place| path(place).map(|reference| reference + ".name");
        path(Place::NodeName).or_else(|| name(Place::BindingTarget)).or_else(|| name(Place::BoundObject))
    }

    /// The same places of shared objects. They are shown in JSON only, because the view of a cluster is assembled from the
    /// object of the host.
    #[must_use]
    pub fn of_shared(mut self) -> Self {
        self.add("metadata", Place::SharedMeta).expect("a path of one key");
        self.message = None;
        self
    }

    /// The same places of a kind that is also known in protobuf.
    #[must_use]
    pub(crate) fn with_message(mut self, message: Option<&'static KindMessage>) -> Self {
        self.message = message;
        self
    }

    /// The type of objects in responses in protobuf. ClusterRoles are stored in a different form, and ClusterRoleBindings as
    /// another kind, so both are only available in JSON.
    pub(crate) fn shown_message(&self) -> Option<&'static KindMessage> {
        self.message.filter(|_| !self.is_of_roles() && !self.is_of_cluster_bindings())
    }

    /// Whether objects can be shown in protobuf.
    pub fn has_protobuf(&self) -> bool {
        self.shown_message().is_some()
    }

    /// Whether the objects are Namespaces.
    pub(crate) fn is_of_namespaces(&self) -> bool {
        self.root.members.iter().any(|(_, node)| node.place == Some(Place::NamespaceMeta))
    }

    /// Whether the objects are ClusterRoles.
    pub(crate) fn is_of_roles(&self) -> bool {
        self.root.members.iter().any(|(_, node)| node.place == Some(Place::RoleMeta))
    }

    /// Whether the objects are cluster-scoped custom objects.
    pub(crate) fn is_of_renamed(&self) -> bool {
        self.root.members.iter().any(|(_, node)| node.place == Some(Place::RenamedMeta))
    }

    /// Whether the objects are bindings.
    pub(crate) fn is_of_bindings(&self) -> bool {
        self.root.members.iter().any(|(_, node)| node.place == Some(Place::RoleRef))
    }

    /// Whether the objects are ClusterRoleBindings, which are RoleBindings on the host.
    pub fn is_of_cluster_bindings(&self) -> bool {
        self.root.members.iter().any(|(_, node)| node.place == Some(Place::BindingKind))
    }

    /// Whether the objects are Pods: they have a pod specification themselves, not in a template.
    pub(crate) fn is_of_pods(&self) -> bool {
        self.root.members.iter().any(|(key, node)| **key == *"spec" && node.place == Some(Place::PodSpec))
    }

    /// Whether the objects contain a pod specification, and so the guard.
    pub(crate) fn has_guard(&self) -> bool {
        self.root.has(Place::NodeSelector)
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

impl Same for Program {
    fn is_same(&self, other: &Self) -> bool {
        // Only programs of protobuf use the message.
        let Self { root, message: _ } = self;
        root.is_same(&other.root)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("members", &self.root.members.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
