//! The content of the fields that matter.

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
    /// `metadata.uid` of a Namespace.
    OwnUid,
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
    /// `metadata` of a ClusterRoleBinding.
    BindingMeta,
    /// `metadata.labels` of a ClusterRoleBinding. On the host, one of them names the virtual cluster.
    BindingLabels,
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
    ProjectedName,
    /// The object of an Event: a reference.
    EventObject,
    /// `resource`, `name` and `namespace` of a subject access review.
    ResourceAttributes,
    /// The namespace of a rules review.
    ReviewNamespace,
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

// === impl Place ===

impl Place {
    /// Whether only nested places of this place have an effect.
    pub(super) fn is_frame(self) -> bool {
        matches!(
            self,
            Self::PodSpec
                | Self::NamespaceMeta
                | Self::RoleMeta
                | Self::RenamedMeta
                | Self::BindingMeta
                | Self::Revision
        )
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
                | Self::ProjectedName
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
