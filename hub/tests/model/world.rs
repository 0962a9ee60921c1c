//! A host, a driver, a hub and clients.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use hub::{
    Admission, ClusterId, End, Event, EventKind, Hub, Key, Limits, Moment, Next, Opened, Place, ResourceVersion, Scope,
    Selection, Shown, Start, Usage, Wakes, WatchRequest,
};

use crate::client::{Client, Got};
use crate::host::{Change, Host};
use crate::operation::{CLUSTERS, From, Operation, Watch};

const LIMITS: Limits = Limits {
    memory: usize::MAX,
    fresh: Duration::from_secs(60),
    oldest: Duration::from_secs(120),
    bookmarks: Duration::from_secs(15),
};
/// The memory of each object, in bytes.
const FOOTPRINT: usize = 406;
/// The time limit of watches.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) struct World {
    host: Host,
    hub: Hub<u64>,
    usage: Arc<Usage>,
    is_small: bool,
    clients: Vec<Client>,
    /// The clusters that the driver has closed.
    closed: BTreeSet<ClusterId>,
    /// The clusters that it has ever closed.
    moved: BTreeSet<ClusterId>,
    /// The host has no events after this version.
    expired: u64,
    now: Moment,
    wakes: Wakes,
}

impl World {
    pub(crate) fn new(memory: usize) -> Self {
        let usage = Arc::new(Usage::default());
        let mut world = Self {
            host: Host::default(),
            hub: Hub::new(Limits { memory, ..LIMITS }, Arc::clone(&usage)),
            usage,
            is_small: memory < usize::MAX,
            clients: Vec::new(),
            closed: BTreeSet::new(),
            moved: BTreeSet::new(),
            expired: 0,
            now: Moment::default(),
            wakes: Wakes::default(),
        };
        world.host.write(key(0), "a", Place::One(ClusterId(0)));
        world.list();
        world
    }

