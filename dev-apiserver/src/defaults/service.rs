//! Services: addresses and node ports.

use std::collections::HashSet;

use kube_wire::Status;
use kube_wire::status::{CauseType, FieldError};
use serde_json::{Value, json};

use crate::kinds;
use crate::object::{self, default};
use crate::store::State;

/// `--service-node-port-range`
const NODE_PORTS: std::ops::RangeInclusive<u64> = 30000..=32767;

/// Sets the defaults of a Service's spec.
pub(super) fn apply(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    default(spec, "type", "ClusterIP");
    default(spec, "sessionAffinity", "None");
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind != "ExternalName" {
        default(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", true);
    }
    if let Some(ports) = spec.as_object_mut().and_then(|spec| spec.get_mut("ports")).and_then(Value::as_array_mut) {
        for port in ports {
            default(port, "protocol", "TCP");
            let number = port["port"].clone();
            default(port, "targetPort", number);
        }
    }
}

/// Allocates the address and, depending on the type, the node ports of a new Service.
pub(super) fn on_create(state: &State, service: &mut Value) -> Result<(), Status> {
    service["status"] = json!({"loadBalancer": {}});
    let name = object::name(service).to_owned();
    let services = kinds::of("", "services");
    let kind = service["spec"]["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    let spec = &mut service["spec"];
    let requested = spec["clusterIP"].as_str().filter(|address| !address.is_empty()).map(str::to_owned);
    let taken: HashSet<&str> =
        state.list(services, None).filter_map(|service| service["spec"]["clusterIP"].as_str()).collect();
    let address = match requested {
        Some(address) if address != "None" && taken.contains(address.as_str()) => {
            let detail = "failed to allocate IP: provided IP is already allocated";
            let errors = [FieldError::invalid("spec.clusterIPs", address, detail)];
            return Err(Status::invalid(services.group_kind(), &name, &errors));
        }
        Some(address) => address,
        None => free_address(&taken),
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
    default(spec, "ipFamilies", json!(["IPv4"]));
    default(spec, "ipFamilyPolicy", "SingleStack");
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        node_ports(state, &name, spec)?;
    }
    Ok(())
}

fn free_address(taken: &HashSet<&str>) -> String {
    let candidates = (0..65_000).map(|_| format!("10.96.{}.{}", fastrand::u8(1..=254), fastrand::u8(1..=254)));
    // With this many Services, two may have the same address.
    candidates.into_iter().find(|address| !taken.contains(address.as_str())).unwrap_or_else(|| "10.96.0.2".to_owned())
}

fn node_ports(state: &State, name: &str, spec: &mut Value) -> Result<(), Status> {
    let services = kinds::of("", "services");
    let mut taken: HashSet<u64> = state
        .list(services, None)
        .flat_map(|service| object::items(&service["spec"]["ports"]))
        .filter_map(|port| port["nodePort"].as_u64())
        .collect();
    for (index, port) in spec["ports"].as_array_mut().into_iter().flatten().enumerate() {
        let field = format!("spec.ports[{index}].nodePort");
        match port["nodePort"].as_u64().filter(|requested| *requested != 0) {
            Some(requested) if !NODE_PORTS.contains(&requested) => {
                let detail = "provided port is not in the valid range. The range of valid ports is 30000-32767";
                let errors = [FieldError::invalid(field, requested.to_string(), detail)];
                return Err(Status::invalid(services.group_kind(), name, &errors));
            }
            Some(requested) if !taken.insert(requested) => {
                let errors = [FieldError {
                    cause: CauseType::Invalid,
                    field,
                    value: Some(requested.to_string()),
                    detail: "provided port is already allocated".to_owned(),
                }];
                return Err(Status::invalid(services.group_kind(), name, &errors));
            }
            Some(_) => {}
            None => {
                let free = NODE_PORTS.into_iter().find(|port| !taken.contains(port));
                let free =
                    free.ok_or_else(|| Status::internal_error("failed to allocate a nodePort: range is full"))?;
                taken.insert(free);
                port["nodePort"] = free.into();
            }
        }
    }
    Ok(())
}

/// Keeps the node ports that an update leaves out.
pub(super) fn keep_node_ports(found: &Value, object: &mut Value) {
    let known = found["spec"]["ports"].clone();
    for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
        let before = object::items(&known).iter().find(|before| {
            before["port"] == port["port"] && before["protocol"] == port["protocol"] && before["nodePort"].is_u64()
        });
        if let Some(before) = before
            && port.get("nodePort").is_none_or(Value::is_null)
        {
            port["nodePort"] = before["nodePort"].clone();
        }
    }
}
