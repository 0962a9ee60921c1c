use proptest::prelude::*;

use super::*;

fn label() -> impl Strategy<Value = String> {
    "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
}

#[test]
fn derivation_is_what_the_proposal_shows() {
    let host = HostNamespace::derive(&"edge".parse().unwrap(), &"ke-beijing".parse().unwrap());
    assert_eq!(host.as_str(), "edge-ke-beijing");
    assert_eq!(HostNamespace::root(&"ke-beijing".parse().unwrap()).as_str(), "atoll-root-ke-beijing");
}

#[test]
fn a_long_name_is_cut_and_carries_a_digest() {
    let long = "n".repeat(63);
    let host = HostNamespace::derive(&long.parse().unwrap(), &"ke".parse().unwrap());
    // printf '%s\0ke' nnn...n | sha256sum begins with these ten digits.
    assert_eq!(host.as_str(), format!("{}-3d59a301f6", "n".repeat(52)));
}

#[test]
fn a_cut_never_ends_in_a_hyphen() {
    let name = format!("{}{}{}", "n".repeat(51), "-".repeat(3), "n".repeat(9));
    let host = HostNamespace::derive(&name.parse().unwrap(), &"ke".parse().unwrap());
    assert!(is_label(host.as_ref()));
    assert_eq!(host.as_str().as_bytes()[50], b'n');
    assert_ne!(host.as_str().as_bytes()[52], b'-', "{host}");
}

#[test]
fn what_is_not_a_label_is_refused() {
    for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", &"a".repeat(64)] {
        assert_eq!(VirtualNamespace::new(bad), Err(NotALabel), "{bad:?}");
    }
}

#[test]
fn what_follows_a_hyphen_is_an_ending() {
    assert_eq!(endings("a-b--c").collect::<Vec<_>>(), ["b--c", "-c", "c"]);
    assert_eq!(endings("abc").count(), 0);
}

proptest! {
    /// Few letters and short names, so that the two often meet.
    #[test]
    fn clusters_meet_only_where_one_ends_with_the_other(
        (one, other) in ("[ab]([ab-]{0,3}[ab])?", "[ab]([ab-]{0,3}[ab])?"),
        name in "[ab]([ab-]{0,5}[ab])?",
    ) {
        prop_assume!(one != other);
        let (one, other) = (ClusterName::new(&one).unwrap(), ClusterName::new(&other).unwrap());
        let host = HostNamespace::derive(&VirtualNamespace::new(&name).unwrap(), &one);
        // Short names are whole, so there is one virtual name at most that could lead there.
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
}