    pub(crate) fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Write { key: at, label, place } => self.host.write(key(at), label, place),
            Operation::Delete { key: at } => self.host.delete(key(at)),
            Operation::Tell { count } => (0..count).for_each(|_| self.tell()),
            Operation::Repeat { count } => self.repeat(count),
            Operation::Bookmark if self.host.pending.is_empty() => {
                self.hub.bookmark(ResourceVersion::new(self.host.version + 1));
                self.host.version += 2;
            }
            Operation::Expire => self.expire(),
            Operation::Relocate { key: at, place } => self.relocate(&key(at), &place),
            Operation::Reopen => self.reopen(),
            Operation::Watch(watch) => self.watch(&watch),
            Operation::Read { client, max } => self.read(client, max),
            Operation::Leave { client } if client < self.clients.len() => {
                let client = self.clients.swap_remove(client);
                self.hub.leave(client.id);
            }
            Operation::Bookmark | Operation::Leave { .. } => {}
            Operation::List { cluster, label } => self.compare_list(cluster, label),
            Operation::Wait { time } => {
                self.now = self.now + time;
                self.hub.tick(self.now, &mut self.wakes);
            }
        }
    }

    /// Reads all watches to their ends. Then only the objects are in memory, and nothing after a clear.
    pub(crate) fn end(mut self) {
        (0..self.host.pending.len()).for_each(|_| self.tell());
        while !self.clients.is_empty() {
            let count = self.clients.len();
            self.read(0, usize::MAX);
            if self.clients.len() == count && self.is_drained(0) {
                let client = self.clients.swap_remove(0);
                self.hub.leave(client.id);
            }
        }
        self.now = self.now + Duration::from_secs(1000);
        self.hub.tick(self.now, &mut self.wakes);
        let objects = self.hub.statistics(self.now).objects;
        assert_eq!(self.usage.bytes(), objects * FOOTPRINT, "memory in use by {objects} objects");
        self.hub.clear(End::Stopped, &mut self.wakes);
        assert_eq!(self.usage.bytes(), 0, "memory in use after everything was dropped");
    }

    fn list(&mut self) {
        for object in self.host.relist() {
            self.hub.listed(object);
        }
        self.hub.synced(ResourceVersion::new(self.host.version));
        self.host.history.clear();
        self.closed.clear();
    }

    fn tell(&mut self) {
        if let Some(change) = self.host.tell(self.now) {
            self.give(&change);
        }
    }

    fn give(&mut self, change: &Change) {
        self.hub.event(change.kind, change.now.object(&change.key), self.now, &mut self.wakes);
    }

    fn repeat(&mut self, count: usize) {
        let from = self.host.history.len().saturating_sub(count);
        for change in self.host.history.split_off(from) {
            self.give(&change);
            self.host.history.push(change);
        }
    }

    fn expire(&mut self) {
        let version = self.hub.version().expect("the hub is synced");
        self.hub.clear(End::Expired(version), &mut self.wakes);
        self.expired = version.number();
        for client in std::mem::take(&mut self.clients) {
            let next = self.hub.next(client.id, 1, self.now, Waker::noop());
            let Next::End(end) = next else { panic!("{next:?} after a clear") };
            assert!(end == End::Expired(version) || self.is_justified(&client, end), "{end:?}");
            self.hub.leave(client.id);
        }
        // The watch cannot be resumed, so something has happened.
        self.host.version += 2;
        self.list();
    }

    fn relocate(&mut self, key: &Key, place: &Place) {
        let places = self.host.relocate(key, place);
        if places.len() == 1 || places.iter().all(|other| other == place) {
            return;
        }
        let affected: Vec<ClusterId> = (0..CLUSTERS)
            .map(ClusterId)
            .filter(|cluster| places.iter().any(|place| place.contains(*cluster)))
            .collect();
        if places.contains(&Place::Everybody) {
            self.expire();
            return;
        }
        for cluster in affected {
            if self.hub.closed().all(|closed| closed != cluster) {
                self.hub.close(cluster, End::Moved, &mut self.wakes);
            }
            self.closed.insert(cluster);
            self.moved.insert(cluster);
        }
    }

    fn reopen(&mut self) {
        self.host.version += 2;
        let closed: Vec<ClusterId> = self.hub.closed().collect();
        for cluster in closed {
            let list = self.host.list_of(cluster);
            let opened = self.hub.open(cluster, list, ResourceVersion::new(self.host.version));
            assert_eq!(opened, Opened::Yes);
            self.closed.remove(&cluster);
        }
    }

    fn watch(&mut self, watch: &Watch) {
        let newest: u64 = self.version();
        let selection = selection(watch);
        let (start, after) = match watch.start {
            From::Version { before, after } => {
                let version = (newest + after).saturating_sub(before);
                (Start::After(ResourceVersion::new(version)), version)
            }
            From::Now => (Start::Now, newest),
            From::State { after } => {
                let at_least = ResourceVersion::new(newest + after);
                (Start::State { at_least, initial_events_end: true }, newest)
            }
        };
        let is_state = matches!(start, Start::State { .. });
        let request =
            WatchRequest { selection: selection.clone(), start, bookmarks: watch.bookmarks, until: self.now + TIMEOUT };
        match self.hub.admit(request, self.now) {
            Admission::Served(id) => {
                assert!(!self.closed.contains(&watch.cluster));
                if is_state {
                    self.compare_state(&selection);
                }
                let owed = is_state && watch.bookmarks;
                let (got, bookmarks) = (Vec::new(), watch.bookmarks);
                let (flag, waits, bookmark) = (Arc::default(), false, after);
                self.clients.push(Client { id, selection, after, got, bookmark, bookmarks, owed, flag, waits });
            }
            Admission::NotYet(version) => assert!(version > ResourceVersion::new(newest)),
            Admission::TooOld => {
                assert!(after > self.expired);
                let is_gone = |change: &Change| change.now.version > after && self.is_old(change);
                let listed = self.host.history.first().is_none_or(|first| first.now.version > after);
                assert!(listed || self.host.history.iter().any(is_gone), "{after} is not too old");
            }
            Admission::Expired(oldest) => assert!(ResourceVersion::new(after) < oldest),
            Admission::Closed => assert!(self.is_small || self.closed.contains(&watch.cluster)),
        }
    }

    fn read(&mut self, client: usize, max: usize) {
        let Some(client) = self.clients.get_mut(client) else { return };
        let id = client.id;
        let newest = self.hub.version().expect("the hub is synced");
        let expected = client.expected(&self.host.history);
        // A bookmark that became possible meanwhile comes with the next tick.
        self.hub.tick(self.now, &mut self.wakes);
        std::mem::take(&mut self.wakes).wake();
        let is_woken = client.flag.take();
        let next = self.hub.next(id, max, self.now, &Waker::from(Arc::clone(&client.flag)));
        let has_come = !matches!(next, Next::Pending);
        assert!(is_woken || !(client.waits && has_come), "{next:?} without a wake");
        client.waits = !has_come;
        match next {
            Next::Events(changes) => {
                assert!(!client.owed, "events before the end of the initial events");
                client.got.extend(changes.iter().map(|change| got(change.shown, &change.event)));
                assert!(expected.starts_with(&client.got), "{:?} instead of {expected:?}", client.got);
            }
            Next::Bookmark { version, initial_events_end } => {
                assert!(client.bookmarks);
                assert_eq!(initial_events_end, std::mem::take(&mut client.owed));
                let number = version.number();
                assert!(number > client.bookmark || initial_events_end, "the bookmark {version} is not new");
                client.bookmark = number;
                let before: Vec<Got> = expected.into_iter().filter(|(_, at, _)| *at <= number).collect();
                assert_eq!(client.got, before, "at the bookmark {version} of {newest}");
            }
            Next::Pending => assert_eq!(client.got, expected),
            Next::End(end) => {
                let client = self.clients.iter().position(|client| client.id == id).expect("it is reading");
                let client = self.clients.swap_remove(client);
                assert!(self.is_justified(&client, end), "{end:?} for {client:?}");
                self.hub.leave(id);
            }
        }
    }

    fn is_drained(&self, client: usize) -> bool {
        let client = &self.clients[client];
        client.got == client.expected(&self.host.history)
    }

    fn is_justified(&self, client: &Client, end: End) -> bool {
        let cluster = client.selection.cluster;
        match end {
            End::Lagged => self.host.history.iter().any(|change| self.is_old(change)),
            End::Moved => self.moved.contains(&cluster),
            End::Timeout => true,
            End::Evicted => self.is_small,
            End::Expired(_) | End::Stopped => false,
        }
    }

    /// Whether the hub may have removed an event from the window.
    fn is_old(&self, change: &Change) -> bool {
        let age = self.now.since(change.at);
        age > if self.is_small { Duration::from_secs(15) } else { LIMITS.oldest }
    }

    fn compare_list(&mut self, cluster: ClusterId, label: Option<&'static str>) {
        let selection =
            selection(&Watch { cluster, label, namespace: None, name: None, start: From::Now, bookmarks: false });
        self.compare_state(&selection);
    }

    fn compare_state(&self, selection: &Selection) {
        match self.hub.snapshot(selection, ResourceVersion::default()) {
            Admission::Served((version, objects)) => {
                assert_eq!(Some(version), self.hub.version());
                let found: Vec<_> = objects.iter().map(|object| (object.key.clone(), object.data)).collect();
                let named = |key: &Key| {
                    let in_scope = match &selection.scope {
                        Scope::All => true,
                        Scope::Namespaces(namespaces) => namespaces.contains(&key.namespace),
                    };
                    in_scope && selection.fields.terms().iter().all(|term| *key.name == *term.value())
                };
                let own = self.host.told.iter().filter(|(key, state)| named(key) && state.is_selected(selection));
                let expected: Vec<_> = own.map(|(key, state)| (key.clone(), state.data)).collect();
                assert_eq!(found, expected);
            }
            Admission::Closed => assert!(self.is_small || self.closed.contains(&selection.cluster)),
            Admission::NotYet(version) => assert!(version > ResourceVersion::new(self.version())),
            other => panic!("a list is refused: {other:?}"),
        }
    }

    fn version(&self) -> u64 {
        self.hub.version().expect("the hub is synced").number()
    }
}

fn got(shown: Shown, event: &Event<u64>) -> Got {
    let version = event.version().number();
    let data = match (shown, &event.before) {
        (Shown::DeletedAsBefore, hub::Before::Other(before)) => before.data,
        (Shown::DeletedAsBefore, before) => panic!("no object before the event: {before:?}"),
        (Shown::Added | Shown::Modified, _) if event.kind == EventKind::Written => event.object.data,
        (Shown::Deleted, _) if event.kind == EventKind::Deleted => event.object.data,
        _ => panic!("{shown:?} for {:?}", event.kind),
    };
    (shown, version, data)
}

fn key(number: usize) -> Key {
    Key { namespace: format!("n{}", number % 2).into(), name: format!("o{}", number / 2).into() }
}

fn selection(watch: &Watch) -> Selection {
    let mut selection = Selection::everything(watch.cluster);
    if let Some(label) = watch.label {
        selection.labels = format!("app={label}").parse().expect("a selector");
    }
    if let Some(namespace) = watch.namespace {
        selection.scope = Scope::Namespaces(vec![namespace.into()]);
    }
    if let Some(name) = watch.name {
        selection.fields = format!("metadata.name={name}").parse().expect("a selector");
    }
    selection
}
