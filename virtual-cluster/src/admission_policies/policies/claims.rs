//! The volume of a PersistentVolumeClaim, and the node on which it is provisioned.

use serde_json::{Value, json};

use super::vocabulary::{everywhere, in_members};
use crate::admission_policies::policy::{rule, validation, variable};

/// `AnnSelectedNode` in component-helpers/storage/volume: the node on which the scheduler wants the volume.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim must not name its volume or its node. The volume controller sets the volume, and the scheduler the node,
/// both by an update.
///
/// Controllers create claims from templates in StatefulSets and in ephemeral volumes of pods. So on creation, the
/// control plane is not trusted more than the author of the template.
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
