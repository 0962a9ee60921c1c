//! The columns of each kind (`pkg/printers/internalversion/printers.go`).

use serde_json::{Value, json};

use super::{other, pairs, pod, rbac, since, text_or, workload};
use crate::kinds::Kind;
use crate::object;

/// One column, and what stands in it.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    /// 1: shown with `-o wide` only.
    priority: u8,
    cell: fn(&Value) -> Value,
}

/// A text that is always shown.
pub(super) const fn text(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "string", priority: 0, cell }
}

/// A text that is shown if asked for.
pub(super) const fn wide(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "string", priority: 1, cell }
}

/// A number.
pub(super) const fn number(name: &'static str, cell: fn(&Value) -> Value) -> Column {
    Column { name, kind: "integer", priority: 0, cell }
}

pub(super) const NAME: Column = text("Name", |object| object::name(object).into());
pub(super) const AGE: Column = text("Age", |object| since(&object["metadata"]["creationTimestamp"]).into());

const DEFAULT: &[Column] = &[NAME, AGE];
const CREATED: &[Column] = &[
    NAME,
    Column {
        name: "Created At",
        kind: "date",
        priority: 0,
        cell: |object| object["metadata"]["creationTimestamp"].clone(),
    },
];
const NAMESPACES: &[Column] = &[NAME, text("Status", |object| text_or(object, "/status/phase", "")), AGE];
const CONFIG_MAPS: &[Column] = &[NAME, text("Data", |object| data(object).to_string().into()), AGE];
const SECRETS: &[Column] = &[
    NAME,
    text("Type", |object| text_or(object, "/type", "")),
    text("Data", |object| data(object).to_string().into()),
    AGE,
];
const NODES: &[Column] = &[
    NAME,
    text("Status", node_status),
    text("Roles", |_| "<none>".into()),
    AGE,
    text("Version", |object| text_or(object, "/status/nodeInfo/kubeletVersion", "")),
    wide("Internal-IP", |object| address(object, "InternalIP")),
    wide("External-IP", |object| address(object, "ExternalIP")),
    wide("OS-Image", |object| text_or(object, "/status/nodeInfo/osImage", "<unknown>")),
    wide("Kernel-Version", |object| text_or(object, "/status/nodeInfo/kernelVersion", "<unknown>")),
    wide("Container-Runtime", |object| text_or(object, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
];
const SERVICES: &[Column] = &[
    NAME,
    text("Type", |object| text_or(object, "/spec/type", "")),
    text("Cluster-IP", |object| text_or(object, "/spec/clusterIP", "<none>")),
    text("External-IP", |object| {
        if object["spec"]["type"] == "LoadBalancer" {
            "<pending>".into()
        } else {
            text_or(object, "/spec/externalName", "<none>")
        }
    }),
    text("Port(s)", service_ports),
    AGE,
    wide("Selector", |object| pairs(&object["spec"]["selector"]).into()),
];
const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", endpoints), AGE];
const SLICES: &[Column] = &[
    NAME,
    text("AddressType", |object| text_or(object, "/addressType", "")),
    text("Ports", |object| joined(object::items(&object["ports"]), "/port", "<unset>")),
    text("Endpoints", |object| joined(object::items(&object["endpoints"]), "/addresses/0", "<unset>")),
    AGE,
];
const EVENTS: &[Column] = &[
    text("Last Seen", |object| since(&object["lastTimestamp"]).into()),
    text("Type", |object| text_or(object, "/type", "")),
    text("Reason", |object| text_or(object, "/reason", "")),
    text("Object", |object| {
        let of = &object["involvedObject"];
        let kind = of["kind"].as_str().unwrap_or_default().to_lowercase();
        format!("{kind}/{}", of["name"].as_str().unwrap_or_default()).into()
    }),
    wide("Subobject", |object| text_or(object, "/involvedObject/fieldPath", "")),
    wide("Source", |object| text_or(object, "/source/component", "")),
    text("Message", |object| object["message"].as_str().unwrap_or_default().trim().into()),
    wide("First Seen", |object| since(&object["firstTimestamp"]).into()),
    wide("Count", |object| text_or(object, "/count", "1")),
    wide("Name", |object| object::name(object).into()),
];
const LEASES: &[Column] = &[NAME, text("Holder", |object| text_or(object, "/spec/holderIdentity", "")), AGE];

/// The columns of a kind.
pub(super) fn columns(kind: &Kind) -> &'static [Column] {
    match (kind.group, kind.resource) {
        ("", "namespaces") => NAMESPACES,
        ("", "configmaps") => CONFIG_MAPS,
        ("", "secrets") => SECRETS,
        ("", "nodes") => NODES,
        ("", "pods") => pod::COLUMNS,
        ("", "services") => SERVICES,
        ("", "endpoints") => ENDPOINTS,
        ("", "events") => EVENTS,
        ("discovery.k8s.io", "endpointslices") => SLICES,
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

// === impl Column ===

impl Column {
    /// A column of truth values.
    pub(super) const fn boolean(name: &'static str, cell: fn(&Value) -> Value) -> Self {
        Self { name, kind: "boolean", priority: 0, cell }
    }

    pub(super) fn definition(&self) -> Value {
        let format = if self.name == "Name" { "name" } else { "" };
        json!({"name": self.name, "type": self.kind, "format": format, "description": "", "priority": self.priority})
    }

    pub(super) fn cell(&self, object: &Value) -> Value {
        (self.cell)(object)
    }
}

fn data(object: &Value) -> usize {
    let count = |field: &str| object[field].as_object().map_or(0, serde_json::Map::len);
    count("data") + count("binaryData")
}

fn node_status(node: &Value) -> Value {
    let is_ready = object::items(&node["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let ready = if is_ready { "Ready" } else { "NotReady" };
    if node["spec"]["unschedulable"] == true { format!("{ready},SchedulingDisabled").into() } else { ready.into() }
}

fn address(node: &Value, kind: &str) -> Value {
    let addresses = object::items(&node["status"]["addresses"]);
    let found = addresses.iter().find(|address| address["type"] == kind);
    found.map_or_else(|| "<none>".into(), |address| address["address"].clone())
}

fn service_ports(service: &Value) -> Value {
    let ports = object::items(&service["spec"]["ports"]);
    if ports.is_empty() {
        return "<none>".into();
    }
    let shown: Vec<_> = ports
        .iter()
        .map(|port| match port["nodePort"].as_u64() {
            Some(node) => format!("{}:{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")),
            None => format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")),
        })
        .collect();
    shown.join(",").into()
}

fn endpoints(endpoints: &Value) -> Value {
    let mut all = Vec::new();
    for subset in object::items(&endpoints["subsets"]) {
        for address in object::items(&subset["addresses"]) {
            let ip = address["ip"].as_str().unwrap_or_default();
            all.extend(object::items(&subset["ports"]).iter().map(|port| format!("{ip}:{}", port["port"])));
        }
    }
    some(&all, "<none>")
}

fn joined(items: &[Value], path: &str, nothing: &str) -> Value {
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| item.pointer(path))
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    some(&texts, nothing)
}

/// The first three, and how many more there are.
fn some(texts: &[String], nothing: &str) -> Value {
    match texts {
        [] => nothing.into(),
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first},{second},{third} + {} more...", rest.len()).into()
        }
        few => few.join(",").into(),
    }
}
