//! Admission policies on the host. They apply to tokens of a virtual cluster that are used directly at the host, and
//! also to requests through the endpoint.
//!
//! The token of a service account is a token of the host, so its holder can bypass the endpoint. RBAC restricts the
//! token to the namespaces of the virtual cluster. There, it could still set the label of another cluster on the
//! Namespace, or assign a pod to a node of another site. Policies of the host refuse that (KEP-3488,
//! ValidatingAdmissionPolicy, since 1.30). If the host has MutatingAdmissionPolicy (KEP-3962, since 1.36), one policy
//! adds the node selector to every pod, including pods that a controller of the host creates for a custom resource.
//!
//! Requests through an endpoint have the group `vc:<cluster>:system:authenticated`, which only the agent sets. The
//! host's own controllers and administrators have rights in all namespaces. All other requests are refused.
//!
//! One set of policies serves all virtual clusters of the host, because an API server matches every request against
//! every policy. Annotations of the Namespaces hold the settings of each virtual cluster
//! ([`annotations`](crate::namespaces::annotations)).
//!
//! Level-triggered like [`provisioner`](crate::provisioner): policies are applied again when one changes, and several
//! agents may do the same work at once.
//!
//! Reading order: [`AdmissionPolicies`], `policies` (their content), `policy` (their form), `served` (what the host
//! supports), `probe` (whether they are in force), `changes` (changes by others), `former` (policies of earlier
//! versions), `state` (whether the policies are in force).

mod changes;
mod former;
mod policies;
mod policy;
mod probe;
mod served;
mod state;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ops::backoff::Backoff;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tracing::warn;

use crate::namespaces::{NamespaceEvent, Namespaces, Subscription};
use changes::Changes;
use host_client::api::{ApiError, HostApi, Selection};
use policies::Known;
pub use policy::LABEL;
use policy::{Kind, Object};
use probe::{Revision, Verdict};
use served::Served;
pub use state::PolicyState;
use state::{PolicyError, Verdicts};

/// The interval in which everything is compared again, even without a change.
const RESYNC_INTERVAL: Duration = Duration::from_secs(600);
/// The shortest time between two passes. Agents of two versions may overwrite each other's policies.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The pauses after failures.
const RETRY_BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(30));

/// Keeps the policies of the host in force. Clones share their state.
pub struct AdmissionPolicies<A> {
    shared: Arc<Shared<A>>,
}

/// The shortcomings of the host that the configuration accepts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted {
    /// The host does not enforce the policies.
    pub unsafe_direct_access: bool,
    /// The agent cannot verify whether the host enforces them.
    pub unverified_policies: bool,
}

struct Shared<A> {
    api: A,
    accepted: Accepted,
    namespaces: Arc<Namespaces>,
    state: Verdicts,
}

/// Whether the host serves the policies that the agent needs. [`is_enforced`] shows whether the host also enforces them.
pub async fn is_served(api: &impl HostApi) -> Result<bool, ApiError> {
    Ok(served::read(api).await?.validating.is_some())
}

/// Whether the host enforces the policies that an agent has written.
///
/// # Errors
/// If something else refuses the dry run that shows it, such as a webhook that cannot be reached.
pub async fn is_enforced(api: &impl HostApi) -> Result<bool, ApiError> {
    probe::is_enforced(api).await
}

// === impl AdmissionPolicies ===

impl<A: HostApi> AdmissionPolicies<A> {
    /// Does nothing until [`run`](Self::run).
    pub fn new(api: A, accepted: Accepted, namespaces: Arc<Namespaces>) -> Self {
        let state = Verdicts::new();
        Self { shared: Arc::new(Shared { api, accepted, namespaces, state }) }
    }

    /// The state of the policies.
    pub fn state(&self) -> PolicyState {
        self.shared.state.now()
    }

    /// Waits until clients may be served.
    pub async fn in_force(&self) {
        self.shared.state.wait_for(|state| state.admits().is_ok()).await;
    }

    /// The state of the policies, after the first verdict. Shortly after the start, there is no verdict yet, and
    /// clients wait instead of being refused.
    pub async fn first_state(&self) -> PolicyState {
        self.shared.state.first().await
    }

