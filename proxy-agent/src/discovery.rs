//! The resources that the host serves, with the facts on which plans depend: whether they are namespaced, their kind,
//! and whether they are custom.
//!
//! [`Discovery::keep`] reads discovery every minute, and when a CustomResourceDefinition changes. A look-up uses the
//! last result, regardless of its age, and reads again only if it lacks the resource. Only authorised requests look up
//! resources.

mod read;
mod resources;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use kube_wire::gvr::{GroupResource, GroupVersionResource};
use rewrite::mapping::RenamedKinds;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::warn;

use host_client::Host;
pub(crate) use read::DiscoveryError;
pub(crate) use resources::{Resource, Resources};
use virtual_cluster::policy::{Custom, Customs};
use virtual_cluster::shared::Definitions;
use virtual_cluster::usage;

/// The interval of periodic reads.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time between searches for unknown resources, for all clients together.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The timeout of a read, and of a look-up that waits for another's read.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The cache of the host's discovery.
pub(crate) struct Discovery {
    host: Host,
    customs: Customs,
    definitions: Arc<Definitions>,
    known: ArcSwapOption<Discovered>,
    served: ArcSwapOption<Served>,
    /// The resources whose objects count towards the shares of virtual clusters; `None` before the first read.
    counted: watch::Sender<Option<Arc<Vec<usage::Resource>>>>,
    /// The last read for a look-up. The lock allows one at a time.
    reading: Mutex<Option<LastRead>>,
}

/// The last read for a look-up.
#[derive(Clone, Copy)]
struct LastRead {
    /// When it ended, or began if it has no end.
    at: Instant,
    /// Whether it ended. The client of a look-up may leave while it waits.
    has_ended: bool,
}

/// The result of the last read.
struct Discovered {
    resources: Resources,
}

/// How the cluster-scoped custom resources are served, for one generation of the definitions.
struct Served {
    known: Arc<Discovered>,
    definitions: u64,
    renamed: Arc<RenamedKinds>,
    hidden: Arc<BTreeSet<String>>,
}

// === impl Discovery ===

impl Discovery {
    /// `customs` says how cluster-scoped custom resources are served. `definitions` says who owns the definitions that
    /// it does not list.
    pub(crate) fn new(host: Host, customs: Customs, definitions: Arc<Definitions>) -> Self {
        Self {
            host,
            customs,
            definitions,
            known: ArcSwapOption::empty(),
            served: ArcSwapOption::empty(),
            counted: watch::Sender::new(None),
            reading: Mutex::default(),
        }
    }

    /// The host's facts about a resource; `None` if the host does not serve it.
    pub(crate) async fn resource(
        &self,
        resource: GroupVersionResource<'_>,
    ) -> Result<Option<Resource>, DiscoveryError> {
        if let Some(found) = self.last(resource) {
            return Ok(Some(found));
        }
        let Ok(mut reading) = timeout(READ_TIMEOUT, self.reading.lock()).await else {
            return Err(DiscoveryError::Timeout);
        };
        let recent = reading.is_some_and(|last| last.has_ended && last.at.elapsed() < RETRY_INTERVAL);
        if !recent {
            if let Some(last) = *reading {
                // Clients that leave during their look-ups do not cause more reads than others.
                sleep_until(last.at + RETRY_INTERVAL).await;
            }
            *reading = Some(LastRead { at: Instant::now(), has_ended: false });
            let read = self.read().await;
            *reading = Some(LastRead { at: Instant::now(), has_ended: true });
            match read {
                Ok(()) => {}
                // The last read does not have the resource, so it is not known to be served.
                Err(error) if self.known.load().is_none() => return Err(error),
                Err(error) => warn!(error = &error as &dyn std::error::Error, "cannot refresh discovery"),
            }
        }
        drop(reading);
        Ok(self.last(resource))
    }

    /// The last known state of a resource.
    fn last(&self, resource: GroupVersionResource<'_>) -> Option<Resource> {
        self.known.load().as_ref().and_then(|known| known.resources.get(resource).cloned())
    }

