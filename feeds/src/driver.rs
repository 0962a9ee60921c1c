//! The task of a feed: reads the host, and reports what it reads to the hub.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use host_client::api::{Api, ApiError, Read, Selection, Source};
use hub::{Closing, ClusterId, End, EventKind, NewObject, Opened, Place, ResourceVersion};
use kube_wire::Status;
use kube_wire::watch::EventType;
use rewrite::facts::{Facts, FactsError, Frame, frame};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{debug, info, warn};

use crate::feed::{Feed, State, Waiting};
use crate::moving::Moving;
use crate::placement::{Membership, Move, Moves as _, Placed, Placement};
use crate::reopening::{self, Listed, Reopening};
use crate::stored::{StoreError, Stored, initial_frame};

/// The interval in which the hub learns of the time.
const TICK: Duration = Duration::from_secs(1);

/// A feed without watches ends after this time.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// The time after which the feed tries to serve a virtual cluster again that it has closed to free memory.
const EVICTED: Duration = Duration::from_secs(10 * 60);

/// The pause after a failed attempt to serve a virtual cluster again.
const RETRY: Duration = Duration::from_secs(10);

/// When a feed opens, other watches may follow at once, which want to continue from older versions.
const GATHERING: Duration = Duration::from_millis(200);

/// The time in which a bookmark arrives after a refresh.
const REFRESH: Duration = Duration::from_secs(3);

/// The task of a feed.
pub(crate) struct Driver<P: Placement> {
    feed: Arc<Feed>,
    api: Api,
    placement: Arc<P>,
    source: Source,
    moves: P::Moves,
    required: watch::Receiver<Waiting>,
    /// When the source was last refreshed, unless a bookmark has arrived since.
    refreshed: Option<Instant>,
    /// The places that the objects of each namespace have got.
    known: HashMap<Arc<str>, Place>,
    /// When to list the objects of closed virtual clusters.
    reopen_at: HashMap<ClusterId, Instant>,
    /// The virtual cluster whose objects are being listed.
    reopening: Option<Reopening>,
    moving: Moving,
}

/// Ends a feed when its driver ends, even by a panic. Otherwise, watches would wait forever.
struct Ending(Arc<Feed>);

/// What the host has sent cannot be stored.
#[derive(Debug, thiserror::Error)]
enum DriverError {
    #[error(transparent)]
    Facts(#[from] FactsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("the watch ended with an error")]
    Status(Box<Status>),
    #[error("the objects of the virtual cluster need more than a quarter of the hub's memory")]
    TooLarge,
    /// The kind is defined again, with another scope.
    #[error("an object has no namespace")]
    Scope,
}

// === impl Driver ===

impl<P: Placement> Driver<P> {
    pub(crate) fn new(feed: Arc<Feed>, api: &Api, placement: Arc<P>) -> Self {
        let source = Source::new(api, &feed.collection().path, Selection::default());
        let moves = placement.moves();
        let (required, api) = (feed.required(), api.clone());
        let moving = Moving::new(&feed, &api);
        Self {
            feed,
            api,
            placement,
            source,
            moves,
            required,
            refreshed: None,
            known: HashMap::new(),
            reopen_at: HashMap::new(),
            reopening: None,
            moving,
        }
    }

