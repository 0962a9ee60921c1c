//! The feeds of one host, and which of them are open.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use host_client::api::Api;
use hub::{Admission, Budget, ClusterId, Limits, ResourceVersion, Start, WatchRequest};
use kube_wire::Status;
use kube_wire::watch::error_event;
use ops::drain::Tasks;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use crate::collection::Collection;
use crate::driver::Driver;
use crate::feed::Feed;
use crate::permission::Permission;
use crate::placement::Placement;
use crate::request::{Bypass, WatchQuery};
use crate::watch_body::WatchBody;

/// A feed opens when a second virtual cluster needs it. A cluster counts for this time after its last watch. A feed that did
/// not fit into the memory does not open again before this time.
const DEMAND: Duration = Duration::from_secs(10 * 60);

/// If this number of watches is open at the host, the next one opens a feed, even without a second virtual cluster. A feed lists
/// and watches the objects of the whole host. For fewer watches, this could cost the host more than it saves. The number is an
/// estimate: a cluster with one Karmada and a few controllers has fewer watches of a resource.
const WATCHES_AT_HOST: usize = 8;

/// A watch waits at most this long for the version that it requires. Then it goes to the host. kube-apiserver waits
/// as long (`blockTimeout` in `watch_cache.go`).
const ARRIVAL: Duration = Duration::from_secs(3);

/// The time limit of a watch without one: 30 minutes to an hour (`minRequestTimeout` in apiserver's
/// `pkg/endpoints/handlers/get.go`).
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The maximum number of resources that are remembered. Virtual clusters can define kinds.
const MAX_RESOURCES: usize = 1000;

/// The feeds of one host.
pub struct Feeds<P> {
    api: Api,
    limits: Limits,
    budget: Arc<Budget>,
    placement: Arc<P>,
    tasks: Tasks,
    /// Where the tasks of feeds run. The runtimes of requests must stay free for requests.
    runtime: Handle,
    resources: Mutex<HashMap<Box<str>, Resource>>,
}

/// A resource that virtual clusters watch.
#[derive(Default)]
struct Resource {
    /// The clusters that watch it without a feed, and the times of their last requests.
    demand: HashMap<ClusterId, Instant>,
    /// Has a reference for each watch that is open at the host because too few watches need a feed, and one more.
    at_host: Arc<()>,
    feed: Option<Arc<Feed>>,
    /// When a watch first found that its objects had not fit into the memory.
    too_large_at: Option<Instant>,
}

