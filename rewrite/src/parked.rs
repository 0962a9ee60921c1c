//! Labels and annotations that clients write and that must have no effect on the host, which stores them under other
//! keys.
//!
//! A ClusterRole with an `aggregationRule` aggregates the rules of all roles that its selectors match
//! (`clusterroleaggregation` in kube-controller-manager): the host's own `view` selects
//! `rbac.authorization.k8s.io/aggregate-to-view`, and an operator's role may select any label. So no label of a virtual
//! cluster reaches a ClusterRole of the host under its own key. The same applies to annotations that API servers obey.
//! Keys are renamed one to one, so the host itself processes them in patches, applies and managed fields.

use std::borrow::Cow;
use std::ops::Range;

/// The end of the prefix of a parked key.
const PARKED: &str = "parked.atoll.dev";

/// In the key of a parked label, the text between the prefix and the name of the label.
pub(crate) const PARKED_INFIX: &[u8] = b".parked.atoll.dev/";

/// The annotation that makes an API server overwrite a role with its own (`AutoUpdateAnnotationKey` in rbac/v1).
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The annotation of a Namespace that selects the nodes of its pods, and that overrides the default selector even if it is
/// empty (`NamespaceNodeSelectors` in `plugin/pkg/admission/podnodeselector`). On the host it belongs to the operator.
pub const NODE_SELECTOR: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// The annotation in which the host keeps the `aggregationRule` of a virtual cluster's role.
pub const AGGREGATION_ANNOTATION: &str = "atoll.dev/aggregation-rule";

/// The annotations that are parked: those of ClusterRoles and of Namespaces.
const ANNOTATIONS: [&str; 2] = [AUTO_UPDATE, NODE_SELECTOR];

/// The key under which the host keeps a label: `a.b/c` becomes `a.b.parked.atoll.dev/c`, and `c` `parked.atoll.dev/c`.
pub fn parked(key: &str) -> String {
    match key.split_once('/') {
        Some((prefix, name)) => format!("{prefix}.{PARKED}/{name}"),
        None => format!("{PARKED}/{key}"),
    }
}

/// The original key. `None` if this key is not parked.
pub fn unparked(key: &str) -> Option<Cow<'_, str>> {
    let added = added(key)?;
    let (before, after) = (&key[..added.start], &key[added.end..]);
    Some(if before.is_empty() { after.into() } else { format!("{before}{after}").into() })
}

/// The part of a parked key that the original key lacks. `None` if this key is not parked.
pub(crate) fn added(key: &str) -> Option<Range<usize>> {
    let (prefix, _) = key.split_once('/')?;
    if prefix == PARKED {
        return Some(0..prefix.len() + 1);
    }
    let original = prefix.strip_suffix(PARKED)?.strip_suffix('.')?;
    Some(original.len()..prefix.len())
}

/// The key under which the host keeps an annotation, if it is not the client's.
pub(crate) fn parked_annotation(key: &str) -> Option<String> {
    ANNOTATIONS.contains(&key).then(|| parked(key))
}

/// The original annotation. `None` if this annotation is not parked.
pub(crate) fn unparked_annotation(key: &str) -> Option<&'static str> {
    let key = unparked(key)?;
    ANNOTATIONS.into_iter().find(|known| key == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_key_is_restored() {
        for key in [
            "app",
            "a.b/c",
            "rbac.authorization.k8s.io/aggregate-to-view",
            "parked.atoll.dev/a",
            "x.parked.atoll.dev/a",
        ] {
            let host = parked(key);
            assert_ne!(host, key);
            assert_eq!(unparked(&host).as_deref(), Some(key));
        }
        for plain in ["app", "a.b/c", "kubernetes.io/bootstrapping", "xparked.atoll.dev/a"] {
            assert_eq!(unparked(plain), None, "{plain}");
        }
        for key in ANNOTATIONS {
            assert_eq!(parked_annotation(key).and_then(|host| unparked_annotation(&host)), Some(key));
        }
        assert_eq!((parked_annotation("a.b/c"), unparked_annotation("a.b.parked.atoll.dev/c")), (None, None));
    }
}
