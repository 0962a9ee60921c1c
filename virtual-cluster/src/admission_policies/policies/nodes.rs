//! The node of a pod, and the virtual cluster of a node.

use std::collections::BTreeSet;

use rewrite::name::{CLUSTER_LABEL, NODE_PREFIX};
use serde_json::{Value, json};

use super::vocabulary::{anywhere, everywhere, in_members, through};
use crate::admission_policies::policy::{cluster_rule, literal, rule, validation, variable};

/// A scheduler chooses the node of a pod and respects the node selector. Clients can name a node only through the
/// endpoint, where the agent checks that the node belongs to the cluster. Controllers of the host copy the node from
/// there.
///
/// A token that is bound to a node contains its name, and shows that the node exists.
///
/// The StatefulSet controller creates pods from ControllerRevisions (`ApplyRevision` in pkg/controller/statefulset), so
/// the template in those counts too.
pub(super) fn named() -> Value {
    let all = ["CREATE", "UPDATE"];
    let rules = [
        rule("", &["bindings", "pods", "pods/binding", "podtemplates", "replicationcontrollers"], &all),
        rule("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"], &all),
        rule("batch", &["cronjobs", "jobs"], &all),
        rule("", &["serviceaccounts/token"], &["CREATE"]),
    ];
    let named = "[object, oldObject].map(it, it == null ? '' : it.?spec.?nodeName\
        .or(it.?spec.?template.?spec.?nodeName)\
        .or(it.?template.?spec.?nodeName)\
        .or(it.?spec.?jobTemplate.?spec.?template.?spec.?nodeName)\
        .or(it.?data.?spec.?template.?spec.?nodeName)\
        .or(it.?spec.?boundObjectRef.?kind.orValue('') == 'Node' ? it.spec.boundObjectRef.?name : optional.none())\
        .orValue(''))";
    let binds = "request.resource.resource == 'bindings' || request.?subResource.orValue('') == 'binding'";
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&rules),
        "variables": [
            variable("named", named), variable("binds", binds), through(CLUSTER_LABEL), everywhere(),
        ],
        "validations": [validation(
            "!(variables.binds || variables.named[0] != '' && variables.named[0] != variables.named[1]) \
             || variables.through || variables.everywhere",
            "a pod of a virtual cluster gets its node from a scheduler; to name one, also for a token, use the cluster's endpoint",
        )],
    })
}

/// A node cannot move itself to another virtual cluster, with a label by which virtual clusters select nodes or with one that an agent
/// sets ([`node_labels`](crate::node_labels)). Otherwise, its own credential may write all its labels except
/// those that the NodeRestriction plugin protects (plugin/pkg/admission/noderestriction). A new node may register with
/// any labels, as kubelets do with --node-labels.
pub(super) fn labels(keys: &BTreeSet<String>) -> Value {
    let keys: Vec<_> = keys.iter().map(|key| literal(key)).collect();
    let is_same = "object.metadata.?labels[?key] == oldObject.metadata.?labels[?key]";
    let of_agents = format!(
        "[object, oldObject].all(it, it.metadata.?labels.orValue({{}}).all(key, !key.startsWith('{NODE_PREFIX}') || {is_same}))"
    );
    let is_same =
        if keys.is_empty() { of_agents } else { format!("[{}].all(key, {is_same}) && {of_agents}", keys.join(", ")) };
    // `NodesGroup` in apiserver/pkg/authentication/user; some hosts grant kubelets by name (RBAC without the Node
    // authorizer).
    let is_node = "'system:nodes' in request.userInfo.groups || request.userInfo.username.startsWith('system:node:')";
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": anywhere(&[cluster_rule(&["nodes", "nodes/status"], &["UPDATE"])]),
        "matchConditions": [{"name": "node", "expression": is_node}],
        "validations": [validation(
            &is_same,
            "a node cannot change labels by which virtual clusters select their nodes; the operator of the host can",
        )],
    })
}