    /// Installs the policies and keeps them in force, forever.
    pub async fn run(self) {
        let namespaces = &self.shared.namespaces;
        let mut events = namespaces.subscribe();
        namespaces.synced().await;
        let mut changes = Changes::new(self.shared.api.clone());
        let mut failures = RETRY_BACKOFF;
        let mut removal = Instant::now();
        loop {
            let known = self.known();
            let is_well = match self.install(&known).await {
                Ok((served, revision)) => {
                    changes.follow(served);
                    let is_well = self.look(served, &revision).await;
                    // Not on every change: an agent of an earlier version would install them again at once.
                    if is_well && Instant::now() >= removal {
                        self.remove_former(served).await;
                        removal = Instant::now() + RESYNC_INTERVAL;
                    }
                    is_well
                }
                Err(error) => {
                    self.shared.state.fail(&error);
                    false
                }
            };
            let again = if is_well {
                failures.reset();
                RESYNC_INTERVAL
            } else {
                failures.fail()
            };
            tokio::select! {
                () = changes.next() => sleep(MIN_INTERVAL).await,
                () = self.changed(&mut events, &known) => {}
                () = sleep(again) => {}
            }
        }
    }

    /// Writes the policies that differ. Returns what the host supports, and the revision of the written policies.
    async fn install(&self, known: &Known) -> Result<(Served, String), PolicyError> {
        let api = &self.shared.api;
        let served = served::read(api).await?;
        if served.validating.is_none() && !self.shared.accepted.unsafe_direct_access {
            return Err(PolicyError::Unserved);
        }
        let stored = stored(api, served).await?;
        let mut revision = Revision::default();
        for object in policies::all(served, known) {
            revision.add(&*applied(api, &object, &stored).await?);
        }
        let revision = revision.finish();
        if let Some(version) = served.validating {
            for object in probe::objects(version, &revision) {
                applied(api, &object, &stored).await?;
            }
        }
        Ok((served, revision))
    }

    /// Verifies whether the host enforces the written policies. Returns whether all is well.
    async fn look(&self, served: Served, revision: &str) -> bool {
        let verdict = match served.validating {
            Some(_) => probe::probe(&self.shared.api, revision).await,
            None => Verdict::Idle,
        };
        let accepted = self.shared.accepted;
        let now = match verdict {
            Verdict::Enforced => PolicyState::Shut { guards: served.mutating.is_some() },
            Verdict::Unknown(_) if accepted.unverified_policies => PolicyState::Unverified,
            Verdict::Idle | Verdict::Unknown(_) if accepted.unsafe_direct_access => PolicyState::Open,
            Verdict::Idle => PolicyState::Failed(PolicyError::Idle.to_string().into()),
            Verdict::Unknown(error) => PolicyState::Failed(PolicyError::Unknown(error).to_string().into()),
        };
        let is_well = !matches!(now, PolicyState::Failed(_));
        self.shared.state.tell(now);
        is_well
    }

    async fn remove_former(&self, served: Served) {
        if let Err(error) = former::remove(&self.shared.api, served).await {
            let error: &dyn std::error::Error = &error;
            warn!(error, "cannot remove admission policies of an earlier version");
        }
    }

    /// What the root namespaces say about their virtual clusters.
    fn known(&self) -> Known {
        let namespaces = &self.shared.namespaces;
        Known { node_labels: namespaces.node_labels(), full: namespaces.full() }
    }

    /// Waits until the root namespaces say something else.
    async fn changed(&self, events: &mut Subscription, known: &Known) {
        loop {
            match events.next().await {
                Some(NamespaceEvent::Changed(host)) if !host.is_root() => continue,
                Some(NamespaceEvent::Changed(_) | NamespaceEvent::Everything) => {}
                None => std::future::pending().await,
            }
            if self.known() != *known {
                return;
            }
        }
    }
}

/// The policies and bindings on the host, by path.
async fn stored(api: &impl HostApi, served: Served) -> Result<HashMap<String, Value>, ApiError> {
    let mut stored = HashMap::new();
    let selection = Selection::labelled(LABEL);
    let kinds = [(served.validating, Kind::Validating), (served.mutating, Kind::Mutating)];
    for (version, kind) in kinds.into_iter().filter_map(|(version, kind)| Some((version?, kind))) {
        for collection in kind.collections(version) {
            let mut pages = api.pages(&collection, &selection);
            while let Some(page) = pages.next::<Value>().await? {
                let named = |object: Value| {
                    let name = object["metadata"]["name"].as_str()?;
                    Some((format!("{collection}/{name}"), object))
                };
                stored.extend(page.into_iter().filter_map(named));
            }
        }
    }
    Ok(stored)
}

/// The object as the host stores it, after a write if it differs.
async fn applied<'s>(
    api: &impl HostApi,
    object: &Object,
    stored: &'s HashMap<String, Value>,
) -> Result<Cow<'s, Value>, ApiError> {
    let path = object.path.split('?').next().unwrap_or_default();
    match stored.get(path).filter(|stored| object.is_stored_as(stored)) {
        Some(stored) => Ok(Cow::Borrowed(stored)),
        None => api.apply(&object.path, &object.body).await.map(Cow::Owned),
    }
}

impl<A> Clone for AdmissionPolicies<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for AdmissionPolicies<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionPolicies").field("state", &self.shared.state.now()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
