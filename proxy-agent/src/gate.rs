//! The second gate: admission policies on the host, for those who hold a token of a virtual cluster and use it straight
//! against the host.
//!
//! A service account's token is the host's own. Whoever holds one can leave the endpoint aside; RBAC still keeps him in
//! the namespaces of the virtual cluster, but there he could give his Namespace the label of another cluster, or a pod
//! the node of another site. Policies of the host refuse that (KEP-3488, ValidatingAdmissionPolicy, since 1.30), and
//! where the host has MutatingAdmissionPolicy (KEP-3962, since 1.36) one puts the guard into every pod, also into those
//! that an operator of the host makes out of a custom resource.
//!
//! What comes through an endpoint carries `vc:<cluster>:system:authenticated`, a group that only the agent gives. What
//! the host's own controllers and administrators do, they may do in every namespace. Everybody else is stopped.
//!
//! Level-triggered like [`root`](crate::root): policies are applied again when one changes, and several agents may do the
//! same work at once.
//!
//! Reading order: [`Gate`], `policies` (what stands on the host), `policy` (how it is written), `served` (what of it the
//! host knows), `probe` (whether it is in force), `changes` (that somebody touched it).

mod changes;
mod policies;
mod policy;
mod probe;
mod served;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rewrite::{ClusterName, Guard};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;
use changes::Changes;
use probe::Verdict;
use served::Served;

/// The label of everything here.
const LABEL: &str = "atoll.dev/gate";

/// After this long everything is applied again, whatever is told.
const PERIOD: Duration = Duration::from_secs(600);
/// Two passes are at least so far apart: agents of two versions may not agree on what should be there.
const PAUSE: Duration = Duration::from_secs(1);
/// How long clients wait for the first look.
const FIRST_LOOK: Duration = Duration::from_secs(5);
/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Keeps the policies of one agent's virtual clusters in force. Clones are the same.
pub struct Gate<A> {
    shared: Arc<Shared<A>>,
}

struct Shared<A> {
    api: A,
    accepted: Accepted,
    slices: watch::Sender<Arc<[Slice]>>,
    standing: watch::Sender<BTreeMap<ClusterName, Standing>>,
}

/// Which shortcomings of the host the configuration accepts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accepted {
    /// The host does not enforce the policies.
    pub unsafe_direct_access: bool,
    /// The host does not let the agent find out whether it enforces them.
    pub unverified_policies: bool,
}

/// What a virtual cluster's policies are made of.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Whose.
    pub cluster: ClusterName,
    /// What keeps its pods on its nodes.
    pub guard: Arc<Guard>,
}

/// How far the policies of one virtual cluster are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not looked at yet, or not in force yet.
    Pending,
    /// The host enforces the policies, as far as they were there when it was tried: a change of a policy takes it about a
    /// second (apiserver's admission/plugin/policy/generic), in which the one before holds.
    Shut {
        /// Whether the host also puts the guard into pods.
        guards: bool,
    },
    /// The policies are there. Whether the host enforces them cannot be found out, and the configuration accepts that.
    Unverified,
    /// The host has no such policies or does not enforce them, and the configuration says that this is accepted.
    Open,
    /// They could not be made, and why; it is tried again.
    Failed(Arc<str>),
}

/// Why the policies are not there.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Host(#[from] ApiError),
    #[error(
        "the host cluster has no ValidatingAdmissionPolicy (Kubernetes 1.30 or newer has), so a token of a virtual \
         cluster could be used straight against it to leave the slice; if nobody but you can reach its API server, \
         accept that with `unsafeDirectAccess: true` below `host`"
    )]
    Unserved,
    #[error(
        "the host cluster has admission policies and does not enforce them (is ValidatingAdmissionPolicy in \
         --disable-admission-plugins of its API server?), so a token of a virtual cluster could be used straight against \
         it to leave the slice; if nobody but you can reach its API server, accept that with `unsafeDirectAccess: true` \
         below `host`"
    )]
    Idle,
    #[error(
        "the host cluster refuses the dry run by which the agent finds out whether admission policies are in force \
         ({0}): let it pass, for example through the webhook that the reason names; if the policies are known to be in force, \
         say so with `unverifiedPolicies: true` below `host`"
    )]
    Unknown(ApiError),
}

// === impl Gate ===

impl<A: HostApi> Gate<A> {
    /// For these virtual clusters. Does nothing until [`run`](Self::run).
    pub fn new(api: A, accepted: Accepted, slices: Vec<Slice>) -> Self {
        let standing = slices.iter().map(|slice| (slice.cluster.clone(), Standing::Pending)).collect();
        let (slices, standing) = (watch::Sender::new(slices.into()), watch::Sender::new(standing));
        Self { shared: Arc::new(Shared { api, accepted, slices, standing }) }
    }

    /// From now on, for exactly these. The policies of others stay, for as long as their namespaces may.
    pub fn serve(&self, slices: Vec<Slice>) {
        self.shared.standing.send_modify(|standing| {
            standing.retain(|cluster, _| slices.iter().any(|slice| slice.cluster == *cluster));
            for slice in &slices {
                standing.entry(slice.cluster.clone()).or_insert(Standing::Pending);
            }
        });
        self.shared.slices.send_replace(slices.into());
    }

