//! A task for each resource, which lists, watches and counts its objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host_client::api::{Api, Selection, Source};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::meter::{Meter, Step};
use super::resource::Resource;
use super::stored::Usage;
use crate::shared::Definitions;

/// The number of first lists that run at the same time. At its start, the agent has more urgent work.
const MAX_LISTS: usize = 2;
/// After this time, a list no longer delays others: an aggregated API may never respond.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// Counts forever. `resources` are those that the host serves now; `None` if they are not known yet.
pub async fn keep(
    usage: Arc<Usage>,
    api: Api,
    mut resources: watch::Receiver<Option<Arc<Vec<Resource>>>>,
    definitions: Arc<Definitions>,
) {
    let mut moves = usage.subscribe();
    let mut redefined = definitions.changes();
    usage.namespaces_known().await;
    definitions.synced().await;
    let mut followers = Followers::new(api, Arc::clone(&usage), definitions);
    loop {
        redefined.mark_unchanged();
        let served = resources.borrow_and_update().clone();
        followers.follow(served.as_deref().map(Vec::as_slice));
        loop {
            tokio::select! {
                Ok(()) = resources.changed() => break,
                Ok(()) = redefined.changed() => break,
                Some(event) = moves.next() => usage.moved(&event),
                else => return,
            }
        }
    }
}

/// The tasks.
struct Followers {
    api: Api,
    usage: Arc<Usage>,
    definitions: Arc<Definitions>,
    lists: Arc<Semaphore>,
    tasks: JoinSet<()>,
    by_name: BTreeMap<Arc<str>, Follower>,
}

/// What is known about one resource.
struct Follower {
    /// It outlives the task, because it knows sizes that the host may no longer show.
    meter: Arc<Mutex<Meter>>,
    /// `None` while the host does not serve the resource.
    running: Option<Running>,
}

/// The task that counts the objects at this path.
struct Running {
    path: Arc<str>,
    task: AbortHandle,
}

// === impl Followers ===

impl Followers {
    fn new(api: Api, usage: Arc<Usage>, definitions: Arc<Definitions>) -> Self {
        let lists = Arc::new(Semaphore::new(MAX_LISTS));
        Self { api, usage, definitions, lists, tasks: JoinSet::new(), by_name: BTreeMap::new() }
    }

    /// From now on, counts these resources. A resource that is no longer served still counts as long as its definition exists: the
    /// host then hides its objects, and etcd still stores them.
    fn follow(&mut self, served: Option<&[Resource]>) {
        // Discovery is not known yet.
        let Some(served) = served else { return };
        // The tasks run forever, so this removes only those that have been aborted or have panicked.
        while self.tasks.try_join_next().is_some() {}
        let paths: BTreeMap<_, _> = served
            .iter()
            .map(|resource| {
                (resource.name(), resource.path(self.definitions.storage_version(resource.name()).as_deref()))
            })
            .collect();
        for (name, follower) in &mut self.by_name {
            follower.stop_unless(paths.get(name));
            if follower.running.is_none() {
                self.usage.accounts().listed(name);
            }
        }
        let is_defined = |name: &str| self.definitions.storage_version(name).is_some();
        self.by_name
            .retain(|name, follower| follower.running.is_some() || paths.contains_key(name) || is_defined(name));
        self.usage.accounts().retain(|name| self.by_name.contains_key(name) || paths.contains_key(name));
        for (name, path) in paths {
            self.start(name, path);
        }
    }

    fn start(&mut self, name: &Arc<str>, path: Arc<str>) {
        let follower = self.by_name.entry(Arc::clone(name)).or_insert_with(|| Follower::new(name));
        if follower.running.is_some() {
            return;
        }
        debug!(resource = &**name, path = &*path, "counting the objects of a resource");
        self.usage.accounts().begin([Arc::clone(name)]);
        let counting = Counting {
            usage: Arc::clone(&self.usage),
            name: Arc::clone(name),
            meter: Arc::clone(&follower.meter),
            source: Source::new(&self.api, &*path, Selection::default()),
        };
        let task = self.tasks.spawn(counting.run(Arc::clone(&self.lists)));
        follower.running = Some(Running { path, task });
    }
}

// === impl Follower ===

impl Follower {
    fn new(name: &Arc<str>) -> Self {
        Self { meter: Arc::new(Mutex::new(Meter::new(Arc::clone(name)))), running: None }
    }

    /// Stops the task, unless it counts the objects at this path.
    fn stop_unless(&mut self, path: Option<&Arc<str>>) {
        let goes_on = |running: &Running| Some(&running.path) == path && !running.task.is_finished();
        if let Some(stopped) = self.running.take_if(|running| !goes_on(running)) {
            stopped.task.abort();
        }
    }
}

/// The task of a resource.
struct Counting {
    usage: Arc<Usage>,
    name: Arc<str>,
    meter: Arc<Mutex<Meter>>,
    source: Source,
}

// === impl Counting ===

impl Counting {
    async fn run(mut self, lists: Arc<Semaphore>) {
        let mut turn: Option<OwnedSemaphorePermit> = lists.acquire_owned().await.ok();
        let until = Instant::now() + LIST_TIMEOUT;
        self.meter().restart();
        loop {
            let read = tokio::select! {
                read = self.source.next() => read,
                () = sleep_until(until), if turn.is_some() => {
                    self.usage.accounts().listed(&self.name);
                    turn = None;
                    continue;
                }
            };
            let step = self.meter().take(read, &mut self.usage.accounts(), |namespace| self.usage.owner(namespace));
            match step {
                Ok(Step::Continue) => {}
                Ok(Step::Reached(version)) => self.source.reached(&version),
                Ok(Step::Listed | Step::Refused) => {
                    self.usage.accounts().listed(&self.name);
                    turn = None;
                }
                Err(error) => self.source.fail(error),
            }
        }
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
