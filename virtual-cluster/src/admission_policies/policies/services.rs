//! External addresses of Services (CVE-2020-8554).
//!
//! On all nodes of the host, kube-proxy sends traffic for such an address to the Service's pods, even if the address
//! belongs to another cluster's Service, to DNS, or to the API server. It does so for `spec.externalIPs` and for
//! `status.loadBalancer`.

use serde_json::{Value, json};

use super::vocabulary::{annotation, everywhere, in_members};
use crate::admission_policies::policy::{rule, validation_saying, variable};
use crate::namespaces::annotations::EXTERNAL_IPS;

/// New addresses must be in the ranges of the virtual cluster. `has_ranges` says whether CEL can check this; otherwise,
/// no range is allowed.
pub(super) fn addressed(has_ranges: bool) -> Value {
    let ranges = if has_ranges { annotation(EXTERNAL_IPS) } else { "''".to_owned() };
    let external = "object.?spec.?externalIPs.orValue([])\
        .filter(ip, !(ip in oldObject.?spec.?externalIPs.orValue([])))";
    let ingress = "object.?status.?loadBalancer.?ingress.orValue([])\
        .filter(it, !(it in oldObject.?status.?loadBalancer.?ingress.orValue([]))).map(it, it.?ip.orValue(''))";
    let are_allowed = |addresses: &str| {
        let is_allowed = if has_ranges {
            "ip != '' && variables.ranges != '' \
             && variables.ranges.split(',').exists(range, cidr(range).containsIP(ip))"
        } else {
            "false"
        };
        format!("variables.{addresses}.all(ip, {is_allowed}) || variables.everywhere")
    };
    let message = |field: &str| {
        format!(
            "variables.ranges == '' \
             ? '{field}: the operator of the host cluster has allowed no addresses' \
             : '{field}: the operator of the host cluster has allowed addresses in ' + variables.ranges + ' only'"
        )
    };
    let allowed = |addresses: &str, field: &str| {
        let fallback = format!("{field}: the operator of the host cluster has not allowed the address");
        validation_saying(&are_allowed(addresses), &message(field), &fallback)
    };
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[rule("", &["services", "services/status"], &["CREATE", "UPDATE"])]),
        "variables": [
            everywhere(), variable("ranges", &ranges), variable("external", external), variable("ingress", ingress),
        ],
        "validations": [allowed("external", "spec.externalIPs"), allowed("ingress", "status.loadBalancer.ingress")],
    })
}
