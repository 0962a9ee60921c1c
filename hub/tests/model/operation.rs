//! Operations of the host, of the driver and of clients.

use std::time::Duration;

use hub::{ClusterId, Place};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The number of virtual clusters.
pub(crate) const CLUSTERS: u32 = 3;

#[derive(Clone, Debug)]
pub(crate) enum Operation {
    Write {
        key: usize,
        label: &'static str,
        place: Place,
    },
    Delete {
        key: usize,
    },
    /// The hub gets this many events.
    Tell {
        count: usize,
    },
    /// The watch resumes too early: the hub gets this many events again.
    Repeat {
        count: usize,
    },
    Bookmark,
    /// The host answers with 410, and the driver lists again.
    Expire,
    /// An object joins and leaves clusters without an event.
    Relocate {
        key: usize,
        place: Place,
    },
    /// The driver learns a version after the last changes of membership.
    Moved,
    /// The driver begins to list a closed cluster, or gives the hub an object of the list, or says that it is complete.
    Reopen,
    /// The driver lists all closed clusters.
    ReopenAll,
    /// A list fails.
    Abandon,
    Watch(Watch),
    Read {
        client: usize,
        max: usize,
    },
    Leave {
        client: usize,
    },
    List {
        cluster: ClusterId,
        label: Option<&'static str>,
    },
    Wait {
        time: Duration,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) cluster: ClusterId,
    pub(crate) label: Option<&'static str>,
    pub(crate) namespace: Option<&'static str>,
    pub(crate) name: Option<&'static str>,
    pub(crate) start: From,
    pub(crate) bookmarks: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// So many versions before the version of the hub, or after it.
    Version {
        before: u64,
        after: u64,
    },
    Now,
    State {
        after: u64,
    },
}

pub(crate) fn operations(maximum: usize) -> impl Strategy<Value = Vec<Operation>> {
    vec(operation(), 1..maximum)
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = || 0..6_usize;
    let label = || select(vec!["a", "b"]);
    let cluster = || (0..CLUSTERS).prop_map(ClusterId);
    prop_oneof![
        8 => (key(), label(), place()).prop_map(|(key, label, place)| Operation::Write { key, label, place }),
        3 => key().prop_map(|key| Operation::Delete { key }),
        8 => (1..5_usize).prop_map(|count| Operation::Tell { count }),
        1 => (1..5_usize).prop_map(|count| Operation::Repeat { count }),
        1 => Just(Operation::Bookmark),
        1 => Just(Operation::Expire),
        1 => (key(), place()).prop_map(|(key, place)| Operation::Relocate { key, place }),
        1 => Just(Operation::Moved),
        4 => Just(Operation::Reopen),
        1 => Just(Operation::ReopenAll),
        1 => Just(Operation::Abandon),
        5 => watch().prop_map(Operation::Watch),
        8 => (0..6_usize, select(vec![1, 400, 100_000])).prop_map(|(client, max)| Operation::Read { client, max }),
        1 => (0..6_usize).prop_map(|client| Operation::Leave { client }),
        3 => (cluster(), proptest::option::of(label())).prop_map(|(cluster, label)| Operation::List { cluster, label }),
        4 => select(vec![1, 16, 50, 130]).prop_map(|seconds| Operation::Wait { time: Duration::from_secs(seconds) }),
    ]
}

fn watch() -> impl Strategy<Value = Watch> {
    let start = prop_oneof![
        4 => (0..20_u64, Just(0)).prop_map(|(before, after)| From::Version { before, after }),
        1 => (Just(0), 0..8_u64).prop_map(|(before, after)| From::Version { before, after }),
        1 => Just(From::Now),
        3 => (0..3_u64).prop_map(|after| From::State { after }),
    ];
    let (label, namespace, name) = (select(vec!["a", "b"]), select(vec!["n0", "n1"]), select(vec!["o0", "o1"]));
    let selectors = (proptest::option::of(label), proptest::option::of(namespace), proptest::option::of(name));
    (0..CLUSTERS, selectors, start, any::<bool>()).prop_map(|(cluster, (label, namespace, name), start, bookmarks)| {
        Watch { cluster: ClusterId(cluster), label, namespace, name, start, bookmarks }
    })
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        1 => Just(Place::Nobody),
        6 => (0..CLUSTERS).prop_map(|cluster| Place::One(ClusterId(cluster))),
        2 => vec((0..CLUSTERS).prop_map(ClusterId), 0..3).prop_map(Place::of),
        1 => Just(Place::Everybody),
    ]
}
