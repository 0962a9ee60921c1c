use proptest::prelude::*;
use rewrite::VirtualNamespace;
use rewrite::mapping::Owner;

use super::*;

fn cluster() -> ClusterName {
    ClusterName::new("vc").unwrap()
}

fn host() -> HostNamespace {
    HostNamespace::new("edge-vc").unwrap()
}

fn record(version: u64, uid: &str) -> Record {
    let claim = Some((cluster(), VirtualNamespace::new("edge").unwrap()));
    Record { version: Version(version), uid: uid.into(), phase: Phase::Active, claim }
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
fn a_late_event_does_not_undo_an_answer() {
    let mut ledger = complete();
    assert!(ledger.learn(host(), record(10, "new"), Source::Answer));
    // The one before it, of the same name.
    assert!(!ledger.learn(host(), record(5, "old"), Source::Watch));
    assert!(!ledger.forget(&host(), &gone(Some(7), "old")));
    assert!(!ledger.forget(&host(), &gone(None, "old")));
    assert_eq!(&*ledger.member(&host()).unwrap().uid, "new");
    assert!(ledger.forget(&host(), &gone(None, "new")));
    assert!(ledger.index().owner(b"edge-vc").is_none());
}

#[test]
fn a_late_answer_does_not_bring_back_what_is_deleted() {
    let mut ledger = complete();
    ledger.learn(host(), record(10, "u"), Source::Watch);
    ledger.forget(&host(), &gone(Some(20), "u"));
    assert!(!ledger.learn(host(), record(10, "u"), Source::Answer));
    assert!(ledger.member(&host()).is_none());
}

#[test]
fn somebody_elses_namespace_is_known_as_such() {
    let mut ledger = complete();
    ledger.learn(host(), Record { claim: None, ..record(1, "u") }, Source::Watch);
    assert_eq!(ledger.index().owner(b"edge-vc"), Some(&Owner::Host));
    let other = ClusterName::new("other").unwrap();
    let claim = Some((other.clone(), VirtualNamespace::new("edge").unwrap()));
    let theirs = HostNamespace::new("edge-other").unwrap();
    ledger.learn(theirs.clone(), Record { claim, ..record(2, "v") }, Source::Watch);
    assert_eq!(ledger.index().owner(b"edge-other"), Some(&Owner::Host));
    // Until it is one of ours.
    assert_eq!(ledger.serve([cluster(), other.clone()]), [theirs]);
    assert!(matches!(ledger.index().owner(b"edge-other"), Some(Owner::Virtual { cluster, .. }) if *cluster == other));
}

#[test]
fn a_label_taken_away_ends_membership() {
    let mut ledger = complete();
    ledger.learn(host(), record(1, "u"), Source::Watch);
    assert!(ledger.learn(host(), Record { claim: None, ..record(2, "u") }, Source::Watch));
    assert!(ledger.member(&host()).is_none() && ledger.members(&cluster()).is_empty());
}

/// What happened on the host to one name, in order: version and whether it exists from then on, and which incarnation.
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
    /// However answers are interleaved with the watch, in the end the ledger says what the host says.
    #[test]
    fn the_last_state_wins(history in history(), answers in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 0..6)) {
        let mut ledger = complete();
        // An answer is read some events before or after the watch tells of it.
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
                ledger.learn(host(), record(*version, &incarnation.to_string()), Source::Answer);
            }
            if *exists {
                ledger.learn(host(), record(*version, &incarnation.to_string()), Source::Watch);
            } else {
                ledger.forget(&host(), &gone(Some(*version), &incarnation.to_string()));
            }
        }
        for (_, version, incarnation) in late.iter().filter(|(due, ..)| *due >= history.len()) {
            ledger.learn(host(), record(*version, &incarnation.to_string()), Source::Answer);
        }
        let (_, exists, incarnation) = history.last().unwrap();
        let known = ledger.member(&host()).map(|member| member.uid.to_string());
        prop_assert_eq!(known, exists.then(|| incarnation.to_string()));
    }
}
