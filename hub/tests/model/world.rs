//! A host, a driver, a hub and clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use hub::{
    Admission, Budget, Closing, ClusterId, End, Hub, Key, Limits, Moment, NewObject, Next, Object, Opened, Place,
    ResourceVersion, Scope, Selection, Start, Usage, Wakes, WatchRequest,
};

use crate::client::{Client, Got};
use crate::host::{Change, Host};
use crate::operation::{CLUSTERS, From, Operation, Watch};

const LIMITS: Limits =
    Limits { fresh: Duration::from_secs(60), oldest: Duration::from_secs(120), bookmarks: Duration::from_secs(15) };
/// The memory of each object, in bytes.
const FOOTPRINT: usize = 522;
/// The time limit of watches.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) struct World {
    host: Host,
    hub: Hub<u64>,
    budget: Budget,
    usage: Arc<Usage>,
    is_small: bool,
    clients: Vec<Client>,
    /// The clusters whose membership has changed, and no version after the change is known.
    moving: BTreeSet<ClusterId>,
    /// The versions from which the membership of clusters is known.
    moved: BTreeMap<ClusterId, u64>,
    /// The cluster that is being opened, what is left of its list, and the version of the list.
    opening: Option<(ClusterId, Vec<NewObject<u64>>, u64)>,
    /// The versions of the hub when clusters were opened.
    opened: BTreeMap<ClusterId, u64>,
    /// The hub may have closed clusters to free memory.
    has_been_evicted: bool,
    /// The host has no events after this version.
    expired: u64,
    now: Moment,
    wakes: Wakes,
}

