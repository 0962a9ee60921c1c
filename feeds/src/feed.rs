//! One resource of the host, kept in a hub.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host_client::api::Api;
use hub::{Admission, Budget, ClusterId, End, Hub, Limits, Moment, ResourceVersion, Statistics, Usage, Wakes};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::collection::Collection;
use crate::list_body::ListBody;
use crate::newest::Newest;
use crate::request::ListQuery;
use crate::stored::Stored;
use crate::wanted::Wanted;

/// After this time without anything from the host, the state may be too old for lists. An API server sends a bookmark each
/// minute.
const SILENCE: Duration = Duration::from_secs(2 * 60);

/// A resource of the host, which serves the watches of all virtual clusters.
#[derive(Debug)]
pub struct Feed {
    collection: Collection,
    hub: Mutex<Hub<Stored>>,
    budget: Arc<Budget>,
    usage: Arc<Usage>,
    state: watch::Sender<State>,
    /// The versions of the host that watches wait for.
    required: watch::Sender<Waiting>,
    newest: Newest,
    wanted: Wanted,
    begun: Instant,
    /// When the host last sent something.
    heard: Mutex<Instant>,
}

/// The state of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The hub has had no complete list since this time.
    Listing(Instant),
    /// The hub has all events up to this version.
    Synced(ResourceVersion),
    /// The host refuses the list or the watch, so watches go to the host.
    Refused,
    /// Nobody needed the feed, or the host no longer has this kind. It serves no more watches.
    Ended,
    /// The feed has ended, because its objects do not fit into the memory.
    TooLarge,
}

/// Versions, each with the number of watches that wait for it.
pub(crate) type Waiting = BTreeMap<ResourceVersion, usize>;

/// A watch that waits for a version, until it is dropped.
struct Required<'f> {
    waiting: &'f watch::Sender<Waiting>,
    version: ResourceVersion,
}

// === impl State ===

impl State {
    fn is_end(self) -> bool {
        matches!(self, Self::Ended | Self::TooLarge)
    }
}

// === impl Required ===

impl<'f> Required<'f> {
    fn new(waiting: &'f watch::Sender<Waiting>, version: ResourceVersion) -> Self {
        waiting.send_modify(|waiting| *waiting.entry(version).or_default() += 1);
        Self { waiting, version }
    }
}

impl Drop for Required<'_> {
    fn drop(&mut self) {
        // Nobody needs to know of this at once.
        self.waiting.send_if_modified(|waiting| {
            let left = waiting.get_mut(&self.version).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                waiting.remove(&self.version);
            }
            false
        });
    }
}

// === impl Feed ===

impl Feed {
    /// A feed that has not read anything yet.
    pub(crate) fn new(collection: Collection, limits: Limits, budget: Arc<Budget>) -> Self {
        let usage = budget.usage();
        let hub = Mutex::new(Hub::new(limits, Arc::clone(&usage)));
        let now = Instant::now();
        let (state, required) = (watch::Sender::new(State::Listing(now)), watch::Sender::default());
        Self {
            collection,
            hub,
            budget,
            usage,
            state,
            required,
            newest: Newest::default(),
            wanted: Wanted::default(),
            begun: now,
            heard: Mutex::new(now),
        }
    }

    /// Waits until the hub has all events up to a version. Returns `false` if the feed has ended, or if the host refuses it.
    pub async fn reached(&self, version: ResourceVersion) -> bool {
        let mut state = self.state.subscribe();
        let is_decided = |state: &State| match state {
            State::Listing(_) => false,
            State::Synced(reached) => *reached >= version,
            State::Refused | State::Ended | State::TooLarge => true,
        };
        // The sender is a part of the feed, so it exists.
        state.wait_for(is_decided).await.is_ok_and(|state| matches!(*state, State::Synced(_)))
    }

    /// Waits as [`reached`](Self::reached), for a version that the host has told. A watch learns of the version of a quiet
    /// resource only once per minute, so the driver asks for it as long as somebody waits.
    pub(crate) async fn refreshed(&self, version: ResourceVersion) -> bool {
        let _required = Required::new(&self.required, version);
        self.reached(version).await
    }

