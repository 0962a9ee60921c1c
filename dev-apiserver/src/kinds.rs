//! The kinds that this server has, with their resources, verbs and subresources.
//!
//! The table is static, so there are no custom resources, and CustomResourceDefinitions are refused.

mod kind;
mod table;

pub(crate) use kind::{Handling, Kind, Subresource, api_version};

/// All kinds in the order of discovery. The kinds of a group are consecutive.
pub(crate) fn all() -> &'static [Kind] {
    table::KINDS
}

/// The kind of a resource in a path.
pub(crate) fn find(group: &str, version: &str, resource: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.group == group && kind.version == version && kind.resource == resource)
}

/// The kind of a resource. The arguments are literals that are in the table.
pub(crate) fn of(group: &'static str, resource: &'static str) -> &'static Kind {
    let found = all().iter().find(|kind| kind.group == group && kind.resource == resource);
    found.expect("callers pass only resources of the table")
}

/// All groups with their versions, in order.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = all();
    let is_first = |at: usize| at == 0 || all[at - 1].group != all[at].group;
    all.iter().enumerate().filter(move |(at, _)| is_first(*at)).map(|(_, kind)| (kind.group, kind.version))
}

/// The kinds of a group and version.
pub(crate) fn in_group(group: &str, version: &str) -> impl Iterator<Item = &'static Kind> {
    all().iter().filter(move |kind| kind.group == group && kind.version == version)
}

#[cfg(test)]
mod tests {
    use kube_wire::Verb;

    use super::*;

    #[test]
    fn the_kinds_of_a_group_are_consecutive() {
        let groups: Vec<_> = groups().collect();
        let mut once = groups.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(groups.len(), once.len(), "{groups:?}");
        assert_eq!(groups[0], ("", "v1"));
    }

    #[test]
    fn a_resource_is_found_by_its_path() {
        let deployments = find("apps", "v1", "deployments").unwrap();
        assert_eq!((deployments.api_version().as_str(), deployments.singular().as_str()), ("apps/v1", "deployment"));
        assert!(find("apps", "v1beta1", "deployments").is_none());
        assert!(!of("", "namespaces").allows(Verb::DeleteCollection));
    }
}
