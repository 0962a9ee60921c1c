use proptest::prelude::*;
use rewrite::VirtualNamespace;
use rewrite::mapping::Owner;

use super::*;
use crate::namespaces::Annotations;
use crate::pod_security::Posture;

fn cluster() -> ClusterName {
    ClusterName::new("vc").unwrap()
}

fn host() -> HostNamespace {
    HostNamespace::new("edge-vc").unwrap()
}

fn record(version: u64, uid: &str) -> Record {
    let claim = Some((cluster(), VirtualNamespace::new("edge").unwrap()));
    Record {
        version: Version(version),
        uid: uid.into(),
        phase: Phase::Active,
        claim,
        root_of: None,
        posture: Posture::default(),
        annotations: Annotations::default(),
        identity: None,
        full: None,
    }
}

fn gone(version: Option<u64>, uid: &str) -> Gone {
    Gone { version: version.map(Version), uid: Some(uid.into()) }
}

fn complete() -> Ledger {
    let mut ledger = Ledger::new([cluster()]);
    ledger.complete();
    ledger
}

#[test]
fn a_delayed_event_does_not_undo_a_response() {
    let mut ledger = complete();
    assert!(ledger.learn(&host(), record(10, "new"), Source::Response));
    // The one before it, of the same name.
    assert!(!ledger.learn(&host(), record(5, "old"), Source::Watch));
    assert!(!ledger.forget(&host(), &gone(Some(7), "old")));
    assert!(!ledger.forget(&host(), &gone(None, "old")));
    assert_eq!(&*ledger.member(&host()).unwrap().uid, "new");
    assert!(ledger.forget(&host(), &gone(None, "new")));
    assert!(ledger.index().owner(b"edge-vc").is_none());
}

#[test]
fn a_delayed_response_does_not_restore_a_deleted_namespace() {
    let mut ledger = complete();
    ledger.learn(&host(), record(10, "u"), Source::Watch);
    ledger.forget(&host(), &gone(Some(20), "u"));
    assert!(!ledger.learn(&host(), record(10, "u"), Source::Response));
    assert!(ledger.member(&host()).is_none());
}

#[test]
fn a_namespace_of_another_owner_is_recognised() {
    let mut ledger = complete();
    ledger.learn(&host(), Record { claim: None, ..record(1, "u") }, Source::Watch);
    assert_eq!(ledger.index().owner(b"edge-vc"), Some(&Owner::Host));
    let other = ClusterName::new("other").unwrap();
    let claim = Some((other.clone(), VirtualNamespace::new("edge").unwrap()));
    let theirs = HostNamespace::new("edge-other").unwrap();
    ledger.learn(&theirs, Record { claim, ..record(2, "v") }, Source::Watch);
    assert_eq!(ledger.index().owner(b"edge-other"), Some(&Owner::Host));
    // Until it is one of ours.
    assert_eq!(ledger.serve([cluster(), other.clone()]), [theirs]);
    assert_eq!(ledger.serve([cluster(), other.clone()]), [], "nothing changes");
    assert!(matches!(ledger.index().owner(b"edge-other"), Some(Owner::Virtual { cluster, .. }) if *cluster == other));
}

#[test]
fn removing_the_label_ends_membership() {
    let mut ledger = complete();
    ledger.learn(&host(), record(1, "u"), Source::Watch);
    assert!(ledger.learn(&host(), Record { claim: None, ..record(2, "u") }, Source::Watch));
    assert!(ledger.member(&host()).is_none() && ledger.members(&cluster()).is_empty());
}

/// A namespace whose name is too long, as it is called today and as an earlier version has called it.
fn long() -> (VirtualNamespace, HostNamespace, HostNamespace) {
    let name = VirtualNamespace::new(&"n".repeat(63)).unwrap();
    let (today, former) = (HostNamespace::derive(&name, &cluster()), HostNamespace::derive_formerly(&name, &cluster()));
    (name, today, former.unwrap())
}