    /// A version that the host had at some time after the beginning of this call. `None` if the host does not return one.
    pub(crate) async fn newest_version(&self, api: &Api) -> Option<ResourceVersion> {
        let (path, fields) = self.collection.without_objects();
        self.newest.get(|| async { api.newest_version(&path, &fields).await.ok()?.parse().ok() }).await
    }

    /// The versions from which watches want to continue when the feed opens.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// Whether the hub has a complete list.
    pub(crate) fn is_synced(&self) -> bool {
        matches!(*self.state.borrow(), State::Synced(_))
    }

    /// The host has sent something.
    pub(crate) fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether the state is complete and recent. While the host cannot be reached, the state does not change, but its age grows.
    pub(crate) fn is_recent(&self) -> bool {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_synced() && heard.elapsed() < SILENCE
    }

    /// Answers a list of any version. The caller must have the permission. `None` if the hub does not have the objects of the
    /// virtual cluster.
    pub fn list(&self, query: ListQuery) -> Option<ListBody> {
        let ListQuery { selection } = query;
        let first_state = self.wanted.first_state();
        let admission = self.hub().snapshot(selection.cluster, first_state);
        match admission {
            Admission::Served((version, objects)) => Some(ListBody::new(&self.collection, selection, version, objects)),
            _ => None,
        }
    }

    /// The versions of the host that watches wait for.
    pub(crate) fn required(&self) -> watch::Receiver<Waiting> {
        self.required.subscribe()
    }

    /// Whether the feed has ended.
    pub fn has_ended(&self) -> bool {
        self.state.borrow().is_end()
    }

    /// Whether the objects did not fit into the memory.
    pub(crate) fn was_too_large(&self) -> bool {
        *self.state.borrow() == State::TooLarge
    }

    /// The resource.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Its size.
    pub fn statistics(&self) -> Statistics {
        self.hub().statistics(self.now())
    }

    /// The virtual clusters that it does not serve at the moment.
    pub fn closed(&self) -> Vec<ClusterId> {
        self.hub().closed().map(|(cluster, _)| cluster).collect()
    }

    /// The memory in use, in bytes.
    pub fn bytes(&self) -> usize {
        self.usage.bytes()
    }

    /// The memory limit of all feeds, in bytes.
    pub(crate) fn memory_limit(&self) -> usize {
        self.budget.limit()
    }

    /// What the feed must free, in bytes.
    pub(crate) fn excess(&self) -> usize {
        self.budget.excess(&self.usage)
    }

    /// The hub. Do not hold it while you wait.
    pub(crate) fn hub(&self) -> MutexGuard<'_, Hub<Stored>> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current time of the hub.
    pub(crate) fn now(&self) -> Moment {
        Moment::after_origin(self.begun.elapsed())
    }

    /// Changes the hub, and wakes watchers afterwards.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Hub<Stored>, Moment, &mut Wakes) -> R) -> R {
        let mut wakes = Wakes::default();
        let changed = change(&mut self.hub(), self.now(), &mut wakes);
        wakes.wake();
        changed
    }

    /// A new list begins.
    pub(crate) fn begin_listing(&self) {
        // A list that begins again and again is as late as the first one.
        let is_listing = matches!(*self.state.borrow(), State::Listing(_));
        if !is_listing {
            self.enter(State::Listing(Instant::now()));
        }
    }

    /// Whether the list takes longer than this, so that it is not worth while to wait for it.
    pub(crate) fn lists_for_more_than(&self, time: Duration) -> bool {
        matches!(*self.state.borrow(), State::Listing(since) if since.elapsed() > time)
    }

    /// Tells those who wait for a state. A feed that has ended stays so.
    pub(crate) fn enter(&self, state: State) {
        self.state.send_if_modified(|known| !known.is_end() && std::mem::replace(known, state) != state);
    }

    /// Ends the feed and its watches. Its driver notices this within a second.
    pub(crate) fn retire(&self) {
        self.enter(State::Ended);
        self.change(|hub, _, wakes| hub.clear(End::Stopped, wakes));
    }
}
