//! Whether the policies are in force.

use std::sync::Arc;
use std::time::Duration;

use host_client::api::ApiError;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

/// The time that clients wait for the first verdict.
const FIRST_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of the policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyState {
    /// Not checked yet, or not in force yet.
    Pending,
    /// The host enforced the policies when the agent checked it. An API server loads a changed policy after about a
    /// second (apiserver's admission/plugin/policy/generic), and enforces the previous one until then.
    Shut {
        /// Whether the host also adds the guard to pods.
        guards: bool,
    },
    /// The policies are installed. The agent cannot verify that the host enforces them, and the configuration accepts
    /// that.
    Unverified,
    /// The host does not support or does not enforce the policies, and the configuration accepts that.
    Open,
    /// Installing the policies failed, for this reason. The agent tries again.
    Failed(Arc<str>),
}

/// Why the policies are not in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum PolicyError {
    #[error(transparent)]
    Host(#[from] ApiError),
    #[error(
        "the host cluster has no ValidatingAdmissionPolicy (Kubernetes 1.30 and newer have it), so a token of a \
         virtual cluster can leave it when it is used directly at the host; if nobody but you can reach the host's \
         API server, accept that with `unsafeDirectAccess: true` below `host`"
    )]
    Unserved,
    #[error(
        "the host cluster has admission policies, but does not enforce them (is ValidatingAdmissionPolicy in \
         --disable-admission-plugins of its API server?), so a token of a virtual cluster can leave it when it is \
         used directly at the host; if nobody but you can reach the host's API server, accept that with \
         `unsafeDirectAccess: true` below `host`"
    )]
    Idle,
    #[error(
        "the host cluster refuses the dry run by which the agent verifies that the admission policies are in force \
         ({0}): repair or exempt what refuses it, such as a webhook that the reason names; if you know that the \
         policies are in force, set `unverifiedPolicies: true` below `host`"
    )]
    Unknown(ApiError),
}

/// The current state, which is logged when it changes.
#[derive(Debug)]
pub(super) struct Verdicts(watch::Sender<PolicyState>);

// === impl PolicyState ===

impl PolicyState {
    /// Whether clients may be served; if not, why.
    pub fn admits(&self) -> Result<(), &str> {
        match self {
            Self::Shut { .. } | Self::Unverified | Self::Open => Ok(()),
            Self::Pending => Err("the host cluster does not enforce its policies yet"),
            Self::Failed(reason) => Err(reason),
        }
    }
}

// === impl Verdicts ===

impl Verdicts {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(PolicyState::Pending))
    }

    pub(super) fn now(&self) -> PolicyState {
        self.0.borrow().clone()
    }

    /// The state after the first verdict, or at least after a few seconds.
    pub(super) async fn first(&self) -> PolicyState {
        // On a timeout, the current state is returned.
        let _ = timeout(FIRST_CHECK_TIMEOUT, self.wait_for(|state| *state != PolicyState::Pending)).await;
        self.now()
    }

    /// Waits until the state satisfies a condition.
    pub(super) async fn wait_for(&self, is_so: impl FnMut(&PolicyState) -> bool) {
        let mut state = self.0.subscribe();
        state.wait_for(is_so).await.expect("the sender is borrowed from self");
    }

    /// Policies that are in force stay in force while the host cannot be reached.
    pub(super) fn fail(&self, error: &PolicyError) {
        let reason: Arc<str> = error.to_string().into();
        if let PolicyState::Shut { .. } = self.now() {
            warn!(%reason, "cannot check the host's admission policies");
        } else {
            self.tell(PolicyState::Failed(reason));
        }
    }

    pub(super) fn tell(&self, now: PolicyState) {
        self.0.send_if_modified(|state| {
            if *state == now {
                return false;
            }
            match &now {
                PolicyState::Failed(reason) => warn!(%reason, "the host's admission policies are not in force"),
                PolicyState::Open => warn!(
                    "the host does not enforce the admission policies, which unsafeDirectAccess accepts: anybody who \
                     has a token of a virtual cluster and reaches the host's API server can leave the virtual cluster"
                ),
                PolicyState::Unverified => warn!(
                    "cannot verify that the host enforces the admission policies, which unverifiedPolicies accepts"
                ),
                PolicyState::Shut { guards } => info!(guards, "the host's admission policies are in force"),
                PolicyState::Pending => {}
            }
            *state = now;
            true
        });
    }
}