#[test]
fn names_of_an_earlier_version_stay_unless_the_current_name_exists() {
    let (name, today, former) = long();
    let claimed = |version| Record { claim: Some((cluster(), name.clone())), ..record(version, "u") };
    let mut ledger = complete();
    let is = |ledger: &Ledger, host: &HostNamespace| {
        let other = if *host == today { &former } else { &today };
        assert!(ledger.member(host).is_some() && ledger.member(other).is_none());
        assert_eq!(ledger.index().host(&cluster(), &name), Some(host));
        assert_eq!(ledger.members(&cluster()).len(), 1);
        assert!(!matches!(ledger.index().owner(other.as_ref()), Some(Owner::Virtual { .. })));
    };
    ledger.learn(&former, claimed(1), Source::Watch);
    is(&ledger, &former);
    ledger.learn(&today, claimed(2), Source::Watch);
    is(&ledger, &today);
    ledger.serve([cluster()]);
    is(&ledger, &today);
    ledger.learn(&former, claimed(3), Source::Watch);
    is(&ledger, &today);
    // Another claim, and none at all.
    ledger.learn(&today, Record { claim: None, ..claimed(4) }, Source::Watch);
    is(&ledger, &former);
    ledger.learn(&today, claimed(5), Source::Watch);
    is(&ledger, &today);
    ledger.forget(&today, &gone(Some(6), "u"));
    is(&ledger, &former);
    ledger.forget(&former, &gone(Some(7), "u"));
    assert!(ledger.members(&cluster()).is_empty() && ledger.index().host(&cluster(), &name).is_none());
}

/// The history of one name on the host, in order: version, whether it exists from then on, and its incarnation.
fn history() -> impl Strategy<Value = Vec<(u64, bool, u32)>> {
    prop::collection::vec(any::<bool>(), 1..12).prop_map(|steps| {
        let (mut exists, mut incarnation) = (false, 0);
        let mut history = Vec::new();
        for (version, delete) in (1..).zip(steps) {
            exists = if exists { !delete } else { true };
            // A name that was free gets a new namespace.
            if exists && history.last().is_none_or(|(_, existed, _)| !existed) {
                incarnation += 1;
            }
            history.push((version, exists, incarnation));
        }
        history
    })
}

proptest! {
    /// Regardless of the order of changes, the index has one namespace for each virtual name, as the records require.
    #[test]
    fn at_most_one_namespace_has_a_name(steps in prop::collection::vec((any::<bool>(), 0_u8..3), 1..20)) {
        let (name, today, former) = long();
        let mut ledger = complete();
        let mut has = [None, None];
        for (version, (is_former, what)) in (1..).zip(steps) {
            let host = if is_former { &former } else { &today };
            match what {
                0 => { ledger.forget(host, &gone(Some(version), "u")); }
                what => {
                    let claim = (what == 1).then(|| (cluster(), name.clone()));
                    ledger.learn(host, Record { claim, ..record(version, "u") }, Source::Watch);
                }
            }
            has[usize::from(is_former)] = (what != 0).then_some(what == 1);
            let expected = if has[0] == Some(true) { Some(&today) } else { (has[1] == Some(true)).then_some(&former) };
            let index = ledger.index();
            prop_assert_eq!(index.host(&cluster(), &name), expected);
            for (host, has) in [(&today, has[0]), (&former, has[1])] {
                prop_assert_eq!(index.owner(host.as_ref()).is_some(), has.is_some());
                prop_assert_eq!(ledger.member(host).is_some(), expected == Some(host));
            }
        }
    }

    /// For any interleaving of responses with the watch, the ledger finally agrees with the host.
    #[test]
    fn the_last_state_wins(history in history(), answers in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 0..6)) {
        let mut ledger = complete();
        // A response is read some events before or after the watch delivers the same state.
        let mut late: Vec<(usize, u64, u32)> = answers
            .iter()
            .filter_map(|(index, delay)| {
                let at = index.index(history.len());
                let (version, exists, incarnation) = history[at];
                exists.then_some((at + delay, version, incarnation))
            })
            .map(|(at, version, incarnation)| (at.saturating_sub(1), version, incarnation))
            .collect();
        late.sort_unstable();
        for (at, (version, exists, incarnation)) in history.iter().enumerate() {
            for (_, version, incarnation) in late.iter().filter(|(due, ..)| *due == at) {
                ledger.learn(&host(), record(*version, &incarnation.to_string()), Source::Response);
            }
            if *exists {
                ledger.learn(&host(), record(*version, &incarnation.to_string()), Source::Watch);
            } else {
                ledger.forget(&host(), &gone(Some(*version), &incarnation.to_string()));
            }
        }
        for (_, version, incarnation) in late.iter().filter(|(due, ..)| *due >= history.len()) {
            ledger.learn(&host(), record(*version, &incarnation.to_string()), Source::Response);
        }
        let (_, exists, incarnation) = history.last().unwrap();
        let known = ledger.member(&host()).map(|member| member.uid.to_string());
        prop_assert_eq!(known, exists.then(|| incarnation.to_string()));
    }
}

