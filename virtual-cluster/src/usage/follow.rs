//! A task for each resource, which lists, watches and counts its objects.
//!
//! A custom resource is counted as long as its definition exists. The host may stop to serve it, and still stores its objects.
//! When the definition changes, the task lists all objects again: the host answers a watch that was open before with the former
//! schema, and this schema may hide fields of new objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{Api, Selection, Source};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::meter::{Meter, Step};
use super::resource::Resource;
use super::stored::Usage;
use crate::shared::{Definitions, Revision};

/// The number of first lists that run at the same time. At its start, the agent has more urgent work.
const MAX_LISTS: usize = 2;
/// After this time, a list no longer delays others: an aggregated API may never respond.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// The time after which every API server of the host serves the new schema of a definition.
const REDEFINED: Duration = Duration::from_secs(2);

/// Counts forever. `resources` are those that the host serves now and whose objects count; `None` if they are not known yet.
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
    let mut counters = Counters::new(api, Arc::clone(&usage), definitions);
    loop {
        redefined.mark_unchanged();
        let served = resources.borrow_and_update().clone();
        counters.follow(served.as_deref().map(Vec::as_slice));
        loop {
            tokio::select! {
                Ok(()) = resources.changed() => break,
                Ok(()) = redefined.changed() => break,
                Some(event) = moves.next() => usage.moved(&event),
            }
        }
    }
}

/// The counters of all resources.
struct Counters {
    api: Api,
    usage: Arc<Usage>,
    definitions: Arc<Definitions>,
    lists: Arc<Semaphore>,
    tasks: JoinSet<()>,
    by_name: BTreeMap<Arc<str>, Counter>,
}

/// The task that counts the objects of one resource. It ends when this is dropped, and forgets what it has counted.
struct Counter {
    /// `None` while the host does not serve the resource.
    target: watch::Sender<Option<Target>>,
    task: AbortHandle,
}

/// What a task reads.
#[derive(Clone, Debug)]
struct Target {
    path: Arc<str>,
    /// That of the definition of a custom resource.
    revision: Option<Revision>,
    /// The list must not begin earlier.
    not_before: Instant,
}

// === impl Counters ===

impl Counters {
    fn new(api: Api, usage: Arc<Usage>, definitions: Arc<Definitions>) -> Self {
        let lists = Arc::new(Semaphore::new(MAX_LISTS));
        Self { api, usage, definitions, lists, tasks: JoinSet::new(), by_name: BTreeMap::new() }
    }

    /// From now on, counts these resources.
    fn follow(&mut self, served: Option<&[Resource]>) {
        // Discovery is not known yet.
        let Some(served) = served else { return };
        // The tasks end only here, or after a panic.
        while self.tasks.try_join_next().is_some() {}
        let targets: BTreeMap<_, _> = served.iter().map(|resource| (resource.name(), self.target(resource))).collect();
        let Self { definitions, by_name, .. } = self;
        by_name.retain(|name, counter| {
            let stays = targets.contains_key(name) || definitions.storage(name).is_some();
            stays && !counter.task.is_finished()
        });
        for (name, counter) in by_name {
            counter.aim(targets.get(name));
            if !targets.contains_key(name) {
                // Its first list may never end.
                self.usage.accounts().listed(name);
            }
        }
        // Only first lists matter: the former sums stay until a later list is complete.
        let new: Vec<_> = targets.into_iter().filter(|(name, _)| !self.by_name.contains_key(*name)).collect();
        self.usage.accounts().begin(new.iter().map(|(name, _)| Arc::clone(name)));
        for (name, target) in new {
            self.start(name, target);
        }
    }

    fn target(&self, resource: &Resource) -> Target {
        let storage = self.definitions.storage(resource.name());
        Target {
            path: resource.path(storage.as_ref().and_then(|storage| storage.version.as_deref())),
            revision: storage.as_ref().map(|storage| storage.revision.clone()),
            not_before: storage.map_or_else(Instant::now, |storage| storage.since + REDEFINED),
        }
    }

    fn start(&mut self, name: &Arc<str>, target: Target) {
        debug!(resource = &**name, path = &*target.path, "counting the objects of a resource");
        let (sender, receiver) = watch::channel(Some(target));
        let worker = Worker {
            api: self.api.clone(),
            usage: Arc::clone(&self.usage),
            lists: Arc::clone(&self.lists),
            name: Arc::clone(name),
            meter: Meter::new(Arc::clone(name)),
            target: receiver,
        };
        let task = self.tasks.spawn(worker.run());
        self.by_name.insert(Arc::clone(name), Counter { target: sender, task });
    }
}

// === impl Counter ===

impl Counter {
    fn aim(&self, target: Option<&Target>) {
        self.target.send_if_modified(|known| {
            let is_news = match (known.as_ref(), target) {
                (None, None) => false,
                (Some(known), Some(target)) => (&known.path, &known.revision) != (&target.path, &target.revision),
                (None, Some(_)) | (Some(_), None) => true,
            };
            if is_news {
                *known = target.cloned();
            }
            is_news
        });
    }
}

/// The task of a [`Counter`].
struct Worker {
    api: Api,
    usage: Arc<Usage>,
    lists: Arc<Semaphore>,
    name: Arc<str>,
    /// It outlives changes of the target, because it knows sizes that the host may no longer show.
    meter: Meter,
    target: watch::Receiver<Option<Target>>,
}

// === impl Worker ===

impl Worker {
    async fn run(mut self) {
        loop {
            let target = self.target.borrow_and_update().clone();
            let is_dropped = match target {
                Some(target) => self.count(&target).await,
                None => self.target.changed().await.is_err(),
            };
            if is_dropped {
                return self.usage.accounts().forget(&self.name);
            }
        }
    }

    /// Counts until the target changes. Returns whether the counter was dropped.
    async fn count(&mut self, target: &Target) -> bool {
        let lists = Arc::clone(&self.lists);
        let mut turn = tokio::select! {
            biased;
            changed = self.target.changed() => return changed.is_err(),
            turn = list_turn(lists, target.not_before) => turn,
        };
        let until = Instant::now() + LIST_TIMEOUT;
        let mut source = Source::new(&self.api, &*target.path, Selection::default());
        self.meter.restart();
        loop {
            let read = tokio::select! {
                biased;
                changed = self.target.changed() => return changed.is_err(),
                () = sleep_until(until), if turn.is_some() => {
                    self.usage.accounts().listed(&self.name);
                    turn = None;
                    continue;
                }
                read = source.next() => read,
            };
            let step = self.meter.take(read, &mut self.usage.accounts(), |namespace| self.usage.owner(namespace));
            match step {
                Ok(Step::Continue) => {}
                Ok(Step::Reached(version)) => source.reached(&version),
                // If the host does not serve the resource, nobody can write it.
                Ok(Step::Listed | Step::Refused) => {
                    self.listed(target);
                    turn = None;
                }
                Err(error) => source.fail(error),
            }
        }
    }

    fn listed(&self, target: &Target) {
        let mut accounts = self.usage.accounts();
        accounts.listed(&self.name);
        if let Some(revision) = &target.revision {
            accounts.listed_at(&self.name, revision.clone());
        }
    }
}

/// Waits until a first list may begin.
async fn list_turn(lists: Arc<Semaphore>, not_before: Instant) -> Option<OwnedSemaphorePermit> {
    sleep_until(not_before).await;
    lists.acquire_owned().await.ok()
}