    /// Reads the host until nobody has needed the feed for five minutes, or until it is retired.
    pub(crate) async fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.feed));
        self.begin().await;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut needed = Instant::now();
        while needed.elapsed() < IDLE && !self.feed.has_ended() {
            tokio::select! {
                read = self.source.next() => match self.take(read).await {
                    Ok(()) => {}
                    // Discovery tells the next watch what the kind is now.
                    Err(DriverError::Scope) => return,
                    Err(error) => self.source.fail(error.into()),
                },
                change = self.moves.next() => self.membership_changed(&change),
                moved = self.moving.next() => if let Some((clusters, version)) = moved {
                    self.feed.hub().moved(&clusters, version);
                },
                listed = reopening::next(&mut self.reopening) => {
                    self.listed_for(listed).await;
                    self.reopen();
                }
                // The sender is a part of the feed, so it exists.
                _ = self.required.changed() => self.refresh(),
                _ = ticks.tick() => {
                    let excess = self.feed.excess();
                    self.feed.change(|hub, now, wakes| hub.tick(now, excess, wakes));
                    if excess > 0 && self.is_too_large() {
                        warn!(path = self.feed.collection().path, "the objects do not fit into the hub's memory");
                        self.feed.enter(State::TooLarge);
                        return;
                    }
                    self.refresh();
                    self.moving.read();
                    self.reopen();
                    if self.feed.statistics().watchers > 0 {
                        needed = Instant::now();
                    }
                }
            }
        }
    }

    /// If watches want to continue from a version, lists the objects of that version, so that the hub has all later events. After
    /// the agent or many clients have started again, their watches would all go to the host otherwise.
    async fn begin(&mut self) {
        sleep(GATHERING).await;
        let Some(oldest) = self.feed.wanted().oldest() else { return };
        // Clients choose `oldest`, and it may be minutes old. So the host says which state is the first one.
        if let Some(newest) = self.feed.newest_version(&self.api).await
            && oldest < newest
        {
            self.feed.wanted().set_first_state(newest);
            let source = Source::new(&self.api, &self.feed.collection().path, Selection::default());
            self.source = source.beginning_at(oldest.to_string());
        }
    }

    /// Whether the hub cannot free enough memory. Objects of everybody stay, whichever cluster it closes.
    fn is_too_large(&self) -> bool {
        self.feed.collection().membership == Membership::Everybody && self.feed.excess() > 0
    }

    async fn take(&mut self, read: Read) -> Result<(), DriverError> {
        match read {
            Read::Item(item) => {
                let object = self.object(&item).await?;
                self.feed.hub().listed(object);
            }
            Read::Listed(version) => {
                self.feed.hear();
                let version = parsed(&version)?;
                self.feed.hub().synced(version);
                self.feed.enter(State::Synced(version));
            }
            Read::Frame(bytes) => {
                self.feed.hear();
                self.frame(&bytes).await?;
            }
            Read::Restarted { is_expired } => self.restarted(is_expired),
            Read::Refused => {
                self.feed.enter(State::Refused);
                self.forget();
                self.feed.change(|hub, _, wakes| hub.clear(End::Stopped, wakes));
            }
        }
        Ok(())
    }

    async fn frame(&mut self, bytes: &Bytes) -> Result<(), DriverError> {
        match frame(bytes, &[])? {
            Frame::Change { event, object, facts } => {
                let kind = match event {
                    EventType::Deleted => EventKind::Deleted,
                    _ => EventKind::Written,
                };
                let version = facts.resource_version.clone();
                let place = self.place(&facts).await?;
                let object = Stored::object(bytes.clone(), event, object, &facts, place)?;
                let reached = object.version;
                self.feed.change(|hub, now, wakes| hub.event(kind, object, now, wakes));
                self.reached(&version, reached);
            }
            Frame::Bookmark(bookmark) => {
                let text = String::from_utf8_lossy(&bookmark.resource_version);
                let version = parsed(&text)?;
                self.feed.hub().bookmark(version);
                self.reached(&text, version);
                self.refreshed = None;
                self.refresh();
            }
            Frame::Error { status } => {
                let status = Status::from_json(&bytes[status]).unwrap_or_default();
                debug!(%status, "the host ends the watch of a feed");
                return Err(DriverError::Status(Box::new(status)));
            }
        }
        Ok(())
    }

    /// Asks the host for a bookmark if the hub is older than a watch or the first state requires.
    fn refresh(&mut self) {
        let waiting = self.required.borrow_and_update().last_key_value().map(|(version, _)| *version);
        // A list does not register the version that it requires, so this also asks for the first state.
        let required = waiting.unwrap_or_default().max(self.feed.wanted().first_state());
        let is_behind = self.feed.hub().version().is_some_and(|version| version < required);
        let is_coming = self.refreshed.is_some_and(|refreshed| refreshed.elapsed() < REFRESH);
        if is_behind && !is_coming {
            self.refreshed = Some(Instant::now());
            self.source.refresh();
        }
    }

    fn reached(&mut self, text: &str, version: ResourceVersion) {
        self.source.reached(text);
        // The hub can be newer than an event that has come twice.
        let version = self.feed.hub().version().unwrap_or(version);
        self.feed.enter(State::Synced(version));
    }

    /// An item of a list.
    async fn object(&mut self, item: &RawValue) -> Result<NewObject<Stored>, DriverError> {
        let bytes = initial_frame(item, self.feed.collection());
        let Frame::Change { event, object, facts } = frame(&bytes, &[])? else {
            return Err(FactsError::Missing { field: "object" }.into());
        };
        let place = self.place(&facts).await?;
        Ok(Stored::object(bytes.clone(), event, object, &facts, place)?)
    }

    async fn place(&mut self, facts: &Facts<'_>) -> Result<Place, DriverError> {
        let membership = self.feed.collection().membership;
        let Some(namespace) = membership.namespace(facts) else { return Ok(Place::Everybody) };
        if namespace.is_empty() {
            return Err(DriverError::Scope);
        }
        Ok(match self.placement.place(membership, namespace, parsed(&facts.resource_version)?).await {
            Placed::Now(place) => {
                if self.known.get(namespace) != Some(&place) {
                    self.known.insert(namespace.into(), place.clone());
                }
                place
            }
            Placed::Formerly(place) => place,
        })
    }

    /// A new list begins. If the host has no events after the version of the hub, clients must list again, too.
    fn restarted(&mut self, is_expired: bool) {
        self.feed.begin_listing();
        self.forget();
        self.feed.change(|hub, _, wakes| {
            let end = hub.version().filter(|_| is_expired).map_or(End::Stopped, End::Expired);
            hub.clear(end, wakes);
        });
    }

    /// The hub is about to be cleared. A list of everything follows, whose version is after all known changes of membership.
    fn forget(&mut self) {
        self.known.clear();
        self.reopening = None;
        self.moving.clear();
    }

    fn membership_changed(&mut self, change: &Move) {
        match change {
            Move::Namespace(host) => self.moved(host.as_str()),
            Move::Everything => {
                let namespaces: Vec<Arc<str>> = self.known.keys().cloned().collect();
                for namespace in namespaces {
                    self.moved(&namespace);
                }
            }
        }
    }

    /// Closes the virtual clusters that have lost or gained the objects of a namespace, because no events report this.
    fn moved(&mut self, namespace: &str) {
        let Some(place) = self.placement.place_of(self.feed.collection().membership, namespace) else {
            // Its objects were deleted before it.
            self.known.remove(namespace);
            return;
        };
        let Some(known) = self.known.get_mut(namespace).filter(|known| **known != place) else { return };
        let affected: Vec<_> = known.listed().iter().chain(place.listed()).copied().collect();
        *known = place;
        debug!(path = self.feed.collection().path, namespace, "a namespace with objects has another owner");
        self.feed.change(|hub, _, wakes| hub.close(&affected, wakes));
        self.reopening.take_if(|reopening| affected.contains(&reopening.cluster));
        self.reopen_at.retain(|cluster, _| !affected.contains(cluster));
        self.moving.add(&affected);
    }

    /// Begins to list the objects of a closed virtual cluster, if it is time, and if no other one is being listed.
    fn reopen(&mut self) {
        if self.reopening.is_some() {
            return;
        }
        let closed: Vec<(ClusterId, Closing)> = self.feed.hub().closed().collect();
        self.reopen_at.retain(|cluster, _| closed.iter().any(|(other, _)| other == cluster));
        let Some(version) = self.feed.hub().version() else { return };
        let now = Instant::now();
        let at = |(cluster, closing): (ClusterId, Closing)| {
            let first = match closing {
                Closing::Moved => now,
                Closing::Evicted => now + EVICTED,
            };
            (*self.reopen_at.entry(cluster).or_insert(first), cluster)
        };
        if let Some((_, cluster)) = closed.into_iter().map(at).min().filter(|(at, _)| *at <= now) {
            self.feed.hub().begin_opening(cluster);
            self.reopening = Some(Reopening::new(cluster, &self.api, self.paths_of(cluster), version));
        }
    }

    /// The collections that have all objects of a virtual cluster.
    fn paths_of(&self, cluster: ClusterId) -> Vec<String> {
        let collection = self.feed.collection();
        match collection.membership {
            Membership::Namespaced | Membership::NamespacedOrRoot => {
                let namespaces = self.placement.namespaces_of(collection.membership, cluster);
                namespaces.iter().map(|namespace| collection.path_in(namespace.as_str())).collect()
            }
            Membership::Namespace => vec![collection.path.clone()],
            // The hub has the objects of everybody, whichever cluster it serves.
            Membership::Everybody => Vec::new(),
        }
    }

    /// An object of the virtual cluster that is being listed, or the end of its lists.
    async fn listed_for(&mut self, listed: Listed) {
        let Some(mut reopening) = self.reopening.take() else { return };
        let (cluster, path) = (reopening.cluster, self.feed.collection().path.clone());
        // The time does not apply any more: if the cluster is no longer being opened, the hub has closed it again, perhaps
        // for another reason.
        self.reopen_at.remove(&cluster);
        let pause = match listed {
            Listed::Item(item) => match self.take_listed(&mut reopening, &item).await {
                Ok(Opened::Yes) => {
                    self.reopening = Some(reopening);
                    return;
                }
                Ok(Opened::Interrupted) => return,
                Err(error @ DriverError::TooLarge) => {
                    warn!(path, %error, "the watches of a virtual cluster go to the host");
                    EVICTED
                }
                Err(error) => {
                    warn!(path, %error, "an object of a list cannot be stored; trying again");
                    RETRY
                }
            },
            Listed::End => {
                if self.feed.hub().open(cluster, reopening.listed) == Opened::Yes {
                    info!(path, objects = reopening.objects, "a virtual cluster is served again");
                }
                return;
            }
            Listed::Interrupted => RETRY,
        };
        self.feed.hub().abandon(cluster);
        self.reopen_at.insert(cluster, Instant::now() + pause);
    }

    /// Returns whether the hub still takes the objects of the cluster.
    async fn take_listed(&mut self, reopening: &mut Reopening, item: &RawValue) -> Result<Opened, DriverError> {
        let object = self.object(item).await?;
        if object.place.contains(reopening.cluster) {
            reopening.objects += 1;
            reopening.bytes += item.get().len();
        }
        if reopening.bytes > self.feed.memory_limit() / 4 {
            return Err(DriverError::TooLarge);
        }
        Ok(self.feed.hub().listed_for(reopening.cluster, object))
    }
}

fn parsed(version: &str) -> Result<ResourceVersion, StoreError> {
    version.parse().map_err(|_| StoreError::Version { version: version.to_owned() })
}

// === impl Ending ===

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.0.has_ended() {
            self.0.enter(State::Ended);
        }
        self.0.change(|hub, _, wakes| hub.clear(End::Stopped, wakes));
    }
}

// === impl DriverError ===

impl From<DriverError> for ApiError {
    fn from(error: DriverError) -> Self {
        match error {
            DriverError::Status(status) => Self::Status(status),
            DriverError::Api(error) => error,
            error => Self::unreadable(error),
        }
    }
}
