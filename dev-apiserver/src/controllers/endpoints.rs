//! Endpoints and EndpointSlices of Services with a selector.

use std::sync::Arc;

use serde_json::{Value, json};

use super::pods::{is_ready, owned, owner_reference};
use super::status::put_if_changed;
use crate::kinds;
use crate::object;
use crate::store::State;
use crate::write::{Writer, create};

const NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

pub(super) fn sync(state: &mut State, namespace: &str) {
    let services: Vec<_> = state.list(kinds::of("", "services"), Some(namespace)).cloned().collect();
    for service in services.iter().filter(|service| !object::is_deleted(service)) {
        let Some(selector) = object::map_selector(&service["spec"]["selector"]) else { continue };
        let pods: Vec<_> = state
            .list(kinds::of("", "pods"), Some(namespace))
            .filter(|pod| object::is_selected(&selector, pod) && pod["status"]["podIP"].is_string())
            .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")))
            .cloned()
            .collect();
        slice(state, service, &pods);
        endpoints(state, service, &pods);
    }
}

fn slice(state: &mut State, service: &Value, pods: &[Arc<Value>]) {
    let kind = kinds::of("discovery.k8s.io", "endpointslices");
    let found = owned(state, kind, service).into_iter().next();
    let endpoints: Vec<_> = pods
        .iter()
        .map(|pod| {
            let ready = is_ready(pod);
            json!({
                "addresses": [pod["status"]["podIP"]],
                "conditions": {"ready": ready, "serving": ready, "terminating": false},
                "nodeName": pod["spec"]["nodeName"], "targetRef": target(pod),
            })
        })
        .collect();
    let ports = ports(service, pods);
    if let Some(found) = found {
        let mut slice = Value::clone(&found);
        slice["endpoints"] = endpoints.into();
        slice["ports"] = ports.into();
        put_if_changed(state, kind, &found, slice);
        return;
    }
    let slice = json!({
        "metadata": {
            "generateName": format!("{}-", object::name(service)),
            "labels": {NAME: object::name(service), MANAGED_BY: "endpointslice-controller.k8s.io"},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
    });
    // This fails only if the namespace is terminating.
    let _ = create(state, kind, object::namespace(service), slice, Writer::CONTROLLER, false);
}

fn endpoints(state: &mut State, service: &Value, pods: &[Arc<Value>]) {
    let kind = kinds::of("", "endpoints");
    let (name, namespace) = (object::name(service), object::namespace(service));
    let addresses: Vec<_> = pods
        .iter()
        .filter(|pod| is_ready(pod))
        .map(|pod| json!({"ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"], "targetRef": target(pod)}))
        .collect();
    let ports = ports(service, pods);
    let subsets = if addresses.is_empty() { Value::Null } else { json!([{"addresses": addresses, "ports": ports}]) };
    if let Some(found) = state.get(kind, namespace, name).cloned() {
        let mut endpoints = Value::clone(&found);
        endpoints["subsets"] = subsets;
        put_if_changed(state, kind, &found, endpoints);
        return;
    }
    let mut object = json!({"metadata": {"name": name, "labels": service["metadata"]["labels"]}, "subsets": subsets});
    object::drop_nulls(&mut object);
    let _ = create(state, kind, namespace, object, Writer::CONTROLLER, false);
}

fn target(pod: &Value) -> Value {
    let metadata = &pod["metadata"];
    json!({"kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]})
}

fn ports(service: &Value, pods: &[Arc<Value>]) -> Vec<Value> {
    object::items(&service["spec"]["ports"])
        .iter()
        .filter_map(|port| {
            let number = match &port["targetPort"] {
                Value::String(name) => pods.iter().find_map(|pod| named_port(pod, name))?,
                Value::Number(_) => port["targetPort"].clone(),
                _ => port["port"].clone(),
            };
            let mut entry = json!({"name": port["name"].as_str().unwrap_or_default(), "port": number, "protocol": port["protocol"]});
            if let Some(protocol) = port["appProtocol"].as_str() {
                entry["appProtocol"] = protocol.into();
            }
            Some(entry)
        })
        .collect()
}

fn named_port(pod: &Value, name: &str) -> Option<Value> {
    let containers = object::items(&pod["spec"]["containers"]).iter();
    let mut ports = containers.flat_map(|container| object::items(&container["ports"]));
    ports.find(|port| port["name"] == name).map(|port| port["containerPort"].clone())
}
