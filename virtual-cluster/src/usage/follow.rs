//! A task for each resource, which lists, watches and counts its objects.
//!
//! A custom resource is counted as long as its definition exists. The host may stop serving it but still store its objects.
//! When the definition changes, the task lists all objects again: the host answers a watch that was open before with the former
//! schema, and this schema may hide fields of new objects. Until this list begins, the task reads on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use host_client::api::{Api, Read, Selection, Source};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::meter::{Meter, Step};
use super::resource::Resource;
use super::stored::Usage;
use crate::shared::{Definitions, Revision};

/// The number of lists that run at the same time. At its start, the agent has more urgent work.
const MAX_LISTS: usize = 2;
/// After this time, a first list no longer delays others: an aggregated API may never respond.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for a later list. Clients of virtual clusters wait for it.
const LATER_LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which every API server of the host serves the new schema of a definition.
const REDEFINED: Duration = Duration::from_secs(2);
/// After a list, the next list of the same resource waits this many times as long as the list took, so that a client that keeps
/// changing its definition does not keep the host busy.
const REST: u32 = 10;
/// The maximum of this wait.
const MAX_REST: Duration = Duration::from_secs(60);

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
    lists: Lists,
    tasks: JoinSet<()>,
    /// When this began. A definition that came later had no objects before.
    begun: Instant,
    by_name: BTreeMap<Arc<str>, Counter>,
}

/// The permits for lists. Definitions that clients change do not delay the first lists of other resources.
#[derive(Clone)]
struct Lists {
    first: Arc<Semaphore>,
    later: Arc<Semaphore>,
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
    /// Whether there was no such resource when the agent began to count.
    is_new: bool,
    /// The list must not begin earlier.
    not_before: Instant,
}

// === impl Counters ===

impl Counters {
    fn new(api: Api, usage: Arc<Usage>, definitions: Arc<Definitions>) -> Self {
        let begun = Instant::now();
        Self { api, usage, definitions, lists: Lists::new(), tasks: JoinSet::new(), begun, by_name: BTreeMap::new() }
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
            let stays = targets.contains_key(&**name) || definitions.storage(name).is_some();
            stays && !counter.task.is_finished()
        });
        for (name, counter) in by_name {
            let target = targets.get(&**name);
            counter.aim(target);
            if target.is_none() {
                // Its first list may never end.
                self.usage.accounts().listed(name);
            }
        }
        let new = targets.into_iter().filter(|(name, _)| !self.by_name.contains_key(*name));
        let new: Vec<(Arc<str>, _)> = new.map(|(name, target)| (name.into(), target)).collect();
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
            is_new: storage.as_ref().is_some_and(|storage| storage.defined_at > self.begun),
            not_before: storage.map_or_else(Instant::now, |storage| storage.revised_at + REDEFINED),
        }
    }

    fn start(&mut self, name: Arc<str>, target: Target) {
        debug!(resource = &*name, path = &*target.path, "counting the objects of a resource");
        let meter = Meter::new(Arc::clone(&name), target.is_new);
        let (sender, receiver) = watch::channel(Some(target));
        let worker = Worker {
            api: self.api.clone(),
            usage: Arc::clone(&self.usage),
            lists: self.lists.clone(),
            name: Arc::clone(&name),
            meter,
            target: receiver,
            source: None,
            has_listed: false,
            rest_until: Instant::now(),
        };
        let task = self.tasks.spawn(worker.run());
        self.by_name.insert(name, Counter { target: sender, task });
    }
}

// === impl Lists ===

impl Lists {
    fn new() -> Self {
        let permits = || Arc::new(Semaphore::new(MAX_LISTS));
        Self { first: permits(), later: permits() }
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
    lists: Lists,
    name: Arc<str>,
    /// It outlives changes of the target, because it knows sizes that the host may no longer show.
    meter: Meter,
    target: watch::Receiver<Option<Target>>,
    /// What is read. Between a change of the target and the next list, this is the former one.
    source: Option<Source>,
    /// Whether a list was complete.
    has_listed: bool,
    /// Another list must not begin earlier.
    rest_until: Instant,
}

/// The target has changed.
struct Changed {
    /// The counter was dropped.
    is_dropped: bool,
}

// === impl Worker ===

impl Worker {
    async fn run(mut self) {
        loop {
            let target = self.target.borrow_and_update().clone();
            let Changed { is_dropped } = if let Some(target) = target {
                self.count(&target).await
            } else {
                self.source = None;
                Changed { is_dropped: self.target.changed().await.is_err() }
            };
            if is_dropped {
                return self.usage.accounts().forget(&self.name);
            }
        }
    }

    /// Counts until the target changes.
    async fn count(&mut self, target: &Target) -> Changed {
        let lists = if self.has_listed { &self.lists.later } else { &self.lists.first };
        let timeout = if self.has_listed { LATER_LIST_TIMEOUT } else { LIST_TIMEOUT };
        let mut waiting = std::pin::pin!(list_turn(Arc::clone(lists), target.not_before.max(self.rest_until)));
        self.meter.outdate();
        let mut turn = loop {
            tokio::select! {
                biased;
                changed = self.target.changed() => return Changed { is_dropped: changed.is_err() },
                turn = &mut waiting => break turn,
                read = next(&mut self.source) => drop(self.take(read)),
            }
        };
        let begun = Instant::now();
        self.source = Some(Source::new(&self.api, &*target.path, Selection::default()));
        self.meter.begin();
        loop {
            let read = tokio::select! {
                biased;
                changed = self.target.changed() => return Changed { is_dropped: changed.is_err() },
                () = sleep_until(begun + timeout), if turn.is_some() => {
                    self.usage.accounts().listed(&self.name);
                    turn = None;
                    continue;
                }
                read = next(&mut self.source) => read,
            };
            match self.take(read) {
                Step::Continue | Step::Reached(_) => continue,
                Step::Listed => self.listed(target, begun),
                Step::Refused => self.usage.accounts().listed(&self.name),
            }
            turn = None;
        }
    }

    /// Counts what was read.
    fn take(&mut self, read: Read) -> Step {
        let took = self.meter.take(read, &mut self.usage.accounts(), |namespace| self.usage.owner(namespace));
        let Some(source) = &mut self.source else { return Step::Continue };
        match took {
            Ok(step) => {
                if let Step::Reached(version) = &step {
                    source.reached(version);
                }
                step
            }
            Err(error) => {
                source.fail(error);
                Step::Continue
            }
        }
    }

    /// A list that began at this time is complete.
    fn listed(&mut self, target: &Target, begun: Instant) {
        // Later lists of the same source do not count.
        if self.rest_until < begun {
            self.rest_until = Instant::now() + begun.elapsed().saturating_mul(REST).min(MAX_REST);
        }
        self.has_listed = true;
        let mut accounts = self.usage.accounts();
        accounts.listed(&self.name);
        if let Some(revision) = &target.revision {
            accounts.listed_at(&self.name, revision.clone());
        }
    }
}

/// What the source reads next. Without a source, this waits for ever.
async fn next(source: &mut Option<Source>) -> Read {
    match source {
        Some(source) => source.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until a list may begin.
async fn list_turn(lists: Arc<Semaphore>, not_before: Instant) -> Option<OwnedSemaphorePermit> {
    sleep_until(not_before).await;
    lists.acquire_owned().await.ok()
}

#[cfg(test)]
mod tests;
