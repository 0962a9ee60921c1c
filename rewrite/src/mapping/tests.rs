use proptest::prelude::*;

use super::identity::{Seen, Unmappable};
use super::*;

fn cluster(name: &str) -> ClusterName {
    name.parse().unwrap()
}

fn virtual_name(name: &str) -> VirtualNamespace {
    name.parse().unwrap()
}

fn index() -> Arc<Index> {
    let mut index = Index::new();
    for (host, owner, name) in
        [("edge-ke", "ke", "edge"), ("default-ke", "ke", "default"), ("edge-edge-1", "edge-1", "edge")]
    {
        index.insert(host.parse().unwrap(), cluster(owner), virtual_name(name)).unwrap();
    }
    index.insert_host("kube-system".parse().unwrap());
    Arc::new(index)
}

fn ke() -> Mapping {
    Mapping::new(cluster("ke"), index())
}

#[test]
fn membership_is_never_read_from_the_name() {
    assert_eq!(ke().member(b"edge-ke"), Some(&virtual_name("edge")));
    assert_eq!(ke().member(b"other-ke"), None);
    assert_eq!(Mapping::new(cluster("1"), index()).member(b"edge-edge-1"), None);
}

#[test]
fn a_namespace_of_another_owner_cannot_be_used() {
    let taken = |cluster: ClusterName, name: &str| Mapping::new(cluster, index()).host(&virtual_name(name)).is_err();
    assert!(taken(cluster("system"), "kube"));
    assert!(taken(cluster("1"), "edge-edge"));
    assert!(taken(cluster("ke"), "atoll-root"));
    assert!(taken(cluster("root-ke"), "atoll"));
}

#[test]
fn references_are_shown_as_they_were_written() {
    assert_eq!(ke().shown(b"edge-ke"), Shown::As("edge".into()));
    assert_eq!(ke().shown(b"not-yet-ke"), Shown::As("not-yet".into()));
    assert_eq!(ke().shown(b"kube-system"), Shown::Foreign);
    assert_eq!(ke().shown(b"edge-edge-1"), Shown::Foreign);
    assert_eq!(ke().shown(b"*"), Shown::Unchanged);
    assert_eq!(ke().shown(b""), Shown::Unchanged);
    assert_eq!(ke().shown(b"atoll-root-ke"), Shown::Foreign);
}

#[test]
fn one_virtual_name_has_one_host_name() {
    let mut index = Index::clone(&index());
    assert!(index.insert("edge2-ke".parse().unwrap(), cluster("ke"), virtual_name("edge")).is_err());
    index.remove(&"edge-ke".parse().unwrap());
    index.insert("edge2-ke".parse().unwrap(), cluster("ke"), virtual_name("edge")).unwrap();
    assert_eq!(index.host(&cluster("ke"), &virtual_name("edge")).unwrap().as_str(), "edge2-ke");
}

#[test]
fn users_and_groups_differ_from_those_of_the_host() {
    for (name, host) in [
        ("system:masters", "vc:ke:system:masters"),
        ("system:serviceaccount:edge:bob", "system:serviceaccount:edge-ke:bob"),
        ("system:serviceaccounts:edge", "system:serviceaccounts:edge-ke"),
        ("system:serviceaccounts", "vc:ke:system:serviceaccounts"),
        ("", "vc:ke:"),
    ] {
        assert_eq!(ke().identity(name).as_deref(), Ok(host));
        assert_eq!(ke().seen(host), Seen::Own(name.into()));
    }
    for foreign in ["system:masters", "vc:other:eve", "system:serviceaccount:kube-system:a", "vc:k"] {
        assert_eq!(ke().seen(foreign), Seen::Foreign);
    }
    assert_eq!(ke().identity("host:eve"), Err(Unmappable::Host));
    assert_eq!(ke().identity("system:serviceaccount:A:b"), Err(Unmappable::NotALabel));
}

#[test]
fn messages_contain_virtual_names() {
    let mapping = ke().with_requested_namespace(virtual_name("gone"));
    for (host, shown) in [
        (r#"namespaces "edge-ke" not found"#, r#"namespaces "edge" not found"#),
        (r#"namespaces "gone-ke" not found"#, r#"namespaces "gone" not found"#),
        ("a.edge-ke.svc, edge-ke/a", "a.edge.svc, edge/a"),
        (r#"User "vc:ke:eve" cannot"#, r#"User "eve" cannot"#),
        ("edge-ke-1 xedge-ke edge-ke_ kube-system vc:kex", "edge-ke-1 xedge-ke edge-ke_ kube-system vc:kex"),
    ] {
        assert_eq!(mapping.readable(host).unwrap_or_else(|| host.into()), shown);
    }
}

proptest! {
    #[test]
    fn identities_are_mapped_back(name in "(system:serviceaccounts?:)?[a-z:]{0,12}") {
        if let Ok(host) = ke().identity(&name) {
            prop_assert_eq!(ke().seen(&host), Seen::Own(name));
        }
    }

    #[test]
    fn references_are_mapped_back(name in "[a-z0-9]([a-z0-9-]{0,50}[a-z0-9])?") {
        if let Ok(host) = ke().host(&virtual_name(&name)) {
            prop_assert_eq!(ke().shown(host.as_ref()), Shown::As(name.into()));
        }
    }
}
