//! Status fields on which the host's control plane acts.
//!
//! An object's status is written through its subresource, which a role with `*` for resources includes; kube-apiserver
//! drops it from creations and other updates (`PrepareForCreate` and `PrepareForUpdate` in
//! pkg/registry/core/pod/strategy.go). Most statuses affect only their own namespace. These do not:
//!
//! - `nominatedNodeName` of a pod: the scheduler keeps room on that node and does not compare it with the node selector
//!   (`AddNominatedPod` in pkg/scheduler/backend/queue). So a pod can keep others off any node.
//! - `podIP`, `podIPs`, `hostIP` and `hostIPs` of a pod: kube-apiserver connects to them for the `proxy` subresources
//!   of pods and services, and EndpointSlices are made of them.
//! - `allocation` of a ResourceClaim: it can reserve devices of any node, and if `reservedFor` is emptied, devices in
//!   use go to the next claim.

use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::admission_policies::policy::{rule, validation, variable};

const OF_PODS: [&str; 5] = ["nominatedNodeName", "podIP", "podIPs", "hostIP", "hostIPs"];

/// Fields that only the host's scheduler, kubelets and controllers change.
pub(super) fn kept() -> Value {
    let pod = OF_PODS.map(|field| format!("object.?status.?{field} == oldObject.?status.?{field}")).join(" && ");
    let devices = |object: &str| format!("{object}.?status.?allocation.?devices.?results.orValue([])");
    let reserved = |object: &str| format!("{object}.?status.?reservedFor.orValue([])");
    // A result without devices says that none are needed.
    let claim = format!(
        "{} == {} && {} == {}",
        devices("object"),
        devices("oldObject"),
        reserved("object"),
        reserved("oldObject"),
    );
    let is = |resource: &str, same: &str| {
        format!("request.resource.resource != '{resource}' || {same} || variables.everywhere")
    };
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[
            rule("", &["pods/status"], &["UPDATE"]),
            rule("resource.k8s.io", &["resourceclaims/status"], &["UPDATE"]),
        ]),
        "variables": [everywhere(), variable("claim", &claim)],
        "validations": [
            validation(
                &is("pods", &pod),
                "status.nominatedNodeName, podIP, podIPs, hostIP and hostIPs are set by the scheduler and the kubelets of \
                 the host cluster",
            ),
            validation(
                &is("resourceclaims", "variables.claim"),
                "status.allocation and status.reservedFor are set by the scheduler and the controllers of the host cluster",
            ),
        ],
    })
}
