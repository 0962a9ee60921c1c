//! Which volume a PersistentVolumeClaim gets, and on which node it is made.

use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::gate::policy::{rule, validation, variable};

/// `AnnSelectedNode` in component-helpers/storage/volume: where the scheduler tells a provisioner to make the volume.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim names neither its volume nor its node. The volume controller names the volume and the scheduler the node, both by
/// an update.
///
/// Controllers create claims of what stands in StatefulSets and in ephemeral volumes of pods. So on creation the control
/// plane is not trusted more than who wrote the template.
pub(super) fn free() -> Value {
    let names = |path: &str| format!("[object, oldObject].map(it, it == null ? '' : string(it.{path}.orValue('')))");
    let node = names(&format!("metadata.?annotations[?'{SELECTED_NODE}']"));
    let controls = "request.userInfo.username == 'system:kube-controller-manager' \
        || request.userInfo.username.startsWith('system:serviceaccount:kube-system:')";
    let is_same = |name: &str| {
        format!(
            "variables.{name}[0] == '' || variables.{name}[0] == variables.{name}[1] \
             || !(request.operation == 'CREATE' && ({controls})) && variables.everywhere"
        )
    };
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[
            rule("", &["persistentvolumeclaims", "persistentvolumeclaims/status"], &["CREATE", "UPDATE"]),
        ]),
        "variables": [
            everywhere(), variable("node", &node), variable("volume", &names("?spec.?volumeName")),
        ],
        "validations": [
            validation(
                &is_same("node"),
                &format!("the annotation {SELECTED_NODE} is set by the scheduler of the host cluster"),
            ),
            validation(
                &is_same("volume"),
                "spec.volumeName is set by the volume controller of the host cluster; to reserve a volume for a \
                 claim, the operator of the host sets spec.claimRef of the volume",
            ),
        ],
    })
}
