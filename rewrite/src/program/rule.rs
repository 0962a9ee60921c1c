//! The types of the objects that a rule of a role names (`PolicyRule` of rbac/v1).

/// The objects in `resourceNames`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Namespaces.
    OfNamespaces,
    /// ClusterRoles.
    OfRoles,
    /// Namespaces or ClusterRoles, and objects whose names are mapped differently.
    Mixed,
    /// Other objects. This includes a rule for all resources, because its names are never only those of Namespaces or ClusterRoles.
    OfOthers,
}

/// The mapped resources, with their groups.
const MAPPED: [(&str, &str, Names); 2] =
    [("", "namespaces", Names::OfNamespaces), ("rbac.authorization.k8s.io", "clusterroles", Names::OfRoles)];

// === impl Names ===

impl Names {
    /// By the `apiGroups` and `resources` of a rule.
    pub(crate) fn of<S: AsRef<str>>(groups: &[S], resources: &[S]) -> Self {
        let found = MAPPED.into_iter().find(|(group, mapped, _)| {
            groups.iter().any(|given| given.as_ref() == *group || given.as_ref() == "*")
                && resources.iter().any(|resource| is(resource.as_ref(), mapped))
        });
        match found {
            None => Self::OfOthers,
            Some((_, mapped, names)) if resources.iter().all(|resource| is(resource.as_ref(), mapped)) => names,
            Some(_) => Self::Mixed,
        }
    }
}

/// Whether a resource is the mapped one, or a subresource of it.
fn is(resource: &str, mapped: &str) -> bool {
    resource.strip_prefix(mapped).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_type_of_the_resources() {
        for (groups, resources, expected) in [
            (&[""][..], &["namespaces"][..], Names::OfNamespaces),
            (&["*", "apps"], &["namespaces/status", "namespaces"], Names::OfNamespaces),
            (&[""], &["namespaces", "pods"], Names::Mixed),
            (&[""], &["pods"], Names::OfOthers),
            (&[""], &["*"], Names::OfOthers),
            (&["apps"], &["namespaces"], Names::OfOthers),
            (&["rbac.authorization.k8s.io"], &["clusterroles"], Names::OfRoles),
            (&["*"], &["clusterroles"], Names::OfRoles),
            (&["*"], &["clusterroles", "namespaces"], Names::Mixed),
            (&["rbac.authorization.k8s.io"], &["clusterroles", "clusterrolebindings"], Names::Mixed),
            (&["rbac.authorization.k8s.io"], &["clusterrolebindings"], Names::OfOthers),
            (&[""], &["clusterroles"], Names::OfOthers),
            (&[], &["namespaces"], Names::OfOthers),
            (&[""], &[], Names::OfOthers),
        ] {
            assert_eq!(Names::of(groups, resources), expected, "{groups:?} {resources:?}");
        }
    }
}
