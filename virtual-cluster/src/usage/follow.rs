//! A task for each resource, which lists, watches and counts its objects.

use std::collections::{BTreeMap, BTreeSet};
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

/// The number of first lists that run at the same time. At its start, the agent has more urgent work.
const MAX_LISTS: usize = 2;
/// After this time, a list no longer delays others: an aggregated API may never respond.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// Counts forever. `resources` are those that the host serves now; `None` if they are not known yet.
pub async fn keep(usage: Arc<Usage>, api: Api, mut resources: watch::Receiver<Option<Arc<BTreeSet<Resource>>>>) {
    let mut moves = usage.subscribe();
    usage.namespaces_known().await;
    let mut followers = Followers::new(api, Arc::clone(&usage));
    let known = resources.borrow_and_update().clone();
    followers.follow(known.as_deref());
    loop {
        tokio::select! {
            Ok(()) = resources.changed() => {
                let known = resources.borrow_and_update().clone();
                followers.follow(known.as_deref());
            }
            Some(event) = moves.next() => usage.moved(&event),
            else => return,
        }
    }
}

/// The tasks.
struct Followers {
    api: Api,
    usage: Arc<Usage>,
    lists: Arc<Semaphore>,
    tasks: JoinSet<()>,
    by_resource: BTreeMap<Resource, AbortHandle>,
}

// === impl Followers ===

impl Followers {
    fn new(api: Api, usage: Arc<Usage>) -> Self {
        let lists = Arc::new(Semaphore::new(MAX_LISTS));
        Self { api, usage, lists, tasks: JoinSet::new(), by_resource: BTreeMap::new() }
    }

    /// From now on, counts exactly these resources.
    fn follow(&mut self, resources: Option<&BTreeSet<Resource>>) {
        // Discovery is not known yet.
        let Some(resources) = resources else { return };
        // The tasks run forever, so this removes only those that have been aborted or have panicked.
        while self.tasks.try_join_next().is_some() {}
        self.by_resource.retain(|resource, task| {
            let is_served = resources.contains(resource);
            if !is_served {
                task.abort();
            }
            is_served && !task.is_finished()
        });
        let names: BTreeSet<_> = resources.iter().map(|resource| &resource.name).collect();
        self.usage.accounts().retain(|name| names.contains(name));
        let new: Vec<_> = resources.iter().filter(|resource| !self.by_resource.contains_key(resource)).collect();
        self.usage.accounts().begin(new.iter().map(|resource| Arc::clone(&resource.name)));
        for resource in new {
            debug!(resource = &*resource.name, "counting the objects of a resource");
            let (api, usage, lists) = (self.api.clone(), Arc::clone(&self.usage), Arc::clone(&self.lists));
            let task = self.tasks.spawn(count(api, usage, lists, resource.clone()));
            self.by_resource.insert(resource.clone(), task);
        }
    }
}

async fn count(api: Api, usage: Arc<Usage>, lists: Arc<Semaphore>, resource: Resource) {
    let mut turn: Option<OwnedSemaphorePermit> = lists.acquire_owned().await.ok();
    let until = Instant::now() + LIST_TIMEOUT;
    let mut source = Source::new(&api, &*resource.path, Selection::default());
    let mut meter = Meter::new(Arc::clone(&resource.name));
    loop {
        let read = tokio::select! {
            read = source.next() => read,
            () = sleep_until(until), if turn.is_some() => {
                usage.accounts().listed(&resource.name);
                turn = None;
                continue;
            }
        };
        let step = meter.take(read, &mut usage.accounts(), |namespace| usage.owner(namespace));
        match step {
            Ok(Step::Continue) => {}
            Ok(Step::Reached(version)) => source.reached(&version),
            Ok(Step::Listed | Step::Refused) => {
                usage.accounts().listed(&resource.name);
                turn = None;
            }
            Err(error) => source.fail(error),
        }
    }
}
