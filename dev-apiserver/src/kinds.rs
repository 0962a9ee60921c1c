//! The kinds that are served: what discovery says, what a path may name and what may be done with it.
//!
//! The table is static. There are no custom resources: a CustomResourceDefinition could be stored but not obeyed, and
//! an API server that takes one and serves nothing is worse than one that says no.

mod kind;
mod table;

pub(crate) use kind::{Handling, Kind, Subresource};

/// Every kind, sorted by group and version in the order in which discovery names them.
pub(crate) fn all() -> &'static [Kind] {
    table::KINDS
}

/// The kind that a path names.
pub(crate) fn find(group: &str, version: &str, resource: &str) -> Option<&'static Kind> {
    all().iter().find(|kind| kind.group == group && kind.version == version && kind.resource == resource)
}

/// The kind of this resource, which must be in the table: a literal of ours.
pub(crate) fn of(group: &'static str, resource: &'static str) -> &'static Kind {
    let found = all().iter().find(|kind| kind.group == group && kind.resource == resource);
    found.expect("a literal that a test compares with the table")
}

/// Groups with their version, each once, in order.
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
    fn a_group_s_kinds_stand_together() {
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
