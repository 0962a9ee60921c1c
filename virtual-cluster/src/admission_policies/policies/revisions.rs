//! ControllerRevisions, from which the StatefulSet controller creates pods.
//!
//! The controller merges `data` of a ControllerRevision into the StatefulSet, and decodes the result with
//! `encoding/json`, which matches keys case-insensitively (`ApplyRevision` in
//! pkg/controller/statefulset/stateful_set_utils.go). It creates pods and claims in the namespace
//! `data.metadata.namespace`, with its own rights, in any namespace of the host.

use serde_json::{Value, json};

use super::vocabulary::in_members;
use crate::admission_policies::policy::{literal, rule, validation};

/// The keys that the policies read, with the path of their object.
const READ: [(&str, &[&str]); 5] = [
    ("", &["metadata", "spec"]),
    (".?metadata", &["namespace"]),
    (".?spec", &["template"]),
    (".?spec.?template", &["spec"]),
    (".?spec.?template.?spec", &["nodeName"]),
];

/// The `data` of a revision must be in the namespace of the revision, and the policies must read the same keys as the
/// controller. `data` is immutable.
pub(super) fn read() -> Value {
    // A value that is no object has no keys, and the controller cannot decode it.
    // The non-ASCII characters that Go folds to ASCII letters (`foldRune` in encoding/json/fold.go).
    let folded = "key.lowerAscii().replace('\\u017f', 's').replace('\\u212a', 'k')";
    let is_exact = READ.map(|(path, keys)| {
        let is_one =
            |key: &&str| format!("key == {0} || {folded} != {1}", literal(key), literal(&key.to_ascii_lowercase()));
        let is_none_other: Vec<_> = keys.iter().map(|key| format!("({})", is_one(key))).collect();
        let object = format!("object.?data{path}.orValue(null)");
        format!("(type({object}) != map || {object}.all(key, {}))", is_none_other.join(" && "))
    });
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_members(&[rule("apps", &["controllerrevisions"], &["CREATE"])]),
        "validations": [
            validation(
                &is_exact.join(" && "),
                "the StatefulSet controller matches keys of data case-insensitively; write metadata, namespace, spec, \
                 template and nodeName exactly so",
            ),
            validation(
                "object.?data.?metadata.?namespace.orValue(request.namespace) == request.namespace",
                "data.metadata.namespace is the namespace of the pods, so it must be the namespace of the \
                 ControllerRevision",
            ),
        ],
    })
}