#[test]
fn root_namespaces_change_with_their_clusters() {
    let mut ledger = complete();
    let root = |cluster: &ClusterName| HostNamespace::root(cluster);
    let other = ClusterName::new("other").unwrap();
    for cluster in [&cluster(), &other] {
        ledger.learn(&root(cluster), Record { claim: None, ..record(1, "u") }, Source::Watch);
    }
    assert_eq!(ledger.cluster_of_root(root(&cluster()).as_str()), Some(cluster()));
    assert_eq!(ledger.cluster_of_root(root(&other).as_str()), None);
    assert_eq!(ledger.serve([cluster(), other.clone()]), [root(&other)]);
    assert_eq!(ledger.cluster_of_root(root(&other).as_str()), Some(other));
    assert_eq!(ledger.serve([]).len(), 2);
}

/// Namespace `edge` of `ke-vc` and namespace `edge-ke` of `vc` have the same host name.
#[test]
fn clusters_with_one_name_at_the_end_of_the_other_conflict() {
    let named = |name: &str| ClusterName::new(name).unwrap();
    let mut ledger = complete();
    let root = |ledger: &mut Ledger, name: &str| {
        let root_of = Some(named(name));
        let record = Record { claim: None, root_of, ..record(1, "u") };
        ledger.learn(&HostNamespace::root(&named(name)), record, Source::Watch);
    };
    root(&mut ledger, "ke-vc");
    root(&mut ledger, "other");
    for (cluster, other) in
        [("vc", Some("ke-vc")), ("x-ke-vc", Some("ke-vc")), ("ke-vc", None), ("e-vc", None), ("vcx", None)]
    {
        assert_eq!(ledger.name_conflict(&named(cluster)), other.map(named), "{cluster}");
    }
    // Both exist already, from a time before this check.
    root(&mut ledger, "vc");
    assert_eq!(ledger.name_conflict(&named("vc")), None);
}

#[test]
fn a_root_namespace_gives_its_cluster_an_identity() {
    let mut ledger = complete();
    let (root, system) = (HostNamespace::root(&cluster()), HostNamespace::new("kube-system-vc").unwrap());
    let claim = Some((cluster(), VirtualNamespace::new("kube-system").unwrap()));
    let system_record = |version, uid| Record { claim: claim.clone(), ..record(version, uid) };
    let root_record = |version, identity: Option<&str>| Record {
        claim: None,
        root_of: Some(cluster()),
        identity: identity.map(Arc::from),
        ..record(version, "root")
    };
    let identity = |ledger: &Ledger| {
        let text = |uid: &bytes::Bytes| String::from_utf8(uid.to_vec()).unwrap();
        ledger.index().identity(&cluster()).map(|identity| (text(&identity.host), text(&identity.shown)))
    };
    let expected = |host: &str| Some((host.to_owned(), "old".to_owned()));

    ledger.learn(&root, root_record(1, Some("old")), Source::Watch);
    assert_eq!(identity(&ledger), None, "there is no kube-system yet");
    ledger.learn(&system, system_record(2, "new"), Source::Watch);
    assert_eq!(identity(&ledger), expected("new"));
    ledger.forget(&system, &gone(Some(3), "new"));
    assert_eq!(identity(&ledger), None);
    ledger.learn(&system, system_record(4, "newer"), Source::Watch);
    assert_eq!(identity(&ledger), expected("newer"));
    ledger.serve([]);
    assert_eq!(identity(&ledger), None);
    ledger.serve([cluster()]);
    assert_eq!(identity(&ledger), expected("newer"));
    assert!(ledger.learn(&root, root_record(5, None), Source::Watch), "subscribers learn it");
    assert_eq!(identity(&ledger), None);
    ledger.learn(&root, root_record(6, Some("newer")), Source::Watch);
    assert_eq!(identity(&ledger), None, "the host has it");
}
