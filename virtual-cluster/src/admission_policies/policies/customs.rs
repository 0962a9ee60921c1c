//! Custom resources that the operator of the host keeps from virtual clusters.

use serde_json::{Value, json};

use super::vocabulary::{annotation, everywhere, in_members};
use crate::admission_policies::policy::{rule, validation, variable};
use crate::namespaces::annotations::RESERVED;
use crate::policy::HIDDEN;

/// Kubernetes' own groups with many writes. They have no custom resources.
const BUILT_IN: [&str; 6] = ["", "apps", "batch", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"];

/// Only identities that may write such objects in every namespace may write them in a virtual cluster. A controller of
/// the host acts on them with its own rights: for example, on the node that a Device of KubeEdge names.
pub(super) fn kept() -> Value {
    let mut constraints = in_members(&[rule("*", &["*/*"], &["CREATE", "UPDATE", "DELETE"])]);
    constraints["excludeResourceRules"] = BUILT_IN.iter().map(|group| rule(group, &["*/*"], &["*"])).collect();
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": constraints,
        "variables": [variable("reserved", &annotation(RESERVED)), everywhere()],
        "validations": [validation(
            "!(request.resource.resource + '.' + request.resource.group in variables.reserved.split(',')) \
             || variables.everywhere",
            HIDDEN,
        )],
    })
}
