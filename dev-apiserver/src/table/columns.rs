//! The columns of each kind (`pkg/printers/internalversion/printers.go`).

use serde_json::Value;

use super::cell::text_or;
use super::column::{AGE, Column, NAME, date, text};
use super::{event, node, other, pod, rbac, service, workload};
use crate::kinds::Kind;

const DEFAULT: &[Column] = &[NAME, AGE];
const CREATED: &[Column] = &[NAME, date("Created At", |object| object["metadata"]["creationTimestamp"].clone())];
const NAMESPACES: &[Column] = &[NAME, text("Status", |object| text_or(object, "/status/phase", "")), AGE];
const CONFIG_MAPS: &[Column] = &[NAME, text("Data", |object| data(object).to_string().into()), AGE];
const SECRETS: &[Column] = &[
    NAME,
    text("Type", |object| text_or(object, "/type", "")),
    text("Data", |object| data(object).to_string().into()),
    AGE,
];
const LEASES: &[Column] = &[NAME, text("Holder", |object| text_or(object, "/spec/holderIdentity", "")), AGE];

/// The columns of a kind.
pub(super) fn columns(kind: &Kind) -> &'static [Column] {
    match (kind.group, kind.resource) {
        ("", "namespaces") => NAMESPACES,
        ("", "configmaps") => CONFIG_MAPS,
        ("", "secrets") => SECRETS,
        ("", "nodes") => node::COLUMNS,
        ("", "pods") => pod::COLUMNS,
        ("", "services") => service::SERVICES,
        ("", "endpoints") => service::ENDPOINTS,
        ("", "events") => event::COLUMNS,
        ("discovery.k8s.io", "endpointslices") => service::SLICES,
        ("coordination.k8s.io", "leases") => LEASES,
        ("apps", "deployments") => workload::DEPLOYMENTS,
        ("apps", "replicasets") => workload::REPLICA_SETS,
        ("apps", "daemonsets") => workload::DAEMON_SETS,
        ("apps", "statefulsets") => workload::STATEFUL_SETS,
        ("apps", "controllerrevisions") => other::REVISIONS,
        ("batch", "jobs") => workload::JOBS,
        ("batch", "cronjobs") => other::CRON_JOBS,
        ("", "resourcequotas") => other::QUOTAS,
        ("", "persistentvolumeclaims") => other::CLAIMS,
        ("networking.k8s.io", "ingresses") => other::INGRESSES,
        ("networking.k8s.io", "networkpolicies") => other::NETWORK_POLICIES,
        ("policy", "poddisruptionbudgets") => other::BUDGETS,
        ("scheduling.k8s.io", "priorityclasses") => other::PRIORITY_CLASSES,
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") | ("", "limitranges") => CREATED,
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => rbac::BINDINGS,
        _ => DEFAULT,
    }
}

fn data(object: &Value) -> usize {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    count("data") + count("binaryData")
}
