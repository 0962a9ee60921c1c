//! The positions of names in the objects of one kind, in the form that the scanner uses.
//!
//! A [`Program`] is a tree of keys. Some of its nodes have a [`Place`], which defines the content of the field. What is *not*
//! here: how the content changes. [`view`](crate::view) and [`request`](crate::request) decide that for their direction.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::json::Text;
use crate::protobuf::KindMessage;

mod path;
mod rule;
mod walk;

pub use path::BadPath;
pub(crate) use rule::Names;
pub(crate) use walk::{Visitor, descend, walk};

/// The content of a field of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Place {
    /// `metadata.namespace` of the object itself. It determines whether the object is visible.
    OwnNamespace,
    /// `metadata` of a Namespace.
    NamespaceMeta,
    /// `metadata.name` of a Namespace.
    OwnName,
    /// `metadata.generateName` of a Namespace.
    OwnGenerateName,
    /// `metadata.labels` of a Namespace.
    OwnLabels,
    /// `metadata.annotations` of a Namespace.
    OwnAnnotations,
    /// `metadata` of a ClusterRole.
    RoleMeta,
    /// `metadata.name` of a ClusterRole.
    RoleName,
    /// `metadata.labels` of a ClusterRole, which are [parked](crate::parked).
    RoleLabels,
    /// `metadata.annotations` of a ClusterRole.
    RoleAnnotations,
    /// `f:labels` in the managed fields of a ClusterRole.
    OwnedRoleLabels,
    /// `f:annotations` in the managed fields of a ClusterRole.
    OwnedRoleAnnotations,
    /// `metadata` of a cluster-scoped custom object.
    RenamedMeta,
    /// `metadata.name` of such an object.
    RenamedName,
    /// `metadata.labels` of such an object.
    RenamedLabels,
    /// `rules` of a ClusterRole.
    Rules,
    /// `aggregationRule` of a ClusterRole, which must have no effect on the host.
    AggregationRule,
    /// `roleRef` of a binding.
    RoleRef,
    /// `kind` of a ClusterRoleBinding, which is a RoleBinding on the host.
    BindingKind,
    /// `metadata.annotations` of a Service, which can have the requested [node ports](crate::node_ports).
    ServiceAnnotations,
    /// An element of `spec.ports` of a Service.
    ServicePort,
    /// `spec.healthCheckNodePort` of a Service.
    HealthCheckNodePort,
    /// `metadata.namespace` of an object that is cluster-scoped in the virtual cluster.
    NoNamespace,
    /// Labels or annotations. Atoll's own are hidden.
    HiddenKeys,
    /// `metadata` of an object that virtual clusters share.
    SharedMeta,
    /// The annotation `kubectl.kubernetes.io/last-applied-configuration`.
    LastApplied,
    /// `f:labels` or `f:annotations` in managed fields. Atoll's own keys are hidden.
    OwnedKeys,
    /// `f:labels` or `f:annotations` in the managed fields of a Namespace. Some of the keys are
    /// [parked](crate::parked).
    OwnedNamespaceKeys,
    /// `status.conditions` of a Namespace, two of which count its remaining objects.
    NamespaceConditions,
    /// A namespace's name.
    Namespace,
    /// A user or group.
    Identity,
    /// A user or group in a list, from which those of others can be removed.
    IdentityElement,
    /// Free text that can contain names.
    Message,
    /// An object with `kind`, `name` and `namespace` of another object.
    Reference,
    /// `target` of a Binding.
    BindingTarget,
    /// The object that a token is bound to: a Pod or Secret of its namespace, or a Node.
    BoundObject,
    /// A subject of a role binding: a reference, or a user or group.
    Subject,
    /// `claimRef` of a PersistentVolume: a reference that determines its owner.
    Claim,
    /// The node that determines the owner of the object.
    OfNode,
    /// `parentRef` of an IPAddress: a reference to its owner.
    ParentReference,
    /// The annotation `apf.kubernetes.io/autoupdate-spec`, which shows whether Kubernetes itself maintains the object.
    AutoupdateSpec,
    /// The name of an object of the host that virtual clusters may read.
    LentName,
    /// The object of an Event: a reference.
    EventObject,
    /// `resource`, `name` and `namespace` of a subject access review.
    ResourceAttributes,
    /// The namespace of a rules review.
    AskedNamespace,
    /// `f:namespace` of `resourceAttributes` in the managed fields of a review.
    OwnedAskedNamespace,
    /// A rule of a role.
    Rule,
    /// A rule in the response to a rules review.
    ShownRule,
    /// `details` of a Status.
    Details,
    /// `details.name` of a Status.
    DetailsName,
    /// A label selector over namespaces.
    NamespaceSelector,
    /// The specification of a pod, which has its own places.
    PodSpec,
    /// `data` of a `ControllerRevision`, which has its own places. The StatefulSet controller matches its keys in any case
    /// (`ApplyRevision` in pkg/controller/statefulset), but kube-apiserver and the program match them exactly.
    Revision,
    /// `nodeSelector` of a pod.
    NodeSelector,
    /// `tolerations` of a pod.
    Tolerations,
    /// `f:nodeSelector` in managed fields.
    OwnedNodeSelector,
    /// `f:tolerations` in managed fields.
    OwnedTolerations,
    /// The node to which a pod is bound.
    NodeName,
    /// `type` of a Secret.
    SecretType,
    /// `data.namespace` of a Secret: base64.
    SecretNamespace,
    /// `data["ca.crt"]` of a Secret: base64.
    SecretCertificate,
    /// `metadata.name` of a `ConfigMap`.
    ConfigMapName,
    /// `data["ca.crt"]` of a `ConfigMap`: PEM.
    ConfigMapCertificate,
}