/// Counts a watch that goes to the host because too few watches need a feed ([`Bypass::Few`]), until it is dropped.
#[derive(Debug)]
pub struct AtHost(#[expect(dead_code, reason = "it counts as long as it exists")] Arc<()>);

/// The answer to a watch.
#[derive(Debug)]
pub enum Begun {
    /// The watch.
    Watch(WatchBody),
    /// The only frame of the watch: an ERROR event with 410, because the version is too old.
    Expired(Bytes),
}

// === impl Feeds ===

impl<P: Placement + 'static> Feeds<P> {
    /// No feed is open. All feeds together use at most `memory` bytes. Their tasks run on the current runtime.
    ///
    /// # Panics
    /// There is no current runtime.
    pub fn new(api: &Api, placement: P, memory: usize, tasks: &Tasks) -> Self {
        Self {
            api: api.clone(),
            limits: Limits::default(),
            budget: Arc::new(Budget::new(memory)),
            placement: Arc::new(placement),
            tasks: tasks.clone(),
            runtime: Handle::current(),
            resources: Mutex::default(),
        }
    }

    /// Waits until the feed of this collection can answer a watch.
    pub async fn ready(&self, collection: &Collection, query: &WatchQuery) -> Result<Arc<Feed>, Bypass> {
        let feed = self.feed(collection, query.selection.cluster)?;
        if feed.lists_for_more_than(ARRIVAL) {
            return Err(Bypass::Timeout);
        }
        timeout(ARRIVAL, self.arrived(&feed, query)).await.map_err(|_| Bypass::Timeout)??;
        Ok(feed)
    }

    async fn arrived(&self, feed: &Feed, query: &WatchQuery) -> Result<(), Bypass> {
        let has_arrived = if query.is_newest {
            let is_synced = feed.reached(ResourceVersion::default()).await;
            let newest = if is_synced { feed.newest_version(&self.api).await } else { None };
            feed.refreshed(newest.ok_or(Bypass::Newest)?).await
        } else {
            match query.start {
                Start::After(version) => {
                    feed.wanted().add(version);
                    feed.reached(ResourceVersion::default()).await
                }
                Start::Now | Start::State { .. } => {
                    // A client has named this version, so the driver does not ask the host for it.
                    let at_least = query.start.at_least();
                    feed.reached(at_least).await && feed.refreshed(feed.wanted().first_state()).await
                }
            }
        };
        if has_arrived { Ok(()) } else { Err(Bypass::Closed) }
    }

    /// Answers a watch, as long as the caller has the permission.
    pub async fn begin(&self, feed: &Arc<Feed>, query: WatchQuery, permission: Permission) -> Result<Begun, Bypass> {
        let WatchQuery { selection, start, is_newest: _, bookmarks, timeout: limit } = query;
        let limit = limit.unwrap_or_else(|| TIMEOUT + TIMEOUT.mul_f64(fastrand::f64()));
        let until = feed.now() + limit;
        let admitted = async {
            loop {
                let request = WatchRequest { selection: selection.clone(), start, bookmarks, until };
                let admission = feed.hub().admit(request, feed.now());
                match admission {
                    // The virtual cluster is served from this version on, which the host has told. The resource may be quiet.
                    Admission::NotYet(version) if !feed.refreshed(version).await => return Err(Bypass::Closed),
                    Admission::NotYet(_) => {}
                    Admission::Served(watcher) => return Ok(Begun::Watch(WatchBody::new(feed, watcher, permission))),
                    Admission::Expired(oldest) => return Ok(Begun::Expired(expired(start, oldest))),
                    Admission::BeforeWindow => return Err(Bypass::BeforeWindow),
                    Admission::Closed => return Err(Bypass::Closed),
                }
            }
        };
        timeout(ARRIVAL, admitted).await.map_err(|_| Bypass::Timeout)?
    }

    /// The feed of this collection, if it is open and has a complete and recent state.
    pub fn synced(&self, collection: &Collection) -> Option<Arc<Feed>> {
        let feed = self.lock().get(&*collection.path).and_then(|resource| resource.feed.clone());
        feed.filter(|feed| feed.collection() == collection && feed.is_recent())
    }

    /// The memory limit of all feeds, in bytes.
    pub fn memory_limit(&self) -> usize {
        self.budget.limit()
    }

    /// Counts a watch that goes to the host because too few watches need a feed.
    pub fn hold_at_host(&self, collection: &Collection) -> Option<AtHost> {
        self.lock().get(&*collection.path).map(|resource| AtHost(Arc::clone(&resource.at_host)))
    }

    /// The feed for a resource. Opens it if a second cluster watches the resource, or many watches of it are open at the host.
    fn feed(&self, collection: &Collection, cluster: ClusterId) -> Result<Arc<Feed>, Bypass> {
        let mut resources = self.lock();
        if resources.len() >= MAX_RESOURCES && !resources.contains_key(&*collection.path) {
            resources.retain(|_, resource| resource.is_needed());
            if resources.len() >= MAX_RESOURCES {
                return Err(Bypass::Many);
            }
        }
        let resource = resources.entry(collection.path.as_str().into()).or_default();
        let now = Instant::now();
        // The kind was deleted, and is defined again with another scope or kind.
        let is_another = |feed: &Arc<Feed>| !feed.has_ended() && feed.collection() != collection;
        if resource.feed.as_ref().is_some_and(is_another)
            && let Some(former) = resource.feed.replace(self.open(collection))
        {
            former.retire();
        }
        if let Some(ended) = resource.feed.take_if(|feed| feed.has_ended()) {
            resource.too_large_at = ended.was_too_large().then_some(now);
        }
        if let Some(feed) = &resource.feed {
            return Ok(Arc::clone(feed));
        }
        if resource.too_large_at.is_some_and(|at| now.duration_since(at) < DEMAND) {
            return Err(Bypass::Closed);
        }
        resource.demand.retain(|_, last| now.duration_since(*last) < DEMAND);
        resource.demand.insert(cluster, now);
        if resource.demand.len() < 2 && resource.watches_at_host() < WATCHES_AT_HOST {
            return Err(Bypass::Few);
        }
        resource.demand.clear();
        Ok(Arc::clone(resource.feed.insert(self.open(collection))))
    }

    fn open(&self, collection: &Collection) -> Arc<Feed> {
        let feed = Arc::new(Feed::new(collection.clone(), self.limits, Arc::clone(&self.budget)));
        let driver = Driver::new(Arc::clone(&feed), &self.api, Arc::clone(&self.placement));
        self.tasks.spawn_until_cancelled_on(&self.runtime, "feed", driver.run());
        feed
    }

    /// The feeds that have not ended.
    pub fn feeds(&self) -> Vec<Arc<Feed>> {
        let resources = self.lock();
        let feeds = resources.values().filter_map(|resource| resource.feed.as_ref());
        feeds.filter(|feed| !feed.has_ended()).map(Arc::clone).collect()
    }

    /// The memory of all feeds, in bytes.
    pub fn memory(&self) -> usize {
        self.budget.bytes()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Resource>> {
        self.resources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Resource ===

impl Resource {
    /// Whether it has a feed, or may get one.
    fn is_needed(&self) -> bool {
        let is_recent = |last: &Instant| last.elapsed() < DEMAND;
        self.feed.as_ref().is_some_and(|feed| !feed.has_ended())
            || self.demand.values().any(is_recent)
            || self.watches_at_host() > 0
    }

    fn watches_at_host(&self) -> usize {
        Arc::strong_count(&self.at_host) - 1
    }
}

/// The event that a client gets if its version is too old (`NewResourceExpired` in apiserver's `watch_cache.go`).
fn expired(start: Start, oldest: ResourceVersion) -> Bytes {
    let requested = match start {
        Start::After(version) => version,
        Start::Now | Start::State { .. } => ResourceVersion::default(),
    };
    error_event(&Status::expired(format!("too old resource version: {requested} ({oldest})"))).into()
}

impl<P> fmt::Debug for Feeds<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeds").field("memory", &self.budget.bytes()).finish_non_exhaustive()
    }
}
