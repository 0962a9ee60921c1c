//! Which resources the host serves, as far as a decision needs it: is it namespaced, what is its kind, and is it custom.
//!
//! [`Discovery::keep`] reads it every minute. A look-up is answered from what was read last, however old that is, and reads
//! again only for a resource that is not there. Only authorised requests look anything up.

mod read;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use kube_wire::gvr::GroupVersionResource;
use rewrite::mapping::RenamedKinds;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::host::Host;
use crate::policy::{Custom, Customs};
pub(crate) use read::DiscoveryError;

/// The interval between two reads that nobody asked for.
const REFRESH_INTERVAL: Duration = Duration::from_secs(60);

/// Unknown resources are looked for this often, whoever asks for them.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long one read may take, and how long a look-up waits for the read of another.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// What is known of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Its kind, for the places of names in its objects.
    pub(crate) kind: String,
    /// Whether its objects are in namespaces.
    pub(crate) namespaced: bool,
    /// Whether a CustomResourceDefinition says what it is. Aggregated APIs are neither custom nor kube-apiserver's own.
    pub(crate) custom: bool,
}

/// Resources by group, version and plural.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    by_name: HashMap<(String, String, String), Resource>,
    /// Custom kinds that are in no namespace, by group and resource, and what they are called.
    scopeless: HashMap<(String, String), String>,
}

/// The host's discovery, cached.
pub(crate) struct Discovery {
    host: Host,
    customs: Customs,
    known: ArcSwapOption<Known>,
    /// One reader at a time; when it last read.
    reading: Mutex<Option<Instant>>,
}

/// What was read.
struct Known {
    resources: Resources,
    renamed: Arc<RenamedKinds>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        if found.custom && !found.namespaced {
            self.scopeless.insert((group.to_owned(), resource.to_owned()), found.kind.clone());
        }
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

// === impl Discovery ===

impl Discovery {
    /// `customs` says which custom objects have other names on the host.
    pub(crate) fn new(host: Host, customs: Customs) -> Self {
        Self { host, customs, known: ArcSwapOption::empty(), reading: Mutex::default() }
    }

    /// What the host says of a resource; `None` if it does not serve it.
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
        let recent = reading.is_some_and(|last| last.elapsed() < RETRY_INTERVAL);
        if !recent {
            let read = self.read().await;
            *reading = Some(Instant::now());
            match read {
                Ok(()) => {}
                // Of what was read before, a resource that is not there is not known to be served.
                Err(error) if self.known.load().is_none() => return Err(error),
                Err(error) => warn!(error = &error as &dyn std::error::Error, "discovery was not renewed"),
            }
        }
        drop(reading);
        Ok(self.last(resource))
    }

    /// What was read last of a resource.
    fn last(&self, resource: GroupVersionResource<'_>) -> Option<Resource> {
        self.known.load().as_ref().and_then(|known| known.resources.get(resource).cloned())
    }

    async fn read(&self) -> Result<(), DiscoveryError> {
        let resources = timeout(READ_TIMEOUT, read::read(&self.host)).await.map_err(|_| DiscoveryError::Timeout)??;
        self.known.store(Some(Arc::new(Known::new(resources, &self.customs))));
        Ok(())
    }

    /// How a custom resource without namespaces is served.
    pub(crate) fn custom(&self, group: &str, resource: &str) -> Custom {
        self.customs.of(group, resource)
    }

    /// Kinds of custom objects that have other names on the host, as far as they are known.
    pub(crate) fn renamed(&self) -> Arc<RenamedKinds> {
        self.known.load().as_ref().map(|known| Arc::clone(&known.renamed)).unwrap_or_default()
    }

    /// Reads again and again, so that names of such objects are known in whatever refers to them.
    pub(crate) async fn keep(&self) {
        loop {
            if let Err(error) = self.read().await {
                warn!(error = &error as &dyn std::error::Error, "discovery failed");
            }
            sleep(REFRESH_INTERVAL).await;
        }
    }
}

// === impl Known ===

impl Known {
    fn new(resources: Resources, customs: &Customs) -> Self {
        let renamed =
            resources.scopeless.iter().filter(|((group, resource), _)| customs.of(group, resource) == Custom::Renamed);
        let renamed = renamed.map(|((group, _), kind)| (group.clone(), kind.clone())).collect();
        Self { resources, renamed: Arc::new(renamed) }
    }
}

#[cfg(test)]
mod tests;
