//! Namespaces of virtual clusters, and the objects in their root namespaces.

use rewrite::name::{CLUSTER_LABEL, NAMESPACE_LABEL};
use rewrite::request::PROTECTED;
use serde_json::{Value, json};

use super::vocabulary::{anywhere, everywhere, in_namespaces, through};
use crate::admission_policies::policy::{cluster_rule, literal, rule, validation, variable};
use crate::namespaces::annotations::{self, KEYS};
use crate::namespaces::{FULL, IDENTITY};
use crate::provisioner::ROOT_LABEL;

/// Labels assign a namespace to a virtual cluster, annotations select the nodes of its pods, and finalizers keep it
/// until it is empty.
pub(super) fn members() -> Value {
    let is_ours = format!(
        "[object, oldObject].exists(it, it != null && has(it.metadata.labels) \
         && ('{CLUSTER_LABEL}' in it.metadata.labels || '{ROOT_LABEL}' in it.metadata.labels))"
    );
    // These are the labels before the write: the write itself must not determine whether it is allowed.
    let labels = "[oldObject, object].filter(it, it != null).map(it, it.?metadata.?labels.orValue({}))[0]";
    let through = format!(
        "['{CLUSTER_LABEL}', '{ROOT_LABEL}'].exists(key, key in variables.labels \
         && ('vc:' + variables.labels[key] + ':system:authenticated') in request.userInfo.groups)"
    );
    let patterns = format!(
        "oldObject == null ? [] : oldObject.?metadata.?annotations[?{}].orValue('').split(',')",
        literal(annotations::PROTECTED)
    );
    let (labels_kept, annotations_kept) = (kept("labels"), kept("annotations"));
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": anywhere(&[
            cluster_rule(
                &["namespaces", "namespaces/finalize", "namespaces/status"],
                &["CREATE", "UPDATE", "DELETE"],
            ),
        ]),
        "matchConditions": [{"name": "ours", "expression": is_ours}],
        "variables": [
            variable("labels", labels), variable("patterns", &patterns), variable("through", &through), everywhere(),
        ],
        "validations": [
            validation(
                "variables.through || variables.everywhere",
                "only users of the endpoint of the virtual cluster, and identities that may write every namespace, \
                 can write this namespace",
            ),
            validation(
                &format!(
                    "request.operation != 'UPDATE' || variables.everywhere || {labels_kept} && {annotations_kept}"
                ),
                "labels and annotations that assign the namespace to a virtual cluster, or that the operator of the \
                 host cluster protects, cannot be changed",
            ),
        ],
    })
}

/// Checks that an update does not change protected labels and annotations. The rewriting engine ensures this too; the
/// policy applies even if the engine misreads a request.
///
/// An annotation of the Namespace lists the protected keys, because agents of one host may have different
/// configurations. The policy contains the keys that are always protected.
fn kept(field: &str) -> String {
    let ours = [CLUSTER_LABEL, NAMESPACE_LABEL, ROOT_LABEL, FULL, IDENTITY];
    let protected = ours.iter().chain(&KEYS).chain(&PROTECTED).map(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => format!("key.startsWith({})", literal(prefix)),
        None => format!("key == {}", literal(pattern)),
    });
    // As `KeyPattern` matches.
    let configured = "variables.patterns.exists(it, it.startsWith('*') \
        ? (it.endsWith('*') ? key.contains(it.substring(1, it.size() - 1)) : key.endsWith(it.substring(1))) \
        : it.endsWith('*') ? key.startsWith(it.substring(0, it.size() - 1)) : key == it)";
    let is_free = format!("!({} || {configured})", protected.collect::<Vec<_>>().join(" || "));
    let of = |object: &str| format!("{object}.?metadata.?{field}.orValue({{}})");
    let (before, after) = (of("oldObject"), of("object"));
    format!(
        "{before}.all(key, {is_free} || key in {after} && {after}[key] == {before}[key]) \
         && {after}.all(key, {is_free} || key in {before})"
    )
}

/// A root namespace holds cluster-wide objects of its virtual cluster, and never a pod.
pub(super) fn roots() -> Value {
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": in_namespaces(ROOT_LABEL, &[
            rule("*", &["*/*"], &["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        ]),
        "variables": [through(ROOT_LABEL), everywhere()],
        "validations": [validation(
            "variables.through || variables.everywhere",
            "cluster-scoped objects of a virtual cluster can be written only through its endpoint",
        )],
    })
}
