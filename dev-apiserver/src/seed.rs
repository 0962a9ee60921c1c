//! The objects of a new cluster: system namespaces, four nodes, built-in roles, the Service of the API server.

use serde_json::{Value, json};

use crate::auth::builtin;
use crate::kinds::{self, Kind};
use crate::object;
use crate::store::{State, Store};

/// The nodes, and the values of their label `location`.
const NODES: [(&str, &str); 4] =
    [("beijing-1", "beijing"), ("beijing-2", "beijing"), ("hangzhou-1", "hangzhou"), ("hangzhou-2", "hangzhou")];
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
const RBAC: &str = "rbac.authorization.k8s.io";

/// Fills a new store.
pub(crate) fn seed(store: &Store) {
    store.write(|state| {
        for name in NAMESPACES {
            let namespace = json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            put(state, kinds::of("", "namespaces"), namespace);
        }
        put(state, kinds::of("", "services"), api_service());
        for (name, location) in NODES {
            put(state, kinds::of("", "nodes"), node(name, location));
            put(state, kinds::of("coordination.k8s.io", "leases"), lease(name));
            put(state, kinds::of("", "events"), registered(name));
        }
        for (name, value) in [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)] {
            let class = json!({
                "metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority",
                "description": "Used for system critical pods.",
            });
            put(state, kinds::of("scheduling.k8s.io", "priorityclasses"), class);
        }
        for role in builtin::cluster_roles() {
            put(state, kinds::of(RBAC, "clusterroles"), role);
        }
        for binding in builtin::cluster_role_bindings() {
            put(state, kinds::of(RBAC, "clusterrolebindings"), binding);
        }
    });
}

fn put(state: &mut State, kind: &'static Kind, mut object: Value) {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.into();
    let metadata = object::metadata(&mut object);
    metadata.insert("uid".to_owned(), object::new_uid().into());
    metadata.insert("creationTimestamp".to_owned(), object::now().into());
    state.put(kind, object);
}

/// The Service of the API server.
fn api_service() -> Value {
    json!({
        "metadata": {"name": "kubernetes", "namespace": "default", "labels": {
            "component": "apiserver", "provider": "kubernetes",
        }},
        "spec": {
            "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "type": "ClusterIP",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
        "status": {"loadBalancer": {}},
    })
}

/// The Lease of a node. Nothing renews it, because no controller checks it.
fn lease(node: &str) -> Value {
    json!({
        "metadata": {"name": node, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": object::now_in_micros()},
    })
}

/// The event that the node controller records for a new node.
fn registered(node: &str) -> Value {
    let now = object::now();
    json!({
        "metadata": {"name": format!("{node}.{:016x}", fastrand::u64(..)), "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node, "uid": node},
        "type": "Normal", "reason": "RegisteredNode", "count": 1, "firstTimestamp": now, "lastTimestamp": now,
        "message": format!("Node {node} event: Registered Node {node} in Controller"),
        "source": {"component": "node-controller"}, "reportingComponent": "node-controller", "reportingInstance": "",
    })
}

fn node(name: &str, location: &str) -> Value {
    let now = object::now();
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "simulated by dev-apiserver",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let capacity = json!({"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "64Gi"});
    let number = NODES.iter().position(|(one, _)| *one == name).unwrap_or_default() + 1;
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "location": location,
            "topology.kubernetes.io/region": location, "topology.kubernetes.io/zone": name,
        }},
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": format!("10.240.0.{number}")},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": capacity,
            "capacity": capacity,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID"),
                condition("Ready", "True", "KubeletReady"),
            ],
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "none://0",
                "kernelVersion": "none", "kubeProxyVersion": "", "kubeletVersion": "v1.36.0+dev-apiserver",
                "machineID": "", "operatingSystem": "linux", "osImage": "dev-apiserver", "systemUUID": "",
            },
        },
    })
}
