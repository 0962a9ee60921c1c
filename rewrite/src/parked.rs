//! Labels of cluster roles, which must mean nothing on the host.
//!
//! A ClusterRole with an `aggregationRule` takes in the rules of all that its selectors match (`clusterroleaggregation` in
//! kube-controller-manager): the host's own `view` by `rbac.authorization.k8s.io/aggregate-to-view`, and an operator's by
//! whatever label he chose. So no label of a virtual cluster reaches a ClusterRole of the host under its own key. Renaming
//! is one to one, so that patches, applies and what managed fields say of them are the host's to work out.

use std::borrow::Cow;

/// What the prefix of a parked key ends with.
const PARKED: &str = "parked.atoll.dev";

/// In the key of a parked label, the text between the prefix and the name of the label.
pub(crate) const PARKED_INFIX: &[u8] = b".parked.atoll.dev/";

/// The annotation that makes an API server overwrite a role with its own (`AutoUpdateAnnotationKey` in rbac/v1).
pub const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// The key under which the host keeps a label: `a.b/c` becomes `a.b.parked.atoll.dev/c`, and `c` `parked.atoll.dev/c`.
pub fn parked(key: &str) -> String {
    match key.split_once('/') {
        Some((prefix, name)) => format!("{prefix}.{PARKED}/{name}"),
        None => format!("{PARKED}/{key}"),
    }
}

/// The key that was parked; `None` if this one was not.
pub fn unparked(key: &str) -> Option<Cow<'_, str>> {
    let (prefix, name) = key.split_once('/')?;
    if prefix == PARKED {
        return Some(name.into());
    }
    let prefix = prefix.strip_suffix(PARKED)?.strip_suffix('.')?;
    Some(format!("{prefix}/{name}").into())
}

/// The key under which the host keeps an annotation. All but one mean nothing there.
pub(crate) fn parked_annotation(key: &str) -> Option<String> {
    (key == AUTO_UPDATE).then(|| parked(key))
}

/// The annotation that was parked; `None` if this one was not.
pub(crate) fn unparked_annotation(key: &str) -> Option<&'static str> {
    (unparked(key)? == AUTO_UPDATE).then_some(AUTO_UPDATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_key_comes_back() {
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
        assert_eq!(parked_annotation(AUTO_UPDATE).and_then(|host| unparked_annotation(&host)), Some(AUTO_UPDATE));
        assert_eq!((parked_annotation("a.b/c"), unparked_annotation("a.b.parked.atoll.dev/c")), (None, None));
    }
}