    /// How far the policies of this virtual cluster are; `None` if it is not one of this agent's.
    pub fn standing(&self, cluster: &ClusterName) -> Option<Standing> {
        self.shared.standing.borrow().get(cluster).cloned()
    }

    /// The same, once the policies of this virtual cluster were looked at; a moment after the agent has started they were
    /// not, and its clients had better wait than be refused.
    pub async fn looked_at(&self, cluster: &ClusterName) -> Option<Standing> {
        match self.standing(cluster) {
            Some(Standing::Pending) => {
                let mut standing = self.shared.standing.subscribe();
                let looked = standing.wait_for(|all| all.get(cluster) != Some(&Standing::Pending));
                // In vain or not, what is known then is the answer.
                let _ = timeout(FIRST_LOOK, looked).await;
                self.standing(cluster)
            }
            known => known,
        }
    }

    /// Makes the policies and keeps them, for ever.
    pub async fn run(self) {
        let mut slices = self.shared.slices.subscribe();
        let mut changes = Changes::new(self.shared.api.clone());
        let mut pause = PAUSE;
        loop {
            let wanted = Arc::clone(&slices.borrow_and_update());
            let is_well = match self.install(&wanted).await {
                Ok(served) => {
                    changes.follow(served);
                    self.look(&wanted, served).await
                }
                Err(trouble) => {
                    self.fail(&wanted, &trouble);
                    false
                }
            };
            pause = if is_well { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            let again = if is_well { PERIOD } else { pause };
            tokio::select! {
                changed = slices.changed() => changed.expect("the sender is borrowed from self"),
                () = changes.next() => sleep(PAUSE).await,
                () = sleep(again) => {}
            }
        }
    }

    async fn install(&self, slices: &[Slice]) -> Result<Served, Trouble> {
        let api = &self.shared.api;
        let served = served::read(api).await?;
        if served.validating.is_none() && !self.shared.accepted.unsafe_direct_access {
            return Err(Trouble::Unserved);
        }
        for object in policies::all(served, slices) {
            api.apply(&object.path, &object.body).await?;
        }
        Ok(served)
    }

    /// Whether the host does by now what was installed. Returns whether all is well.
    async fn look(&self, slices: &[Slice], served: Served) -> bool {
        // Beside each other: one that is not enforced takes all the time there is.
        let looking: JoinSet<bool> = slices
            .iter()
            .map(|slice| {
                let (gate, cluster) = (self.clone(), slice.cluster.clone());
                async move { gate.look_at(&cluster, served).await }
            })
            .collect();
        looking.join_all().await.into_iter().all(|is_well| is_well)
    }

    async fn look_at(&self, cluster: &ClusterName, served: Served) -> bool {
        let verdict = match served.validating {
            Some(_) => probe::probe(&self.shared.api, cluster).await,
            None => Verdict::Idle,
        };
        let accepted = self.shared.accepted;
        let now = match verdict {
            Verdict::Enforced => Standing::Shut { guards: served.mutating.is_some() },
            Verdict::Unknown(_) if accepted.unverified_policies => Standing::Unverified,
            Verdict::Idle | Verdict::Unknown(_) if accepted.unsafe_direct_access => Standing::Open,
            Verdict::Idle => Standing::Failed(Trouble::Idle.to_string().into()),
            Verdict::Unknown(error) => Standing::Failed(Trouble::Unknown(error).to_string().into()),
        };
        let is_well = !matches!(now, Standing::Failed(_));
        self.tell(cluster, now);
        is_well
    }

    /// What stands on the host stays there while it cannot be looked at.
    fn fail(&self, slices: &[Slice], trouble: &Trouble) {
        let reason: Arc<str> = trouble.to_string().into();
        for Slice { cluster, .. } in slices {
            if let Some(Standing::Shut { .. }) = self.standing(cluster) {
                warn!(%cluster, %reason, "the host's policies could not be looked at");
            } else {
                self.tell(cluster, Standing::Failed(Arc::clone(&reason)));
            }
        }
    }

    fn tell(&self, cluster: &ClusterName, now: Standing) {
        self.shared.standing.send_if_modified(|standing| {
            let Some(before) = standing.get_mut(cluster).filter(|before| **before != now) else { return false };
            match &now {
                Standing::Failed(reason) => warn!(%cluster, %reason, "the host's policies are not in force"),
                Standing::Open => warn!(
                    %cluster,
                    "the host enforces no admission policies, which unsafeDirectAccess accepts: whoever has a token of this \
                     cluster and reaches the host's API server can leave the slice"
                ),
                Standing::Unverified => warn!(
                    %cluster,
                    "nobody knows whether the host enforces its admission policies, which unverifiedPolicies accepts"
                ),
                Standing::Shut { guards } => info!(%cluster, guards, "the host's policies are in force"),
                Standing::Pending => {}
            }
            *before = now;
            true
        });
    }
}

impl<A> Clone for Gate<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A> fmt::Debug for Gate<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("standing", &*self.shared.standing.borrow()).finish_non_exhaustive()
    }
}

// === impl Standing ===

impl Standing {
    /// Whether clients may be served; if not, why.
    pub fn admits(&self) -> Result<(), &str> {
        match self {
            Self::Shut { .. } | Self::Unverified | Self::Open => Ok(()),
            Self::Pending => Err("the host cluster does not enforce its policies yet"),
            Self::Failed(reason) => Err(reason),
        }
    }
}

#[cfg(test)]
mod tests;
