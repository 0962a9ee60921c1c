//! What the names in a rule of a role are of (`PolicyRule` of rbac/v1).

/// What `resourceNames` name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Namespaces.
    OfNamespaces,
    /// Namespaces, and objects whose names are the same on the host.
    Mixed,
    /// Other objects. A rule about all resources is one too: by name, it is never about namespaces alone.
    OfOthers,
}

// === impl Names ===

impl Names {
    /// By the `apiGroups` and `resources` of a rule.
    pub(crate) fn of<S: AsRef<str>>(groups: &[S], resources: &[S]) -> Self {
        let is_core = |group: &S| matches!(group.as_ref(), "" | "*");
        let is_namespaces = |resource: &S| {
            let resource = resource.as_ref();
            resource == "namespaces" || resource.starts_with("namespaces/")
        };
        if !groups.iter().any(is_core) || !resources.iter().any(is_namespaces) {
            Self::OfOthers
        } else if resources.iter().all(is_namespaces) {
            Self::OfNamespaces
        } else {
            Self::Mixed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_what_stands_beside_them() {
        for (groups, resources, expected) in [
            (&[""][..], &["namespaces"][..], Names::OfNamespaces),
            (&["*", "apps"], &["namespaces/status", "namespaces"], Names::OfNamespaces),
            (&[""], &["namespaces", "pods"], Names::Mixed),
            (&[""], &["pods"], Names::OfOthers),
            (&[""], &["*"], Names::OfOthers),
            (&["apps"], &["namespaces"], Names::OfOthers),
            (&[], &["namespaces"], Names::OfOthers),
            (&[""], &[], Names::OfOthers),
        ] {
            assert_eq!(Names::of(groups, resources), expected, "{groups:?} {resources:?}");
        }
    }
}
