//! Watches, one rule each. `model.rs` has all rules at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use hub::{
    Admission, Budget, Closing, ClusterId, End, EventKind, Hub, Key, Labels, Limits, Moment, NewObject, Next, Place,
    ResourceVersion, Scope, Selection, Shown, Start, Wakes, WatchRequest, WatcherId,
};

const A: ClusterId = ClusterId(0);
const B: ClusterId = ClusterId(1);

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A hub whose list was empty at version 10.
fn hub(limits: Limits) -> Hub<()> {
    let mut hub = Hub::new(limits, Arc::default());
    hub.synced(version(10));
    hub
}

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::new(number)
}

fn seconds(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(seconds))
}

fn object(namespace: &str, number: u64, cluster: ClusterId) -> NewObject<()> {
    NewObject {
        key: Key { namespace: namespace.into(), name: "o".into() },
        version: version(number),
        labels: Labels::default(),
        place: Place::One(cluster),
        size: 1000,
        data: (),
    }
}

fn write(hub: &mut Hub<()>, object: NewObject<()>, now: Moment) {
    let mut wakes = Wakes::default();
    hub.event(EventKind::Written, object, now, &mut wakes);
    wakes.wake();
}

fn watch(hub: &mut Hub<()>, selection: Selection, until: Moment) -> WatcherId {
    let request = WatchRequest { selection, start: Start::Now, bookmarks: true, until };
    match hub.admit(request, seconds(0)) {
        Admission::Served(id) => id,
        refused => panic!("{refused:?}"),
    }
}

#[test]
fn an_event_wakes_only_watchers_of_its_cluster_and_namespace() {
    let mut hub = hub(Limits::default());
    let other_namespace = Selection { scope: Scope::Namespaces(vec!["y".into()]), ..Selection::everything(A) };
    let own_namespace = Selection { scope: Scope::Namespaces(vec!["x".into()]), ..Selection::everything(A) };
    let watchers = [Selection::everything(A), own_namespace, other_namespace, Selection::everything(B)];
    let counts = watchers.map(|selection| {
        let count = Arc::new(Count::default());
        let id = watch(&mut hub, selection, seconds(600));
        assert!(matches!(hub.next(id, 1, seconds(0), &Waker::from(Arc::clone(&count))), Next::Pending));
        count
    });
    write(&mut hub, object("x", 11, A), seconds(1));
    assert_eq!(counts.map(|count| count.0.load(Ordering::Relaxed)), [1, 1, 0, 0]);
}

/// The number of calls until the first object or event.
fn calls(hub: &mut Hub<()>, id: WatcherId) -> (usize, Next<()>) {
    for call in 1.. {
        match hub.next(id, 1, seconds(1), Waker::noop()) {
            Next::Events(changes) if changes.is_empty() => {}
            Next::Objects(objects) if objects.is_empty() => {}
            next => return (call, next),
        }
    }
    unreachable!("the hub has objects")
}

#[test]
fn a_call_compares_a_bounded_number_of_terms() {
    let label = |count: usize| (0..count).map(|number| format!("!l{number}")).collect::<Vec<_>>().join(",");
    for (count, expected) in [(0, 2), (62, 47)] {
        let mut hub = hub(Limits::default());
        let selection = || Selection {
            fields: "metadata.namespace=last".parse().unwrap(),
            labels: label(count).parse().unwrap(),
            ..Selection::everything(A)
        };
        let id = watch(&mut hub, selection(), seconds(600));
        for number in 11..3011 {
            write(&mut hub, object(&format!("a{number}"), number, A), seconds(1));
        }
        write(&mut hub, object("last", 3011, A), seconds(1));
        let (calls_of_watch, Next::Events(found)) = calls(&mut hub, id) else { panic!("no event") };
        assert_eq!((found.len(), found[0].shown(), found[0].version()), (1, Shown::Added, version(3011)));
        assert_eq!(calls_of_watch, expected, "3,001 events with {} comparisons each", count + 2);
        // The same for initial objects.
        let start = Start::State { at_least: version(0), initial_events_end: false };
        let request = WatchRequest { selection: selection(), start, bookmarks: false, until: seconds(600) };
        let Admission::Served(id) = hub.admit(request, seconds(1)) else { panic!("refused") };
        let (calls_of_state, Next::Objects(objects)) = calls(&mut hub, id) else { panic!("no object") };
        assert_eq!((objects.len(), calls_of_state), (1, expected));
    }
}

