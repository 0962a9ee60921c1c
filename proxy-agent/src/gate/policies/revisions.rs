//! What the StatefulSet controller makes pods of.
//!
//! It merges `data` of a ControllerRevision into the StatefulSet, and reads the outcome with `encoding/json`, which takes keys
//! in any case (`ApplyRevision` in pkg/controller/statefulset/stateful_set_utils.go). Its pods and claims go to the namespace
//! that `data.metadata.namespace` names then, with the controller's own rights, into any namespace of the host.

use serde_json::{Value, json};

use super::vocabulary::in_members;
use crate::gate::policy::{literal, rule, validation};

/// What the policies read, with the object that it is in.
const READ: [(&str, &[&str]); 5] = [
    ("", &["metadata", "spec"]),
    (".?metadata", &["namespace"]),
    (".?spec", &["template"]),
    (".?spec.?template", &["spec"]),
    (".?spec.?template.?spec", &["nodeName"]),
];

/// A revision is of its own namespace, and what the policies read of it is what the controller reads. `data` is immutable.
pub(super) fn read() -> Value {
    // The characters outside of ASCII that Go takes for letters (`foldRune` in encoding/json/fold.go).
    let folded = "key.lowerAscii().replace('\\u017f', 's').replace('\\u212a', 'k')";
    let is_exact = READ.map(|(path, keys)| {
        let is_one =
            |key: &&str| format!("key == {0} || {folded} != {1}", literal(key), literal(&key.to_ascii_lowercase()));
        let is_none_other: Vec<_> = keys.iter().map(|key| format!("({})", is_one(key))).collect();
        format!("object.?data{path}.orValue({{}}).all(key, {})", is_none_other.join(" && "))
    });
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[rule("apps", &["controllerrevisions"], &["CREATE"])]),
        "validations": [
            validation(
                &is_exact.join(" && "),
                "the StatefulSet controller reads keys of data in any case; metadata, namespace, spec, template and nodeName \
                 must be spelled so",
            ),
            validation(
                "object.?data.?metadata.?namespace.orValue(request.namespace) == request.namespace",
                "data.metadata.namespace is the namespace of the pods, and must be that of the ControllerRevision",
            ),
        ],
    })
}
