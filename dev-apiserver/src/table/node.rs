//! The columns of nodes.

use serde_json::Value;

use super::cell::text_or;
use super::column::{AGE, Column, NAME, text, wide};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Status", status),
    text("Roles", |_| "<none>".into()),
    AGE,
    text("Version", |object| text_or(object, "/status/nodeInfo/kubeletVersion", "")),
    wide("Internal-IP", |object| address(object, "InternalIP")),
    wide("External-IP", |object| address(object, "ExternalIP")),
    wide("OS-Image", |object| text_or(object, "/status/nodeInfo/osImage", "<unknown>")),
    wide("Kernel-Version", |object| text_or(object, "/status/nodeInfo/kernelVersion", "<unknown>")),
    wide("Container-Runtime", |object| text_or(object, "/status/nodeInfo/containerRuntimeVersion", "<unknown>")),
];

fn status(node: &Value) -> Value {
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