#[test]
fn a_batch_is_limited_in_bytes() {
    let mut hub = hub(Limits::default());
    let id = watch(&mut hub, Selection::everything(A), seconds(600));
    for number in 11..21 {
        write(&mut hub, object("x", number, A), seconds(1));
    }
    let Next::Events(one) = hub.next(id, 1, seconds(1), Waker::noop()) else { panic!("no event") };
    assert_eq!(one.len(), 1, "at least one event");
    let Next::Events(some) = hub.next(id, 5000, seconds(1), Waker::noop()) else { panic!("no events") };
    assert!((3..5).contains(&some.len()), "{} events", some.len());
}

#[test]
fn a_bookmark_comes_before_the_time_limit() {
    let limits = Limits { bookmarks: Duration::from_secs(60), ..Limits::default() };
    let mut hub = hub(limits);
    let id = watch(&mut hub, Selection::everything(A), seconds(30));
    hub.bookmark(version(20));
    assert!(matches!(hub.next(id, 1, seconds(27), Waker::noop()), Next::Pending));
    let last = hub.next(id, 1, seconds(28), Waker::noop());
    assert!(matches!(last, Next::Bookmark { version: found, .. } if found == version(20)), "{last:?}");
    hub.bookmark(version(30));
    assert!(matches!(hub.next(id, 1, seconds(29), Waker::noop()), Next::Pending), "only one");
    assert!(matches!(hub.next(id, 1, seconds(30), Waker::noop()), Next::End(End::Timeout)));
}

#[test]
fn a_quiet_watch_does_not_lag() {
    let limits = Limits { oldest: Duration::from_secs(10), ..Limits::default() };
    let mut hub = hub(limits);
    let selection = Selection { scope: Scope::Namespaces(vec!["x".into()]), ..Selection::everything(A) };
    let id = watch(&mut hub, selection, seconds(600));
    assert!(matches!(hub.next(id, 1, seconds(0), Waker::noop()), Next::Pending));
    write(&mut hub, object("y", 11, A), seconds(1));
    // The event leaves the window in the tick that wakes the watch for its bookmark.
    let mut wakes = Wakes::default();
    hub.tick(seconds(16), 0, &mut wakes);
    wakes.wake();
    let next = hub.next(id, 1, seconds(16), Waker::noop());
    assert!(matches!(next, Next::Bookmark { version: found, .. } if found == version(11)), "{next:?}");
}

#[test]
fn the_largest_cluster_pays_for_the_memory() {
    let budget = Budget::new(20_000);
    let usage = budget.usage();
    let mut hub: Hub<()> = Hub::new(Limits::default(), Arc::clone(&usage));
    hub.listed(object("small", 5, B));
    hub.synced(version(10));
    let [greedy, modest] = [A, B].map(|cluster| watch(&mut hub, Selection::everything(cluster), seconds(600)));
    for number in 11..41 {
        write(&mut hub, object(&format!("x{number}"), number, A), seconds(1));
    }
    let mut wakes = Wakes::default();
    hub.tick(seconds(2), budget.excess(&usage), &mut wakes);
    wakes.wake();
    assert_eq!(hub.closed().collect::<Vec<_>>(), [(A, Closing::Evicted)]);
    assert!(usage.bytes() < 20_000, "{} bytes are in use", usage.bytes());
    assert!(matches!(hub.next(greedy, 1, seconds(2), Waker::noop()), Next::End(End::Evicted)));
    assert!(matches!(hub.next(modest, 1, seconds(2), Waker::noop()), Next::Pending));
}

#[test]
fn events_that_have_left_the_window_do_not_count() {
    let mut hub: Hub<()> = Hub::new(Limits::default(), Arc::default());
    hub.listed(object("x", 5, B));
    hub.listed(object("y", 5, B));
    hub.synced(version(10));
    for number in 11..41 {
        write(&mut hub, object("z", number, A), seconds(1));
    }
    let mut wakes = Wakes::default();
    hub.tick(seconds(602), 0, &mut wakes);
    hub.tick(seconds(602), 1, &mut wakes);
    assert_eq!(hub.closed().collect::<Vec<_>>(), [(B, Closing::Evicted)], "the cluster with two objects");
    wakes.wake();
}

