//! Puts a client's RBAC write into force before the client gets the response.
//!
//! If this future is dropped or fails, the reconciler does the same. It is notified through `dirty`, because the
//! catalog already has the change, so that the watch event no longer shows one.

use std::sync::Arc;
use std::time::Duration;

use host_client::api::{ApiError, HostApi};
use rewrite::{ClusterName, HostNamespace};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::catalog::{MAX_CONCURRENT, SharedCatalog};
use super::dirty::DirtyClusters;
use super::found::Found;
use super::mirrors::{Mirrors, Progress};
use super::paths;
use super::reconcile_error::ReconcileError;
use super::roots::{bindings, labelled_binding};
use crate::namespaces::{Member, Namespaces};

/// The time to write mirrors. After it, the client gets the response anyway.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of attempts to read a binding if the host does not answer.
const READS: u32 = 3;
/// The pause between them.
const RETRY_INTERVAL: Duration = Duration::from_millis(64);

/// Bindings that clients have just written.
pub(super) struct WrittenBindings<A> {
    pub(super) api: A,
    pub(super) namespaces: Arc<Namespaces>,
    pub(super) catalog: SharedCatalog,
    pub(super) dirty: Arc<DirtyClusters>,
    pub(super) mirrors: Arc<Mirrors<A>>,
}

/// The mirrors to reconcile in each namespace.
#[derive(Clone)]
enum Change {
    /// That of this binding.
    One(String),
    /// That of this binding, which was just read as not found. The watch may deliver an older version of it later.
    Gone(String),
    All,
}

// === impl WrittenBindings ===

impl<A: HostApi> WrittenBindings<A> {
    /// Reconciles the mirrors of a ClusterRoleBinding that was written or deleted with its current state: another
    /// client may have changed it at the same time, and a deleted one stays in force until its finalizers are gone.
    pub(super) async fn one(&self, cluster: &ClusterName, name: &str) {
        let Some(path) = paths::binding(&HostNamespace::root(cluster), name) else { return };
        let known = self.catalog.lock().versions(cluster);
        let mut answer = self.api.read::<Found>(&path).await;
        for _ in 1..READS {
            if answer.as_ref().err().is_none_or(ApiError::is_not_found) {
                break;
            }
            sleep(RETRY_INTERVAL).await;
            answer = self.api.read(&path).await;
        }
        let change = match answer {
            Ok(found) => match labelled_binding(&self.api, cluster, found).await {
                Ok(binding) => {
                    binding.map(|binding| self.catalog.lock().read(cluster, &binding));
                    Change::One(name.to_owned())
                }
                Err(error) => return self.postpone(cluster, &error),
            },
            Err(error) if error.is_not_found() => {
                self.catalog.lock().missing(cluster, name, &known);
                Change::Gone(name.to_owned())
            }
            Err(error) => return self.postpone(cluster, &error.into()),
        };
        self.everywhere(cluster, &change).await;
    }

    /// The control loop does the work. The watch may not show the change: the binding may have no label.
    fn postpone(&self, cluster: &ClusterName, error: &ReconcileError) {
        let error: &dyn std::error::Error = error;
        warn!(error, %cluster, "cannot update the copies of ClusterRoleBindings now; the agent updates them later");
        self.dirty.mark_all(cluster);
    }

    /// Lists ClusterRoleBindings and waits until they are mirrored. Call it after a request that wrote or deleted ones
    /// whose names only the host knows.
    pub(super) async fn all(&self, cluster: &ClusterName) {
        let known = self.catalog.lock().versions(cluster);
        let Some(places) = self.catalog.lock().places(cluster) else { return };
        let listing = async {
            // Only one list of this cluster is in memory at a time.
            let _places = places.acquire_many(MAX_CONCURRENT).await;
            bindings(&self.api, cluster).await
        };
        match timeout(WRITE_TIMEOUT, listing).await.unwrap_or(Err(ApiError::TimedOut.into())) {
            Ok(bindings) => _ = self.catalog.lock().listed(cluster, &bindings, &known),
            Err(error) => return self.postpone(cluster, &error),
        }
        self.everywhere(cluster, &Change::All).await;
    }

    async fn everywhere(&self, cluster: &ClusterName, change: &Change) {
        let Some(places) = self.catalog.lock().places(cluster) else { return };
        let pending_write = self.dirty.begin(cluster);
        let members = self.namespaces.members(cluster);
        let work = async {
            let mut working = JoinSet::new();
            let mut is_done = true;
            for member in members {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return false };
                let (mirrors, change) = (Arc::clone(&self.mirrors), change.clone());
                working.spawn(async move {
                    let _place = place;
                    let done = change.make(&mirrors, &member).await;
                    if let Err(error) = &done {
                        let error: &dyn std::error::Error = error;
                        warn!(error, namespace = %member.host, "cannot update a mirror yet");
                    }
                    done.is_ok()
                });
            }
            while let Some(done) = working.join_next().await {
                is_done &= matches!(done, Ok(true));
            }
            is_done
        };
        match timeout(WRITE_TIMEOUT, work).await {
            Ok(true) => pending_write.finish(),
            Ok(false) => {}
            Err(_) => warn!(%cluster, "mirrors were not written in time"),
        }
    }
}

// === impl Change ===

impl Change {
    /// Reconciles these mirrors of one namespace.
    async fn make(&self, mirrors: &Mirrors<impl HostApi>, member: &Member) -> Result<(), ReconcileError> {
        match self {
            Self::One(binding) => mirrors.reconcile_one(member, binding, false).await,
            Self::Gone(binding) => mirrors.reconcile_one(member, binding, true).await,
            Self::All => {
                while mirrors.reconcile(&member.host).await? == Progress::More {}
                Ok(())
            }
        }
    }
}
