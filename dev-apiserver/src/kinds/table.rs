//! The table of kinds. Names and short names are those of Kubernetes.

use super::kind::{Handling, Kind, Subresource};

const READ_WRITE: &[&str] = &["get", "patch", "update"];
const CREATE: &[&str] = &["create"];
const STREAM: &[&str] = &["create", "get"];

const STATUS: Subresource = Subresource { name: "status", kind: None, verbs: READ_WRITE };
const SCALE: Subresource = Subresource { name: "scale", kind: Some(("autoscaling", "v1", "Scale")), verbs: READ_WRITE };

const ONLY_STATUS: &[Subresource] = &[STATUS];
const SCALED: &[Subresource] = &[SCALE, STATUS];

const POD: &[Subresource] = &[
    Subresource { name: "attach", kind: Some(("", "v1", "PodAttachOptions")), verbs: STREAM },
    Subresource { name: "binding", kind: Some(("", "v1", "Binding")), verbs: CREATE },
    Subresource { name: "eviction", kind: Some(("policy", "v1", "Eviction")), verbs: CREATE },
    Subresource { name: "exec", kind: Some(("", "v1", "PodExecOptions")), verbs: STREAM },
    Subresource { name: "log", kind: None, verbs: &["get"] },
    STATUS,
];

const NAMESPACE: &[Subresource] = &[Subresource { name: "finalize", kind: None, verbs: &["update"] }, STATUS];

const TOKEN: &[Subresource] =
    &[Subresource { name: "token", kind: Some(("authentication.k8s.io", "v1", "TokenRequest")), verbs: CREATE }];

/// The builder of a row.
struct Row(Kind);

impl Row {
    const fn new(group: &'static str, resource: &'static str, kind: &'static str, namespaced: bool) -> Self {
        let version = match group.as_bytes() {
            b"autoscaling" => "v2",
            _ => "v1",
        };
        Self(Kind {
            group,
            version,
            resource,
            kind,
            short: &[],
            namespaced,
            in_all: false,
            handling: Handling::Stored,
            subresources: &[],
        })
    }

    const fn short(mut self, short: &'static [&'static str]) -> Self {
        self.0.short = short;
        self
    }

    const fn all(mut self) -> Self {
        self.0.in_all = true;
        self
    }

    const fn with(mut self, subresources: &'static [Subresource]) -> Self {
        self.0.subresources = subresources;
        self
    }

    const fn handling(mut self, handling: Handling) -> Self {
        self.0.handling = handling;
        self
    }

    const fn row(self) -> Kind {
        let Self(kind) = self;
        kind
    }
}

const fn inside(group: &'static str, resource: &'static str, kind: &'static str) -> Row {
    Row::new(group, resource, kind, true)
}

const fn wide(group: &'static str, resource: &'static str, kind: &'static str) -> Row {
    Row::new(group, resource, kind, false)
}

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";

pub(super) static KINDS: &[Kind] = &[
    inside("", "configmaps", "ConfigMap").short(&["cm"]).row(),
    inside("", "endpoints", "Endpoints").short(&["ep"]).row(),
    inside("", "events", "Event").short(&["ev"]).row(),
    inside("", "limitranges", "LimitRange").short(&["limits"]).row(),
    wide("", "namespaces", "Namespace").short(&["ns"]).with(NAMESPACE).handling(Handling::OneByOne).row(),
    wide("", "nodes", "Node").short(&["no"]).with(ONLY_STATUS).row(),
    inside("", "persistentvolumeclaims", "PersistentVolumeClaim").short(&["pvc"]).with(ONLY_STATUS).row(),
    wide("", "persistentvolumes", "PersistentVolume").short(&["pv"]).with(ONLY_STATUS).row(),
    inside("", "pods", "Pod").short(&["po"]).all().with(POD).row(),
    inside("", "podtemplates", "PodTemplate").row(),
    inside("", "resourcequotas", "ResourceQuota").short(&["quota"]).with(ONLY_STATUS).row(),
    inside("", "secrets", "Secret").row(),
    inside("", "serviceaccounts", "ServiceAccount").short(&["sa"]).with(TOKEN).row(),
    inside("", "services", "Service").short(&["svc"]).all().with(ONLY_STATUS).row(),
    inside("apps", "controllerrevisions", "ControllerRevision").row(),
    inside("apps", "daemonsets", "DaemonSet").short(&["ds"]).all().with(ONLY_STATUS).row(),
    inside("apps", "deployments", "Deployment").short(&["deploy"]).all().with(SCALED).row(),
    inside("apps", "replicasets", "ReplicaSet").short(&["rs"]).all().with(SCALED).row(),
    inside("apps", "statefulsets", "StatefulSet").short(&["sts"]).all().with(SCALED).row(),
    wide(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview").handling(Handling::Review).row(),
    wide(AUTHENTICATION, "tokenreviews", "TokenReview").handling(Handling::Review).row(),
    inside(AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview").handling(Handling::Review).row(),
    wide(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview").handling(Handling::Review).row(),
    wide(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview").handling(Handling::Review).row(),
    wide(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview").handling(Handling::Review).row(),
    inside("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .all()
        .with(ONLY_STATUS)
        .row(),
    inside("batch", "cronjobs", "CronJob").short(&["cj"]).all().with(ONLY_STATUS).row(),
    inside("batch", "jobs", "Job").all().with(ONLY_STATUS).row(),
    inside("coordination.k8s.io", "leases", "Lease").row(),
    inside("discovery.k8s.io", "endpointslices", "EndpointSlice").row(),
    wide(NETWORKING, "ingressclasses", "IngressClass").row(),
    inside(NETWORKING, "ingresses", "Ingress").short(&["ing"]).with(ONLY_STATUS).row(),
    inside(NETWORKING, "networkpolicies", "NetworkPolicy").short(&["netpol"]).row(),
    inside("policy", "poddisruptionbudgets", "PodDisruptionBudget").short(&["pdb"]).with(ONLY_STATUS).row(),
    wide(RBAC, "clusterrolebindings", "ClusterRoleBinding").row(),
    wide(RBAC, "clusterroles", "ClusterRole").row(),
    inside(RBAC, "rolebindings", "RoleBinding").row(),
    inside(RBAC, "roles", "Role").row(),
    wide("scheduling.k8s.io", "priorityclasses", "PriorityClass").short(&["pc"]).row(),
    wide(STORAGE, "storageclasses", "StorageClass").short(&["sc"]).row(),
];
