use proptest::prelude::*;

use super::*;

fn label() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
}

#[test]
fn host_names_are_derived_as_documented() {
    let host = HostNamespace::derive(&"edge".parse().unwrap(), &"ke-beijing".parse().unwrap());
    assert_eq!(host.as_str(), "edge-ke-beijing");
    assert_eq!(HostNamespace::root(&"ke-beijing".parse().unwrap()).as_str(), "atoll-root-ke-beijing");
}

/// A name that has the maximum length, or is longer.
fn long_label() -> impl Strategy<Value = String> {
    "[a-z0-9][a-z0-9-]{50,61}[a-z0-9]"
}

#[test]
fn a_long_name_is_shortened_with_a_digest() {
    let (long, ke) = ("n".repeat(63), ClusterName::new("ke").unwrap());
    let host = HostNamespace::derive(&long.parse().unwrap(), &ke);
    // printf '%s\0ke' nnn...n | sha256sum | xxd -r -p | base32 begins with these twenty digits.
    assert_eq!(host.as_str(), format!("{}-hvm2gapwscdzvxssrxcj", "n".repeat(42)));
    // printf '%s\0ke' nnn...n | sha256sum begins with these ten.
    let former = HostNamespace::derive_formerly(&long.parse().unwrap(), &ke).unwrap();
    assert_eq!(former.as_str(), format!("{}-3d59a301f6", "n".repeat(52)));

    let long = ClusterName::new(&long).unwrap();
    let expected = format!("atoll-root-{}-epwetfh4wtmge2qhgpje", "n".repeat(31));
    assert_eq!(HostNamespace::root(&long).as_str(), expected);
    assert!(HostNamespace::former_root(&long).unwrap().is_root());
    assert_eq!(HostNamespace::former_root(&ke), None);
    assert_eq!(HostNamespace::derive_formerly(&"edge".parse().unwrap(), &ke), None);
}

#[test]
fn a_shortened_name_never_ends_in_a_hyphen() {
    let name = format!("{}{}{}", "n".repeat(41), "-".repeat(3), "n".repeat(19));
    let host = HostNamespace::derive(&name.parse().unwrap(), &"ke".parse().unwrap());
    assert!(is_label(host.as_ref()));
    assert!(host.as_str().starts_with(&format!("{}-", "n".repeat(41))), "{host}");
    assert_eq!(host.as_str().len(), 62, "{host}");
}

#[test]
fn text_that_is_not_a_label_is_refused() {
    for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", &"a".repeat(64)] {
        assert_eq!(VirtualNamespace::new(bad), Err(NotALabel), "{bad:?}");
    }
}

#[test]
fn endings_follow_hyphens() {
    assert_eq!(endings("a-b--c").collect::<Vec<_>>(), ["b--c", "-c", "c"]);
    assert_eq!(endings("abc").count(), 0);
}