/// The places of one kind. Cheap to clone.
#[derive(Clone, Default)]
pub struct Program {
    root: Arc<Node>,
    /// The kind in protobuf, if it is known there.
    message: Option<&'static KindMessage>,
}

/// One level of a [`Program`].
#[derive(Clone, Default)]
pub(crate) struct Node {
    place: Option<Place>,
    members: Vec<(Box<str>, Self)>,
    /// Bit `n` is set if a member has a key of `n` bytes. The last bit stands for all longer keys.
    lengths: u64,
    /// What stands in each element, if this is an array.
    element: Option<Box<Self>>,
    /// The content of values under other keys, if this is a map.
    any: Option<Box<Self>>,
}

// === impl Place ===

impl Place {
    /// Whether only nested places of this place have an effect.
    fn is_frame(self) -> bool {
        matches!(self, Self::PodSpec | Self::NamespaceMeta | Self::RoleMeta | Self::RenamedMeta | Self::Revision)
    }

    /// Whether it is about node ports, which the caller handles before a body is mapped.
    pub(crate) fn is_of_node_ports(self) -> bool {
        matches!(self, Self::ServiceAnnotations | Self::ServicePort | Self::HealthCheckNodePort)
    }

    /// Whether only the host writes it. The host ignores what clients send, and so does the engine.
    pub(crate) fn is_the_hosts(self) -> bool {
        matches!(
            self,
            Self::Message
                | Self::OfNode
                | Self::AutoupdateSpec
                | Self::LentName
                | Self::Details
                | Self::DetailsName
                | Self::LastApplied
                | Self::SharedMeta
                | Self::ShownRule
                | Self::OwnedKeys
                | Self::NamespaceConditions
                | Self::OwnedAskedNamespace
                | Self::OwnedNodeSelector
                | Self::OwnedTolerations
        )
    }
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

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("members", &self.root.members.len()).finish_non_exhaustive()
    }
}

// === impl Node ===

impl Node {
    /// The maximum number of members of one node, so that a set of them fits into a word.
    const MAX_MEMBERS: usize = 64;

    /// The place of this node.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Whether this place is at this node or below, outside of arrays and maps.
    fn has(&self, place: Place) -> bool {
        self.place == Some(place) || self.members.iter().any(|(_, member)| member.has(place))
    }

    /// The path from this node to a place outside of arrays and maps.
    fn path_to(&self, place: Place) -> Option<String> {
        self.members.iter().find_map(|(key, member)| match member.path_to(place) {
            Some(rest) => Some(format!("{key}.{rest}")),
            None => (member.place == Some(place)).then(|| key.to_string()),
        })
    }

    /// The members and their keys.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.members.iter().map(|(key, member)| (&**key, member))
    }

    /// What stands in each element, if this is an array.
    pub(crate) fn element(&self) -> Option<&Self> {
        self.element.as_deref()
    }

    /// The member with this key, and its number.
    #[inline]
    fn member(&self, key: &Text<'_>) -> Option<(usize, &Self)> {
        if !key.has_escapes() && self.lengths & length_bit(key.raw.len()) == 0 {
            return None;
        }
        let number = self.members.iter().position(|(name, _)| key.is(name))?;
        Some((number, &self.members[number].1))
    }

    /// The key of the member that Go matches with this key.
    pub(crate) fn folded(&self, key: &Text<'_>) -> Option<&str> {
        self.members.iter().map(|(name, _)| &**name).find(|name| key.folds_to(name))
    }
}

fn length_bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests;
