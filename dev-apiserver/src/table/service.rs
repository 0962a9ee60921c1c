//! The columns of Services and of their endpoints.

use serde_json::Value;

use super::cell::{pairs, text_or};
use super::column::{AGE, Column, NAME, text, wide};
use crate::object;

pub(super) const SERVICES: &[Column] = &[
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

pub(super) const ENDPOINTS: &[Column] = &[NAME, text("Endpoints", endpoints), AGE];

pub(super) const SLICES: &[Column] = &[
    NAME,
    text("AddressType", |object| text_or(object, "/addressType", "")),
    text("Ports", |object| joined(object::items(&object["ports"]), "/port", "<unset>")),
    text("Endpoints", |object| joined(object::items(&object["endpoints"]), "/addresses/0", "<unset>")),
    AGE,
];

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
    first_three(&all, "<none>")
}

fn joined(items: &[Value], path: &str, placeholder: &str) -> Value {
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| item.pointer(path))
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    first_three(&texts, placeholder)
}

/// The first three, and the number of the others (`formatEndpoints`).
fn first_three(texts: &[String], placeholder: &str) -> Value {
    match texts {
        [] => placeholder.into(),
        [first, second, third, rest @ ..] if !rest.is_empty() => {
            format!("{first},{second},{third} + {} more...", rest.len()).into()
        }
        few => few.join(",").into(),
    }
}
