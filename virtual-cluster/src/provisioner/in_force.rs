//! Puts a client's RBAC write into force before the client gets the response.
//!
//! If this future is dropped or fails, the reconciler does the same. It is notified through `dirty`, because the
//! catalog already has the change, so that the watch event no longer shows one.
//!
//! RBAC reads from one cache per kind, and each cache receives changes in order. So the agent writes a *canary* last: a
//! ClusterRole and a binding to it, with a mark that is new each time. When the host allows what the canary grants, all
//! earlier writes are in force in that API server, too. Other API servers may lag by some milliseconds.

use std::sync::Arc;
use std::time::Duration;

use rewrite::{ClusterName, HostNamespace};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::binding::{Binding, RBAC};
use super::catalog::AT_ONCE;
use super::found::Found;
use super::mirrors::Progress;
use super::{INTERNAL_LABEL, MIRROR_PREFIX, Provisioner, ReconcileError, paths};
use crate::namespaces::{Member, Phase};
use host_client::api::HostApi;
use host_client::api::{ApiError, Selection};

/// The name of the canary's RoleBinding, and the end of the name of its ClusterRole.
const CANARY: &str = "atoll:canary";

/// The time to write mirrors. After it, the client gets the response anyway.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The time to wait for a canary.
const IN_FORCE_TIMEOUT: Duration = Duration::from_secs(1);
/// The number of attempts to read a binding if the host does not answer.
const READS: u32 = 3;
/// The first pause between reviews. It doubles each time.
const INITIAL_BACKOFF: Duration = Duration::from_millis(2);
/// The maximum pause.
const MAX_BACKOFF: Duration = Duration::from_millis(64);

/// The mirrors to reconcile in each namespace.
#[derive(Clone)]
enum Change {
    /// That of this binding.
    One(String),
    /// That of this binding, which was just read as not found. The watch may deliver an older version of it later.
    Gone(String),
    All,
}

// === impl Provisioner ===

impl<A: HostApi> Provisioner<A> {
    /// Reconciles the mirrors of a ClusterRoleBinding that was written or deleted with its current state: another
    /// client may have changed it at the same time, and a deleted one stays in force until its finalizers are gone.
    pub async fn written(&self, cluster: &ClusterName, name: &str) {
        let Some(path) = paths::binding(&HostNamespace::root(cluster), name) else { return };
        let known = self.catalog().known(cluster);
        let mut answer = self.shared.api.read::<Found>(&path).await;
        for _ in 1..READS {
            if answer.as_ref().err().is_none_or(ApiError::is_not_found) {
                break;
            }
            sleep(MAX_BACKOFF).await;
            answer = self.shared.api.read(&path).await;
        }
        let change = match answer {
            Ok(found) => {
                Binding::of(&found).map(|found| self.catalog().read(cluster, &found));
                Change::One(name.to_owned())
            }
            Err(error) if error.is_not_found() => {
                self.catalog().missing(cluster, name, &known);
                Change::Gone(name.to_owned())
            }
            Err(error) => {
                let error: &dyn std::error::Error = &error;
                return warn!(error, %cluster, "the mirrors of a binding are updated later, by its watch");
            }
        };
        self.everywhere(cluster, &change).await;
    }

    /// Lists ClusterRoleBindings and waits until they are mirrored. Call it after a request that wrote or deleted ones
    /// whose names only the host knows.
    pub async fn look_again(&self, cluster: &ClusterName) {
        let root = HostNamespace::root(cluster);
        let known = self.catalog().known(cluster);
        let Some(places) = self.catalog().places(cluster) else { return };
        let listing = async {
            // Only one list of this cluster is in memory at a time.
            let _places = places.acquire_many(AT_ONCE).await;
            self.bindings(&root).await
        };
        match timeout(WRITE_TIMEOUT, listing).await.unwrap_or(Err(ApiError::TimedOut)) {
            Ok(bindings) => self.catalog().listed(cluster, &bindings, &known),
            Err(error) => {
                warn!(error = &error as &dyn std::error::Error, %cluster, "bindings are mirrored later by their watch");
                return;
            }
        }
        self.everywhere(cluster, &Change::All).await;
    }