proptest! {
    /// Few letters and short names, so that collisions are frequent.
    #[test]
    fn host_names_collide_only_if_one_cluster_ends_with_the_other(
        (one, other) in ("[ab]([ab-]{0,3}[ab])?", "[ab]([ab-]{0,3}[ab])?"),
        name in "[ab]([ab-]{0,5}[ab])?",
    ) {
        prop_assume!(one != other);
        let (one, other) = (ClusterName::new(&one).unwrap(), ClusterName::new(&other).unwrap());
        let host = HostNamespace::derive(&VirtualNamespace::new(&name).unwrap(), &one);
        // Short names are not shortened, so at most one virtual name has a given host name.
        let meets = host.as_str().strip_suffix(other.as_str()).and_then(|rest| rest.strip_suffix('-'));
        let meets = meets.is_some_and(|name| VirtualNamespace::new(name).is_ok());
        let ends = |long: &ClusterName, short: &ClusterName| endings(long.as_str()).any(|ending| ending == short.as_str());
        prop_assert!(!meets || ends(&one, &other) || ends(&other, &one));
    }

    #[test]
    fn every_derived_name_is_a_label(name in label(), cluster in label()) {
        let cluster = ClusterName::new(&cluster).unwrap();
        let host = HostNamespace::derive(&VirtualNamespace::new(&name).unwrap(), &cluster);
        prop_assert!(is_label(host.as_ref()));
        prop_assert!(is_label(HostNamespace::root(&cluster).as_ref()));
    }

    #[test]
    fn two_namespaces_of_one_cluster_never_share_a_host_name(a in label(), b in label(), cluster in label()) {
        prop_assume!(a != b);
        let cluster = ClusterName::new(&cluster).unwrap();
        let derive = |name: &str| HostNamespace::derive(&VirtualNamespace::new(name).unwrap(), &cluster);
        prop_assert_ne!(derive(&a), derive(&b));
    }

    #[test]
    fn short_names_are_not_shortened(name in label(), cluster in label()) {
        let (virtual_name, cluster) = (VirtualNamespace::new(&name).unwrap(), ClusterName::new(&cluster).unwrap());
        let whole = format!("{name}-{cluster}");
        let host = HostNamespace::derive(&virtual_name, &cluster);
        prop_assert_eq!(host.as_str() == whole, whole.len() <= MAX_LABEL);
        prop_assert_eq!(HostNamespace::derive_formerly(&virtual_name, &cluster).is_none(), whole.len() <= MAX_LABEL);
        let root = format!("atoll-root-{cluster}");
        prop_assert_eq!(HostNamespace::root(&cluster).as_str() == root, root.len() <= MAX_LABEL);
        prop_assert_eq!(HostNamespace::former_root(&cluster).is_none(), root.len() <= MAX_LABEL);
    }

    /// No new name equals a name in the former form.
    #[test]
    fn the_two_forms_of_shortened_names_never_collide(
        (one, other) in (long_label(), long_label()),
        (cluster, other_cluster) in (long_label(), long_label()),
    ) {
        let cluster = ClusterName::new(&cluster).unwrap();
        let host = HostNamespace::derive(&VirtualNamespace::new(&one).unwrap(), &cluster);
        let digest = &host.as_str().as_bytes()[host.as_str().len() - 20..];
        prop_assert!(!digest.contains(&b'-'), "{}", host);
        let former = |name: &str, cluster: &ClusterName| {
            HostNamespace::derive_formerly(&VirtualNamespace::new(name).unwrap(), cluster).unwrap()
        };
        let others = ClusterName::new(&other_cluster).unwrap();
        for former in [former(&one, &cluster), former(&other, &others)] {
            prop_assert!(is_label(former.as_ref()));
            prop_assert!(former.as_str().as_bytes()[former.as_str().len() - 20..].contains(&b'-'), "{}", former);
        }
    }

    /// Names with the same beginning differ in their digests.
    #[test]
    fn long_names_with_the_same_beginning_differ(beginning in "[a-z]{60}", (a, b) in ("[a-z]{1,3}", "[a-z]{1,3}"), cluster in long_label()) {
        prop_assume!(a != b);
        let cluster = ClusterName::new(&cluster).unwrap();
        let derive = |end: &str| {
            HostNamespace::derive(&VirtualNamespace::new(&format!("{beginning}{end}")).unwrap(), &cluster)
        };
        let (one, other) = (derive(&a), derive(&b));
        prop_assert_eq!(&one.as_str()[..43], &other.as_str()[..43]);
        let (one, other) = (&one.as_str().as_bytes()[43..], &other.as_str().as_bytes()[43..]);
        prop_assert!(one.iter().zip(other).filter(|(one, other)| one != other).count() > 5, "100 bits, not a few");
    }
}

#[test]
fn only_a_shortened_name_ends_with_digits() {
    let (ke, short) = (ClusterName::new("ke").unwrap(), VirtualNamespace::new("edge").unwrap());
    let long = VirtualNamespace::new(&"n".repeat(63)).unwrap();
    let names = [HostNamespace::derive(&long, &ke), HostNamespace::derive_formerly(&long, &ke).unwrap()];
    assert!(names.iter().all(|name| HostNamespace::may_be_shortened(name.as_ref())));
    for name in
        ["edge-ke", "kube-system", HostNamespace::derive(&short, &ke).as_str(), "", &"a".repeat(20), "x-0123456789abc"]
    {
        assert!(!HostNamespace::may_be_shortened(name.as_bytes()), "{name}");
    }
}
