//! The positions of names, by kind. Generated from `schema/kubernetes-1.36-references.tsv` by
//! `cargo run -p rewrite --example generate-schema`; not to be edited.

use super::row::Row;
use crate::program::Place;

/// The kinds of Kubernetes, by group and kind.
pub(super) static KINDS: &[Row] = &[
    Row { group: "", versions: &["v1"], kind: "Binding", resource: "bindings", places: P0 },
    Row { group: "", versions: &["v1"], kind: "ComponentStatus", resource: "componentstatuses", places: P1 },
    Row { group: "", versions: &["v1"], kind: "ConfigMap", resource: "configmaps", places: P2 },
    Row { group: "", versions: &["v1"], kind: "Endpoints", resource: "endpoints", places: P3 },
    Row { group: "", versions: &["v1"], kind: "Event", resource: "events", places: P4 },
    Row { group: "", versions: &["v1"], kind: "LimitRange", resource: "limitranges", places: P1 },
    Row { group: "", versions: &["v1"], kind: "Namespace", resource: "namespaces", places: P5 },
    Row { group: "", versions: &["v1"], kind: "Node", resource: "nodes", places: P6 },
    Row { group: "", versions: &["v1"], kind: "PersistentVolume", resource: "persistentvolumes", places: P7 },
    Row { group: "", versions: &["v1"], kind: "PersistentVolumeClaim", resource: "persistentvolumeclaims", places: P8 },
    Row { group: "", versions: &["v1"], kind: "Pod", resource: "pods", places: P9 },
    Row { group: "", versions: &["v1"], kind: "PodTemplate", resource: "podtemplates", places: P10 },
    Row { group: "", versions: &["v1"], kind: "ReplicationController", resource: "replicationcontrollers", places: P11 },
    Row { group: "", versions: &["v1"], kind: "ResourceQuota", resource: "resourcequotas", places: P1 },
    Row { group: "", versions: &["v1"], kind: "Secret", resource: "secrets", places: P12 },
    Row { group: "", versions: &["v1"], kind: "Service", resource: "services", places: P13 },
    Row { group: "", versions: &["v1"], kind: "ServiceAccount", resource: "serviceaccounts", places: P14 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "MutatingAdmissionPolicy", resource: "mutatingadmissionpolicies", places: P15 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "MutatingAdmissionPolicyBinding", resource: "mutatingadmissionpolicybindings", places: P16 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1beta1"], kind: "MutatingWebhookConfiguration", resource: "mutatingwebhookconfigurations", places: P17 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "ValidatingAdmissionPolicy", resource: "validatingadmissionpolicies", places: P15 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "ValidatingAdmissionPolicyBinding", resource: "validatingadmissionpolicybindings", places: P16 },
    Row { group: "admissionregistration.k8s.io", versions: &["v1", "v1beta1"], kind: "ValidatingWebhookConfiguration", resource: "validatingwebhookconfigurations", places: P17 },
    Row { group: "apiextensions.k8s.io", versions: &["v1"], kind: "CustomResourceDefinition", resource: "customresourcedefinitions", places: P18 },
    Row { group: "apiextensions.k8s.io", versions: &["v1beta1"], kind: "CustomResourceDefinition", resource: "customresourcedefinitions", places: P19 },
    Row { group: "apiregistration.k8s.io", versions: &["v1", "v1beta1"], kind: "APIService", resource: "apiservices", places: P20 },
    Row { group: "apps", versions: &["v1"], kind: "ControllerRevision", resource: "controllerrevisions", places: P21 },
    Row { group: "apps", versions: &["v1"], kind: "DaemonSet", resource: "daemonsets", places: P11 },
    Row { group: "apps", versions: &["v1"], kind: "Deployment", resource: "deployments", places: P11 },
    Row { group: "apps", versions: &["v1"], kind: "ReplicaSet", resource: "replicasets", places: P11 },
    Row { group: "apps", versions: &["v1"], kind: "StatefulSet", resource: "statefulsets", places: P22 },
    Row { group: "authentication.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "SelfSubjectReview", resource: "selfsubjectreviews", places: P23 },
    Row { group: "authentication.k8s.io", versions: &["v1"], kind: "TokenRequest", resource: "tokenrequests", places: P24 },
    Row { group: "authentication.k8s.io", versions: &["v1", "v1beta1"], kind: "TokenReview", resource: "tokenreviews", places: P25 },
    Row { group: "authorization.k8s.io", versions: &["v1"], kind: "LocalSubjectAccessReview", resource: "localsubjectaccessreviews", places: P26 },
    Row { group: "authorization.k8s.io", versions: &["v1beta1"], kind: "LocalSubjectAccessReview", resource: "localsubjectaccessreviews", places: P27 },
    Row { group: "authorization.k8s.io", versions: &["v1", "v1beta1"], kind: "SelfSubjectAccessReview", resource: "selfsubjectaccessreviews", places: P28 },
    Row { group: "authorization.k8s.io", versions: &["v1", "v1beta1"], kind: "SelfSubjectRulesReview", resource: "selfsubjectrulesreviews", places: P29 },
    Row { group: "authorization.k8s.io", versions: &["v1"], kind: "SubjectAccessReview", resource: "subjectaccessreviews", places: P30 },
    Row { group: "authorization.k8s.io", versions: &["v1beta1"], kind: "SubjectAccessReview", resource: "subjectaccessreviews", places: P31 },
    Row { group: "autoscaling", versions: &["v1", "v2"], kind: "HorizontalPodAutoscaler", resource: "horizontalpodautoscalers", places: P1 },
    Row { group: "autoscaling", versions: &["v1"], kind: "Scale", resource: "scales", places: P1 },
    Row { group: "batch", versions: &["v1", "v1beta1"], kind: "CronJob", resource: "cronjobs", places: P32 },
    Row { group: "batch", versions: &["v1"], kind: "Job", resource: "jobs", places: P11 },
    Row { group: "certificates.k8s.io", versions: &["v1", "v1beta1"], kind: "CertificateSigningRequest", resource: "certificatesigningrequests", places: P33 },
    Row { group: "certificates.k8s.io", versions: &["v1alpha1", "v1beta1"], kind: "ClusterTrustBundle", resource: "clustertrustbundles", places: P1 },
    Row { group: "certificates.k8s.io", versions: &["v1beta1"], kind: "PodCertificateRequest", resource: "podcertificaterequests", places: P1 },
    Row { group: "coordination.k8s.io", versions: &["v1", "v1beta1"], kind: "Lease", resource: "leases", places: P34 },
    Row { group: "coordination.k8s.io", versions: &["v1alpha2", "v1beta1"], kind: "LeaseCandidate", resource: "leasecandidates", places: P1 },
    Row { group: "discovery.k8s.io", versions: &["v1", "v1beta1"], kind: "EndpointSlice", resource: "endpointslices", places: P35 },
    Row { group: "events.k8s.io", versions: &["v1", "v1beta1"], kind: "Event", resource: "events", places: P36 },
    Row { group: "flowcontrol.apiserver.k8s.io", versions: &["v1", "v1beta1", "v1beta2", "v1beta3"], kind: "FlowSchema", resource: "flowschemas", places: P37 },
    Row { group: "flowcontrol.apiserver.k8s.io", versions: &["v1", "v1beta1", "v1beta2", "v1beta3"], kind: "PriorityLevelConfiguration", resource: "prioritylevelconfigurations", places: P38 },
    Row { group: "internal.apiserver.k8s.io", versions: &["v1alpha1"], kind: "StorageVersion", resource: "storageversions", places: P1 },
    Row { group: "metrics.k8s.io", versions: &["v1alpha1", "v1beta1"], kind: "NodeMetrics", resource: "nodes", places: P39 },
    Row { group: "metrics.k8s.io", versions: &["v1alpha1", "v1beta1"], kind: "PodMetrics", resource: "pods", places: P1 },
    Row { group: "networking.k8s.io", versions: &["v1", "v1beta1"], kind: "IPAddress", resource: "ipaddresses", places: P40 },
    Row { group: "networking.k8s.io", versions: &["v1", "v1beta1"], kind: "Ingress", resource: "ingresses", places: P1 },
    Row { group: "networking.k8s.io", versions: &["v1", "v1beta1"], kind: "IngressClass", resource: "ingressclasses", places: P41 },
    Row { group: "networking.k8s.io", versions: &["v1"], kind: "NetworkPolicy", resource: "networkpolicies", places: P42 },
    Row { group: "networking.k8s.io", versions: &["v1", "v1beta1"], kind: "ServiceCIDR", resource: "servicecidrs", places: P1 },
    Row { group: "node.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "RuntimeClass", resource: "runtimeclasses", places: P1 },
    Row { group: "policy", versions: &["v1", "v1beta1"], kind: "Eviction", resource: "evictions", places: P1 },
    Row { group: "policy", versions: &["v1", "v1beta1"], kind: "PodDisruptionBudget", resource: "poddisruptionbudgets", places: P1 },
    Row { group: "rbac.authorization.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "ClusterRole", resource: "clusterroles", places: P43 },
    Row { group: "rbac.authorization.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "ClusterRoleBinding", resource: "clusterrolebindings", places: P44 },
    Row { group: "rbac.authorization.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "Role", resource: "roles", places: P45 },
    Row { group: "rbac.authorization.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "RoleBinding", resource: "rolebindings", places: P46 },
    Row { group: "resource.k8s.io", versions: &["v1", "v1beta1", "v1beta2"], kind: "DeviceClass", resource: "deviceclasses", places: P1 },
    Row { group: "resource.k8s.io", versions: &["v1alpha3", "v1beta2"], kind: "DeviceTaintRule", resource: "devicetaintrules", places: P1 },
    Row { group: "resource.k8s.io", versions: &["v1", "v1beta1", "v1beta2"], kind: "ResourceClaim", resource: "resourceclaims", places: P1 },
    Row { group: "resource.k8s.io", versions: &["v1", "v1beta1", "v1beta2"], kind: "ResourceClaimTemplate", resource: "resourceclaimtemplates", places: P47 },
    Row { group: "resource.k8s.io", versions: &["v1alpha3"], kind: "ResourcePoolStatusRequest", resource: "resourcepoolstatusrequests", places: P1 },
    Row { group: "resource.k8s.io", versions: &["v1", "v1beta1", "v1beta2"], kind: "ResourceSlice", resource: "resourceslices", places: P48 },
    Row { group: "scheduling.k8s.io", versions: &["v1alpha2"], kind: "PodGroup", resource: "podgroups", places: P1 },
    Row { group: "scheduling.k8s.io", versions: &["v1", "v1beta1"], kind: "PriorityClass", resource: "priorityclasses", places: P1 },
    Row { group: "scheduling.k8s.io", versions: &["v1alpha2"], kind: "Workload", resource: "workloads", places: P1 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1beta1"], kind: "CSIDriver", resource: "csidrivers", places: P1 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1beta1"], kind: "CSINode", resource: "csinodes", places: P49 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "CSIStorageCapacity", resource: "csistoragecapacities", places: P1 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1beta1"], kind: "StorageClass", resource: "storageclasses", places: P1 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "VolumeAttachment", resource: "volumeattachments", places: P50 },
    Row { group: "storage.k8s.io", versions: &["v1", "v1alpha1", "v1beta1"], kind: "VolumeAttributesClass", resource: "volumeattributesclasses", places: P1 },
    Row { group: "storagemigration.k8s.io", versions: &["v1beta1"], kind: "StorageVersionMigration", resource: "storageversionmigrations", places: P1 },
];

const P0: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("target", Place::BindingTarget),
];

const P1: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P2: &[(&str, Place)] = &[
    ("data.ca\\.crt", Place::ConfigMapCertificate),
    ("metadata.name", Place::ConfigMapName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P3: &[(&str, Place)] = &[
    ("metadata.name", Place::ProjectedName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("subsets[].addresses[].targetRef", Place::Reference),
    ("subsets[].notReadyAddresses[].targetRef", Place::Reference),
];

const P4: &[(&str, Place)] = &[
    ("involvedObject", Place::EventObject),
    ("message", Place::Message),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("related", Place::Reference),
    ("reportingInstance", Place::Message),
    ("status.conditions[].message", Place::Message),
];

const P5: &[(&str, Place)] = &[
    ("metadata", Place::NamespaceMeta),
    ("metadata.annotations", Place::OwnAnnotations),
    ("metadata.generateName", Place::OwnGenerateName),
    ("metadata.labels", Place::OwnLabels),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", Place::OwnedNamespaceKeys),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", Place::OwnedNamespaceKeys),
    ("metadata.name", Place::OwnName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("metadata.uid", Place::OwnUid),
    ("status.conditions", Place::NamespaceConditions),
    ("status.conditions[].message", Place::Message),
];

const P6: &[(&str, Place)] = &[
    ("metadata.labels", Place::HiddenKeys),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", Place::OwnedKeys),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.configSource.configMap.namespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
    ("status.config.active.configMap.namespace", Place::Namespace),
    ("status.config.assigned.configMap.namespace", Place::Namespace),
    ("status.config.lastKnownGood.configMap.namespace", Place::Namespace),
];

const P7: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.azureFile.secretNamespace", Place::Namespace),
    ("spec.cephfs.secretRef.namespace", Place::Namespace),
    ("spec.cinder.secretRef.namespace", Place::Namespace),
    ("spec.claimRef", Place::Claim),
    ("spec.csi.controllerExpandSecretRef.namespace", Place::Namespace),
    ("spec.csi.controllerPublishSecretRef.namespace", Place::Namespace),
    ("spec.csi.nodeExpandSecretRef.namespace", Place::Namespace),
    ("spec.csi.nodePublishSecretRef.namespace", Place::Namespace),
    ("spec.csi.nodeStageSecretRef.namespace", Place::Namespace),
    ("spec.flexVolume.secretRef.namespace", Place::Namespace),
    ("spec.glusterfs.endpointsNamespace", Place::Namespace),
    ("spec.iscsi.secretRef.namespace", Place::Namespace),
    ("spec.rbd.secretRef.namespace", Place::Namespace),
    ("spec.scaleIO.secretRef.namespace", Place::Namespace),
    ("spec.storageos.secretRef", Place::Reference),
    ("spec.storageos.volumeNamespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
    ("status.message", Place::Message),
];

const P8: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.dataSourceRef", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P9: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec", Place::PodSpec),
    ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("spec.volumes[].storageos.volumeNamespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];

const P10: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("template.metadata.namespace", Place::Namespace),
    ("template.metadata.ownerReferences[]", Place::Reference),
    ("template.spec", Place::PodSpec),
    ("template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("template.spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("template.spec.volumes[].storageos.volumeNamespace", Place::Namespace),
];

const P11: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.template.metadata.namespace", Place::Namespace),
    ("spec.template.metadata.ownerReferences[]", Place::Reference),
    ("spec.template.spec", Place::PodSpec),
    ("spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("spec.template.spec.volumes[].storageos.volumeNamespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];

const P12: &[(&str, Place)] = &[
    ("data.ca\\.crt", Place::SecretCertificate),
    ("data.namespace", Place::SecretNamespace),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("type", Place::SecretType),
];

const P13: &[(&str, Place)] = &[
    ("metadata.annotations", Place::ServiceAnnotations),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", Place::OwnedKeys),
    ("metadata.name", Place::ProjectedName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.healthCheckNodePort", Place::HealthCheckNodePort),
    ("spec.ports[]", Place::ServicePort),
    ("status.conditions[].message", Place::Message),
];

const P14: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("secrets[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P15: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.matchConstraints.namespaceSelector", Place::NamespaceSelector),
    ("status.conditions[].message", Place::Message),
];

const P16: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.matchResources.namespaceSelector", Place::NamespaceSelector),
    ("spec.paramRef", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P17: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("webhooks[].clientConfig.service.namespace", Place::Namespace),
    ("webhooks[].namespaceSelector", Place::NamespaceSelector),
];

const P18: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.conversion.webhook.clientConfig.service.namespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];

const P19: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.conversion.webhookClientConfig.service.namespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];

const P20: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.service.namespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];

const P21: &[(&str, Place)] = &[
    ("data", Place::Revision),
    ("data.metadata.namespace", Place::Namespace),
    ("data.spec.template.metadata.namespace", Place::Namespace),
    ("data.spec.template.metadata.ownerReferences[]", Place::Reference),
    ("data.spec.template.spec", Place::PodSpec),
    ("data.spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("data.spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("data.spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("data.spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("data.spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("data.spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("data.spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("data.spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("data.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("data.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("data.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("data.spec.template.spec.volumes[].storageos.volumeNamespace", Place::Namespace),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P22: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.template.metadata.namespace", Place::Namespace),
    ("spec.template.metadata.ownerReferences[]", Place::Reference),
    ("spec.template.spec", Place::PodSpec),
    ("spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("spec.template.spec.volumes[].storageos.volumeNamespace", Place::Namespace),
    ("spec.volumeClaimTemplates[].metadata.namespace", Place::Namespace),
    ("spec.volumeClaimTemplates[].metadata.ownerReferences[]", Place::Reference),
    ("spec.volumeClaimTemplates[].spec.dataSourceRef", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P23: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("status.userInfo.groups[]", Place::IdentityElement),
    ("status.userInfo.username", Place::Identity),
];

const P24: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.boundObjectRef", Place::BoundObject),
    ("status.conditions[].message", Place::Message),
];

const P25: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
    ("status.user.groups[]", Place::IdentityElement),
    ("status.user.username", Place::Identity),
];

const P26: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.groups[]", Place::IdentityElement),
    ("spec.resourceAttributes", Place::ResourceAttributes),
    ("spec.user", Place::Identity),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.reason", Place::Message),
];

const P27: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.resourceAttributes", Place::ResourceAttributes),
    ("spec.user", Place::Identity),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.reason", Place::Message),
];

const P28: &[(&str, Place)] = &[
    ("metadata.managedFields[].fieldsV1.f:spec.f:resourceAttributes.f:namespace", Place::OwnedAskedNamespace),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.resourceAttributes", Place::ResourceAttributes),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.reason", Place::Message),
];

const P29: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.namespace", Place::ReviewNamespace),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.resourceRules[]", Place::ShownRule),
];

const P30: &[(&str, Place)] = &[
    ("metadata.managedFields[].fieldsV1.f:spec.f:resourceAttributes.f:namespace", Place::OwnedAskedNamespace),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.groups[]", Place::IdentityElement),
    ("spec.resourceAttributes", Place::ResourceAttributes),
    ("spec.user", Place::Identity),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.reason", Place::Message),
];

const P31: &[(&str, Place)] = &[
    ("metadata.managedFields[].fieldsV1.f:spec.f:resourceAttributes.f:namespace", Place::OwnedAskedNamespace),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.resourceAttributes", Place::ResourceAttributes),
    ("spec.user", Place::Identity),
    ("status.conditions[].message", Place::Message),
    ("status.evaluationError", Place::Message),
    ("status.reason", Place::Message),
];

const P32: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.jobTemplate.metadata.namespace", Place::Namespace),
    ("spec.jobTemplate.metadata.ownerReferences[]", Place::Reference),
    ("spec.jobTemplate.spec.template.metadata.namespace", Place::Namespace),
    ("spec.jobTemplate.spec.template.metadata.ownerReferences[]", Place::Reference),
    ("spec.jobTemplate.spec.template.spec", Place::PodSpec),
    ("spec.jobTemplate.spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.jobTemplate.spec.template.spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.jobTemplate.spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.jobTemplate.spec.template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.jobTemplate.spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaceSelector", Place::NamespaceSelector),
    ("spec.jobTemplate.spec.template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.namespaces[]", Place::Namespace),
    ("spec.jobTemplate.spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaceSelector", Place::NamespaceSelector),
    ("spec.jobTemplate.spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[].namespaces[]", Place::Namespace),
    ("spec.jobTemplate.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.namespace", Place::Namespace),
    ("spec.jobTemplate.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.metadata.ownerReferences[]", Place::Reference),
    ("spec.jobTemplate.spec.template.spec.volumes[].ephemeral.volumeClaimTemplate.spec.dataSourceRef", Place::Reference),
    ("spec.jobTemplate.spec.template.spec.volumes[].storageos.volumeNamespace", Place::Namespace),
    ("status.active[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P33: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.groups[]", Place::IdentityElement),
    ("spec.username", Place::Identity),
    ("status.conditions[].message", Place::Message),
];

const P34: &[(&str, Place)] = &[
    ("metadata.name", Place::ProjectedName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.holderIdentity", Place::Message),
    ("spec.preferredHolder", Place::Message),
    ("status.conditions[].message", Place::Message),
];

const P35: &[(&str, Place)] = &[
    ("endpoints[].targetRef", Place::Reference),
    ("metadata.name", Place::ProjectedName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P36: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("note", Place::Message),
    ("regarding", Place::EventObject),
    ("related", Place::Reference),
    ("reportingInstance", Place::Message),
    ("status.conditions[].message", Place::Message),
];

const P37: &[(&str, Place)] = &[
    ("metadata.annotations.apf\\.kubernetes\\.io/autoupdate-spec", Place::AutoupdateSpec),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.rules[].resourceRules[].namespaces[]", Place::Namespace),
    ("spec.rules[].subjects[].group.name", Place::Identity),
    ("spec.rules[].subjects[].serviceAccount.namespace", Place::Namespace),
    ("spec.rules[].subjects[].user.name", Place::Identity),
    ("status.conditions[].message", Place::Message),
];

const P38: &[(&str, Place)] = &[
    ("metadata.annotations.apf\\.kubernetes\\.io/autoupdate-spec", Place::AutoupdateSpec),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P39: &[(&str, Place)] = &[
    ("metadata.labels", Place::HiddenKeys),
    ("metadata.name", Place::OfNode),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P40: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.parentRef", Place::ParentReference),
    ("status.conditions[].message", Place::Message),
];

const P41: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.parameters", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P42: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.egress[].to[].namespaceSelector", Place::NamespaceSelector),
    ("spec.ingress[].from[].namespaceSelector", Place::NamespaceSelector),
    ("status.conditions[].message", Place::Message),
];

const P43: &[(&str, Place)] = &[
    ("aggregationRule", Place::AggregationRule),
    ("metadata", Place::RoleMeta),
    ("metadata.annotations", Place::RoleAnnotations),
    ("metadata.labels", Place::RoleLabels),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", Place::OwnedRoleAnnotations),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", Place::OwnedRoleLabels),
    ("metadata.name", Place::RoleName),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("rules", Place::Rules),
    ("rules[]", Place::Rule),
    ("status.conditions[].message", Place::Message),
];

const P44: &[(&str, Place)] = &[
    ("kind", Place::BindingKind),
    ("metadata", Place::BindingMeta),
    ("metadata.annotations", Place::HiddenKeys),
    ("metadata.labels", Place::BindingLabels),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:annotations", Place::OwnedKeys),
    ("metadata.managedFields[].fieldsV1.f:metadata.f:labels", Place::OwnedKeys),
    ("metadata.namespace", Place::NoNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("roleRef", Place::RoleRef),
    ("status.conditions[].message", Place::Message),
    ("subjects[]", Place::Subject),
];

const P45: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("rules[]", Place::Rule),
    ("status.conditions[].message", Place::Message),
];

const P46: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("roleRef", Place::RoleRef),
    ("status.conditions[].message", Place::Message),
    ("subjects[]", Place::Subject),
];

const P47: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.metadata.namespace", Place::Namespace),
    ("spec.metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P48: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.nodeName", Place::OfNode),
    ("status.conditions[].message", Place::Message),
];

const P49: &[(&str, Place)] = &[
    ("metadata.name", Place::OfNode),
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("status.conditions[].message", Place::Message),
];

const P50: &[(&str, Place)] = &[
    ("metadata.namespace", Place::OwnNamespace),
    ("metadata.ownerReferences[]", Place::Reference),
    ("spec.nodeName", Place::OfNode),
    ("spec.source.inlineVolumeSpec.azureFile.secretNamespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.cephfs.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.cinder.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.claimRef", Place::Reference),
    ("spec.source.inlineVolumeSpec.csi.controllerExpandSecretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.csi.controllerPublishSecretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.csi.nodeExpandSecretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.csi.nodePublishSecretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.csi.nodeStageSecretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.flexVolume.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.glusterfs.endpointsNamespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.iscsi.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.rbd.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.scaleIO.secretRef.namespace", Place::Namespace),
    ("spec.source.inlineVolumeSpec.storageos.secretRef", Place::Reference),
    ("spec.source.inlineVolumeSpec.storageos.volumeNamespace", Place::Namespace),
    ("status.conditions[].message", Place::Message),
];
