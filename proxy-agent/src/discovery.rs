//! Which resources the host serves, as far as a decision needs it: is it namespaced, what is its kind, and is it custom.
//!
//! Read when first asked, and again when something unknown is asked for or a minute has passed.

mod read;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use kube_wire::gvr::GroupVersionResource;
use rewrite::mapping::RenamedKinds;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::host::Host;
use crate::policy::{Custom, Customs};
pub(crate) use read::DiscoveryError;

/// Installed CRDs become known this long after their first use was refused, at the latest.
const FRESH: Duration = Duration::from_secs(60);

/// Unknown resources are looked for this often, whoever asks for them.
const AGAIN: Duration = Duration::from_secs(1);

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
    since: Instant,
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
        if let Some(known) = self.known.load_full()
            && known.since.elapsed() < FRESH
            && let Some(found) = known.resources.get(resource)
        {
            return Ok(Some(found.clone()));
        }
        let mut reading = self.reading.lock().await;
        let recent = reading.is_some_and(|last| last.elapsed() < AGAIN);
        if !recent {
            match read::read(&self.host).await {
                Ok(resources) => self.known.store(Some(Arc::new(Known::new(resources, &self.customs)))),
                // What was true a minute ago is better than nothing.
                Err(error) if self.known.load().is_none() => return Err(error),
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "discovery not renewed"),
            }
            *reading = Some(Instant::now());
        }
        drop(reading);
        let known = self.known.load_full();
        Ok(known.and_then(|known| known.resources.get(resource).cloned()))
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
        let nothing = GroupVersionResource { group: "", version: "", resource: "" };
        loop {
            if let Err(error) = self.resource(nothing).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "discovery failed");
            }
            sleep(FRESH).await;
        }
    }
}

// === impl Known ===

impl Known {
    fn new(resources: Resources, customs: &Customs) -> Self {
        let renamed =
            resources.scopeless.iter().filter(|((group, resource), _)| customs.of(group, resource) == Custom::Renamed);
        let renamed = renamed.map(|((group, _), kind)| (group.clone(), kind.clone())).collect();
        Self { resources, renamed: Arc::new(renamed), since: Instant::now() }
    }
}