impl World {
    pub(crate) fn new(memory: usize) -> Self {
        let budget = Budget::new(memory);
        let usage = budget.usage();
        let mut world = Self {
            host: Host::default(),
            hub: Hub::new(LIMITS, Arc::clone(&usage)),
            budget,
            usage,
            is_small: memory < usize::MAX,
            clients: Vec::new(),
            moving: BTreeSet::new(),
            moved: BTreeMap::new(),
            opening: None,
            opened: BTreeMap::new(),
            has_been_evicted: false,
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
            Operation::Moved => self.learn_moved(),
            Operation::Reopen => _ = self.reopen(),
            Operation::ReopenAll => while self.reopen() {},
            Operation::Abandon => {
                if let Some((cluster, ..)) = self.opening.take() {
                    self.hub.abandon(cluster);
                }
            }
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
                self.tick();
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
        self.tick();
        let objects = self.hub.statistics(self.now).objects;
        assert_eq!(self.usage.bytes(), objects * FOOTPRINT, "memory in use by {objects} objects");
        self.hub.clear(End::Stopped, &mut self.wakes);
        assert_eq!(self.usage.bytes(), 0, "memory in use after everything was dropped");
    }

    fn tick(&mut self) {
        let excess = self.budget.excess(&self.usage);
        self.has_been_evicted |= excess > 0;
        self.hub.tick(self.now, excess, &mut self.wakes);
    }

    fn list(&mut self) {
        for object in self.host.relist() {
            self.hub.listed(object);
        }
        self.hub.synced(ResourceVersion::new(self.host.version));
        self.host.history.clear();
        self.opening = None;
        let version = self.host.version;
        self.moved.extend(std::mem::take(&mut self.moving).into_iter().map(|cluster| (cluster, version)));
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
        self.hub.close(&affected, &mut self.wakes);
        self.opening = self.opening.take().filter(|(cluster, ..)| !affected.contains(cluster));
        self.moving.extend(affected);
    }

    fn learn_moved(&mut self) {
        self.host.version += 2;
        let (moving, version) = (std::mem::take(&mut self.moving), self.host.version);
        let clusters: Vec<ClusterId> = moving.into_iter().collect();
        self.hub.moved(&clusters, ResourceVersion::new(version));
        self.moved.extend(clusters.into_iter().map(|cluster| (cluster, version)));
    }

    /// A step of the list of a closed cluster. Returns whether there was one to do.
    fn reopen(&mut self) -> bool {
        let Some((cluster, mut left, listed)) = self.opening.take() else {
            let Some((cluster, closing)) = self.hub.closed().next() else { return false };
            assert!(closing == Closing::Moved || self.is_small, "{cluster:?} is evicted");
            self.hub.begin_opening(cluster);
            // The list may be newer than what the hub gets next.
            self.host.version += 2;
            self.opening = Some((cluster, self.host.list_of(cluster), self.host.version));
            return true;
        };
        if let Some(object) = left.pop() {
            let _ = self.hub.listed_for(cluster, object);
            self.opening = Some((cluster, left, listed));
            return true;
        }
        if self.hub.open(cluster, ResourceVersion::new(listed)) == Opened::Yes {
            self.opened.insert(cluster, listed.max(self.version()));
            if self.moving.remove(&cluster) {
                self.moved.insert(cluster, listed);
            }
            self.moved.entry(cluster).and_modify(|moved| *moved = listed.min(*moved));
        } else {
            assert!(self.is_small, "only memory can close a cluster that is being opened, and a driver that knows");
        }
        true
    }

    fn is_closed(&self, cluster: ClusterId) -> bool {
        self.hub.closed().any(|(closed, _)| closed == cluster)
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
        let is_moving = self.moving.contains(&watch.cluster);
        let moved = self.moved.get(&watch.cluster).copied().unwrap_or_default();
        let is_closed = self.is_closed(watch.cluster);
        let is_resumed = matches!(start, Start::After(_));
        match self.hub.admit(request, self.now) {
            Admission::Served(id) => {
                assert!(!is_closed);
                assert!(!is_resumed || after >= moved, "{after} is before {moved}");
                let initial = if is_state { self.state(&selection) } else { Vec::new() };
                let owed = is_state && watch.bookmarks;
                let (got, bookmarks) = (Vec::new(), watch.bookmarks);
                let (flag, waits, bookmark) = (Arc::default(), false, after);
                self.clients.push(Client {
                    id,
                    selection,
                    after,
                    initial,
                    got,
                    bookmark,
                    bookmarks,
                    owed,
                    flag,
                    waits,
                    has_read: false,
                });
            }
            Admission::NotYet(version) => assert!(!is_resumed && version > ResourceVersion::new(newest)),
            Admission::BeforeWindow => {
                assert!(!is_moving && after > self.expired && after >= moved);
                let is_gone = |change: &Change| change.now.version > after && self.is_old(change);
                let listed = self.host.history.first().is_none_or(|first| first.now.version > after);
                let evicted = self.is_small && self.has_been_evicted;
                let opened = self.opened.get(&watch.cluster).is_some_and(|opened| after < *opened);
                assert!(
                    listed || evicted || opened || self.host.history.iter().any(is_gone),
                    "{after} is in the window"
                );
            }
            Admission::Expired(_) => {
                assert!(is_resumed, "only old versions expire");
                assert!(is_moving || after < moved || after <= self.expired, "{after} has not expired");
            }
            Admission::Closed => assert!(is_closed && (!is_resumed || (!is_moving && after >= moved))),
        }
    }

    fn read(&mut self, client: usize, max: usize) {
        // A bookmark that became possible meanwhile comes with the next tick.
        self.tick();
        std::mem::take(&mut self.wakes).wake();
        let Some(client) = self.clients.get_mut(client) else { return };
        let id = client.id;
        let newest = self.hub.version().expect("the hub is synced");
        let expected = client.expected(&self.host.history);
        let is_woken = client.flag.take();
        let next = self.hub.next(id, max, self.now, &Waker::from(Arc::clone(&client.flag)));
        let has_come = !matches!(next, Next::Pending);
        assert!(is_woken || !(client.waits && has_come), "{next:?} without a wake");
        client.waits = !has_come;
        client.has_read |= !matches!(next, Next::End(_));
        match next {
            Next::Objects(objects) => {
                assert!(!objects.is_empty() && objects.len() <= client.initial.len());
                let first: Vec<_> = client.initial.drain(..objects.len()).collect();
                assert_eq!(pairs(&objects), first, "the initial objects");
            }
            Next::Events(changes) => {
                assert!(!client.owed && client.initial.is_empty(), "events before the end of the initial events");
                client.got.extend(changes.iter().map(got));
                assert!(expected.starts_with(&client.got), "{:?} instead of {expected:?}", client.got);
            }
            Next::Bookmark { version, initial_events_end } => {
                assert!(client.bookmarks && client.initial.is_empty());
                assert_eq!(initial_events_end, std::mem::take(&mut client.owed));
                let number = version.number();
                assert!(number > client.bookmark || initial_events_end, "the bookmark {version} is not new");
                client.bookmark = number;
                let before: Vec<Got> = expected.into_iter().filter(|(_, at, _)| *at <= number).collect();
                assert_eq!(client.got, before, "at the bookmark {version} of {newest}");
            }
            Next::Pending => {
                assert!(client.initial.is_empty());
                assert_eq!(client.got, expected);
            }
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
        client.initial.is_empty() && client.got == client.expected(&self.host.history)
    }

    fn is_justified(&self, client: &Client, end: End) -> bool {
        let cluster = client.selection.cluster;
        match end {
            End::Lagged => {
                let is_slow = self.is_small && !(client.initial.is_empty() && client.has_read);
                is_slow || self.host.history.iter().any(|change| self.is_old(change))
            }
            End::Moved => self.moving.contains(&cluster) || self.moved.contains_key(&cluster),
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
        match self.hub.snapshot(selection.cluster, ResourceVersion::default()) {
            Admission::Served((version, mut snapshot)) => {
                assert_eq!(Some(version), self.hub.version());
                // Batches of one to three objects of 100 bytes.
                let max = usize::try_from(version.number() % 4 * 100).unwrap_or_default();
                let objects: Vec<_> = std::iter::from_fn(|| snapshot.next(selection, max)).flatten().collect();
                assert_eq!(pairs(&objects), self.state(selection));
            }
            Admission::Closed => assert!(self.is_closed(selection.cluster)),
            Admission::NotYet(version) => assert!(version > ResourceVersion::new(self.version())),
            other => panic!("a list is refused: {other:?}"),
        }
    }

    /// What a list must contain.
    fn state(&self, selection: &Selection) -> Vec<(Key, u64)> {
        let named = |key: &Key| {
            let in_scope = match &selection.scope {
                Scope::All => true,
                Scope::Namespaces(namespaces) => namespaces.contains(&key.namespace),
            };
            in_scope && selection.fields.terms().iter().all(|term| *key.name == *term.value())
        };
        let own = self.host.told.iter().filter(|(key, state)| named(key) && state.is_selected(selection));
        own.map(|(key, state)| (key.clone(), state.data)).collect()
    }

    fn version(&self) -> u64 {
        self.hub.version().expect("the hub is synced").number()
    }
}

fn got(change: &hub::Change<u64>) -> Got {
    (change.shown(), change.version().number(), change.object().data)
}

fn pairs(objects: &[Arc<Object<u64>>]) -> Vec<(Key, u64)> {
    objects.iter().map(|object| (object.key.clone(), object.data)).collect()
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