#[test]
fn the_largest_hub_pays_for_the_memory() {
    let budget = Budget::new(10_000);
    let [small, large] = [1, 20].map(|count| {
        let usage = budget.usage();
        let mut hub: Hub<()> = Hub::new(Limits::default(), Arc::clone(&usage));
        (0..count).for_each(|number| hub.listed(object(&format!("x{number}"), 5, A)));
        (hub, usage)
    });
    assert_eq!(budget.bytes(), small.1.bytes() + large.1.bytes());
    assert_eq!(budget.excess(&small.1), 0);
    assert_eq!(budget.excess(&large.1), budget.bytes() - 10_000);
    drop(large);
    assert_eq!(budget.excess(&small.1), 0);
}

#[test]
fn a_slow_reader_of_initial_objects_ends_when_memory_is_needed() {
    let mut hub: Hub<()> = Hub::new(Limits::default(), Arc::default());
    for namespace in ["x", "y", "z"] {
        hub.listed(NewObject { place: Place::Everybody, ..object(namespace, 5, A) });
    }
    hub.synced(version(10));
    let start = Start::State { at_least: version(0), initial_events_end: true };
    let until = seconds(600);
    let request = WatchRequest { selection: Selection::everything(A), start, bookmarks: true, until };
    let Admission::Served(id) = hub.admit(request, seconds(0)) else { panic!("refused") };
    let read = |hub: &mut Hub<()>, now| match hub.next(id, 1, seconds(now), Waker::noop()) {
        Next::Objects(objects) => assert_eq!(objects.len(), 1, "a batch of one byte"),
        other => panic!("{other:?}"),
    };
    let mut wakes = Wakes::default();
    hub.tick(seconds(20), 0, &mut wakes);
    read(&mut hub, 20);
    hub.tick(seconds(15), 1, &mut wakes);
    read(&mut hub, 20);
    hub.tick(seconds(20), 1, &mut wakes);
    assert!(matches!(hub.next(id, 1, seconds(20), Waker::noop()), Next::End(End::Lagged)));
    wakes.wake();
}

#[test]
fn after_a_change_of_membership_clients_list_again() {
    let mut hub = hub(Limits::default());
    let id = watch(&mut hub, Selection::everything(A), seconds(600));
    let mut wakes = Wakes::default();
    // An eviction that the client has not noticed does not hide the change.
    write(&mut hub, object("x", 11, A), seconds(1));
    hub.tick(seconds(1), 1, &mut wakes);
    hub.close(&[A], &mut wakes);
    assert!(matches!(hub.next(id, 1, seconds(1), Waker::noop()), Next::End(End::Moved)));
    let resume = |hub: &mut Hub<()>, number| {
        let (selection, start) = (Selection::everything(A), Start::After(version(number)));
        hub.admit(WatchRequest { selection, start, bookmarks: true, until: seconds(600) }, seconds(1))
    };
    assert!(matches!(resume(&mut hub, 10), Admission::Expired(_)), "while the cluster is closed");
    hub.clear(End::Stopped, &mut wakes);
    assert!(matches!(resume(&mut hub, 10), Admission::Expired(_)), "while the hub lists again");
    hub.synced(version(30));
    assert!(matches!(resume(&mut hub, 29), Admission::Expired(_)), "after the list");
    assert!(matches!(resume(&mut hub, 30), Admission::Served(_)));
    wakes.wake();
}

#[test]
fn versions_are_decimal_numbers() {
    for (text, is_version) in [("0", true), ("7", true), ("+7", false), ("-7", false), ("", false), ("7a", false)] {
        assert_eq!(text.parse::<ResourceVersion>().is_ok(), is_version, "{text:?}");
    }
}

#[test]
fn of_two_labels_with_one_key_the_last_counts() {
    let labels = Labels::new([("b", "1"), ("a", "2"), ("b", "3")]).unwrap();
    assert_eq!([labels.get("a"), labels.get("b"), labels.get("c")], [Some("2"), Some("3"), None]);
    assert!(Labels::new([("a\0", "b")]).is_err());
}