    async fn read(&self) -> Result<(), DiscoveryError> {
        let resources = timeout(READ_TIMEOUT, read::read(&self.host)).await.map_err(|_| DiscoveryError::Timeout)??;
        let counted = resources.counted();
        self.known.store(Some(Arc::new(Discovered { resources })));
        self.counted.send_if_modified(|known| {
            let is_news = known.as_deref() != Some(&counted);
            if is_news {
                *known = Some(Arc::new(counted));
            }
            is_news
        });
        Ok(())
    }

    /// Whether the host served the resource of the definition with this name at the last read.
    pub(crate) fn serves(&self, name: &str) -> bool {
        self.counted.borrow().iter().flat_map(|counted| counted.iter()).any(|counted| counted.name() == name)
    }

    /// The resources whose objects count towards the shares of virtual clusters; `None` before the first read.
    pub(crate) fn counted(&self) -> watch::Receiver<Option<Arc<Vec<usage::Resource>>>> {
        self.counted.subscribe()
    }

    /// How a cluster-scoped custom resource is served, by the name of its definition; `None` if this agent does not
    /// know the definition.
    pub(crate) fn custom(&self, name: &str) -> Option<Custom> {
        Some(self.custom_of(name, self.definitions.is_of_clusters(name)?))
    }

    /// The same if the caller knows whether the definition belongs to virtual clusters alone.
    pub(crate) fn custom_of(&self, name: &str, is_of_clusters: bool) -> Custom {
        self.customs.of(name, is_of_clusters)
    }

    /// Whether the operator of the host forbids clients to write this resource, which may be namespaced or
    /// cluster-scoped.
    pub(crate) fn is_reserved(&self, GroupResource { group, resource }: GroupResource<'_>) -> bool {
        self.customs.is_reserved(&format!("{resource}.{group}"))
    }

    /// How this resource is served, if it is known to be a cluster-scoped custom resource.
    pub(crate) fn known_custom(&self, resource: GroupResource<'_>) -> Option<Custom> {
        let GroupResource { group, resource } = resource;
        let known = self.known.load();
        let scopeless = &known.as_ref()?.resources.scopeless;
        let is_one = scopeless.contains_key(&(group.to_owned(), resource.to_owned()));
        is_one.then(|| self.custom(&format!("{resource}.{group}"))).flatten()
    }

    /// The known kinds of custom objects that have other names on the host.
    pub(crate) fn renamed(&self) -> Arc<RenamedKinds> {
        self.served().map(|served| Arc::clone(&served.renamed)).unwrap_or_default()
    }

    /// Resources that the host serves but virtual clusters do not, as `resource.group`.
    pub(crate) fn hidden(&self) -> Arc<BTreeSet<String>> {
        self.served().map(|served| Arc::clone(&served.hidden)).unwrap_or_default()
    }

    fn served(&self) -> Option<Arc<Served>> {
        let known = self.known.load_full()?;
        let definitions = self.definitions.generation();
        if let Some(served) = self.served.load_full()
            && served.definitions == definitions
            && Arc::ptr_eq(&served.known, &known)
        {
            return Some(served);
        }
        let (mut renamed, mut hidden) = (RenamedKinds::new(), BTreeSet::new());
        for ((group, resource), kind) in &known.resources.scopeless {
            let name = format!("{resource}.{group}");
            match self.custom(&name) {
                Some(Custom::Renamed) => drop(renamed.insert((group.clone(), kind.clone()))),
                Some(Custom::Hidden) => drop(hidden.insert(name)),
                Some(Custom::Read | Custom::Shared) | None => {}
            }
        }
        let served = Served { known, definitions, renamed: Arc::new(renamed), hidden: Arc::new(hidden) };
        let served = Arc::new(served);
        self.served.store(Some(Arc::clone(&served)));
        Some(served)
    }

    /// Reads periodically for ever, so that references to such objects can be mapped.
    pub(crate) async fn keep(&self) {
        let mut definitions = self.definitions.changes();
        let mut pause = REFRESH_INTERVAL;
        loop {
            if let Err(error) = self.read().await {
                warn!(error = &error as &dyn std::error::Error, "discovery failed");
            }
            // A host serves the resources of a definition some time after it has stored the definition.
            pause = match timeout(pause, definitions.changed()).await {
                Ok(_) => {
                    sleep(RETRY_INTERVAL).await;
                    RETRY_INTERVAL
                }
                Err(_) => (pause * 2).min(REFRESH_INTERVAL),
            };
        }
    }
}

#[cfg(test)]
mod tests;