    async fn bindings(&self, root: &HostNamespace) -> Result<Vec<Binding>, ApiError> {
        let (path, everything) = (paths::bindings(root), Selection::default());
        let mut pages = self.shared.api.pages(&path, &everything);
        let mut bindings = Vec::new();
        while let Some(page) = pages.next::<Found>().await? {
            bindings.extend(page.iter().filter_map(Binding::of));
        }
        Ok(bindings)
    }

    /// Waits for at most a second until all earlier writes to the host are in force.
    pub async fn in_force(&self, cluster: &ClusterName) {
        match timeout(IN_FORCE_TIMEOUT, self.canary(cluster)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                let error: &dyn std::error::Error = &error;
                warn!(error, %cluster, "cannot check whether new rights are in force");
            }
            Err(_) => debug!(%cluster, "new rights were not in force in time"),
        }
    }

    async fn everywhere(&self, cluster: &ClusterName, change: &Change) {
        let Some(places) = self.catalog().places(cluster) else { return };
        let pending_write = self.shared.dirty.begin(cluster);
        let members = self.shared.namespaces.members(cluster);
        let work = async {
            let mut working = JoinSet::new();
            let mut is_done = true;
            for member in members {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return false };
                let (provisioner, change, cluster) = (self.clone(), change.clone(), cluster.clone());
                working.spawn(async move {
                    let _place = place;
                    let done = provisioner.make(&cluster, &member, &change).await;
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

    /// Reconciles mirrors of one namespace with the catalog, as it is when this future is first polled.
    async fn make(&self, cluster: &ClusterName, member: &Member, change: &Change) -> Result<(), ReconcileError> {
        let host = &member.host;
        let (binding, wanted) = match change {
            Change::One(binding) => (binding, self.catalog().mirror(cluster, binding)),
            Change::Gone(binding) => (binding, None),
            Change::All => {
                while self.mirror(host).await? == Progress::More {}
                return Ok(());
            }
        };
        let name = format!("{MIRROR_PREFIX}{binding}");
        match (member.phase, wanted) {
            (Phase::Active, Some(wanted)) => self.ensure_binding(host, &wanted).await,
            (Phase::Active, None) => self.remove_mirror(cluster, host, &name).await,
            (Phase::Terminating, wanted) => self.revise_ending(cluster, host, &name, wanted.as_deref()).await,
        }
    }

    async fn canary(&self, cluster: &ClusterName) -> Result<(), ReconcileError> {
        let api = &self.shared.api;
        let mark = format!("{:016x}", fastrand::u64(..));
        let (name, user) = (format!("vc:{cluster}:{CANARY}"), format!("vc:{cluster}:{CANARY}:{mark}"));
        let root = HostNamespace::root(cluster);
        let labels = json!({INTERNAL_LABEL: "true"});
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": labels},
            "rules": [{"verbs": ["get"], "apiGroups": ["atoll.dev"], "resources": ["canaries"], "resourceNames": [mark]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": CANARY, "namespace": root.as_str(), "labels": labels},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        });
        let Some(binding_path) = paths::binding(&root, CANARY) else { return Ok(()) };
        // An update without a resource version overwrites an object, or creates it.
        api.update(&paths::cluster_role(&name), &role).await?;
        api.update(&binding_path, &binding).await?;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {
                "namespace": root.as_str(), "verb": "get", "group": "atoll.dev", "resource": "canaries", "name": mark,
            }},
        });
        let mut pause = INITIAL_BACKOFF;
        loop {
            if api.create(paths::REVIEWS, &review).await?["status"]["allowed"] == true {
                return Ok(());
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_BACKOFF);
        }
    }
}
