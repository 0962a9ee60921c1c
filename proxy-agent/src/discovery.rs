//! Which resources the host serves, as far as a decision needs it: is it namespaced, and what is its kind.
//!
//! Read when first asked, and again when something unknown is asked for or a minute has passed.

mod read;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use kube_wire::gvr::GroupVersionResource;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::host::Host;
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
}

/// Resources by group, version and plural.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    by_name: HashMap<(String, String, String), Resource>,
}

/// The host's discovery, cached.
pub(crate) struct Discovery {
    host: Host,
    known: ArcSwapOption<(Resources, Instant)>,
    /// One reader at a time; when it last read.
    reading: Mutex<Option<Instant>>,
}

// === impl Resources ===

impl Resources {
    pub(crate) fn insert(&mut self, group: &str, version: &str, resource: &str, found: Resource) {
        self.by_name.insert((group.to_owned(), version.to_owned(), resource.to_owned()), found);
    }

    fn get(&self, resource: GroupVersionResource<'_>) -> Option<&Resource> {
        let GroupVersionResource { group, version, resource } = resource;
        self.by_name.get(&(group.to_owned(), version.to_owned(), resource.to_owned()))
    }
}

// === impl Discovery ===

impl Discovery {
    pub(crate) fn new(host: Host) -> Self {
        Self { host, known: ArcSwapOption::empty(), reading: Mutex::default() }
    }

    /// What the host says of a resource; `None` if it does not serve it.
    pub(crate) async fn resource(
        &self,
        resource: GroupVersionResource<'_>,
    ) -> Result<Option<Resource>, DiscoveryError> {
        if let Some(known) = self.known.load_full()
            && known.1.elapsed() < FRESH
            && let Some(found) = known.0.get(resource)
        {
            return Ok(Some(found.clone()));
        }
        let mut reading = self.reading.lock().await;
        let recent = reading.is_some_and(|last| last.elapsed() < AGAIN);
        if !recent {
            match read::read(&self.host).await {
                Ok(resources) => self.known.store(Some(Arc::new((resources, Instant::now())))),
                // What was true a minute ago is better than nothing.
                Err(error) if self.known.load().is_none() => return Err(error),
                Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "discovery not renewed"),
            }
            *reading = Some(Instant::now());
        }
        drop(reading);
        let known = self.known.load_full();
        Ok(known.and_then(|known| known.0.get(resource).cloned()))
    }
}
