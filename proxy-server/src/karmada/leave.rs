//! Removes a member: first from Karmada, which empties it while it can be reached, then Karmada's accounts in the
//! member.

use std::time::Duration;

use protocol::ClusterName;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::api::{Api, Route};
use super::member;
use super::plane::{Deletion, Plane};

/// The time limit for Karmada to delete a Cluster, while the endpoint stays open. Karmada deletes the Cluster of a member
/// that it cannot reach after about 40 s.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(180);

/// The pause between two checks.
const PAUSE: Duration = Duration::from_secs(1);

/// A cluster that leaves.
pub(super) struct Leaver<'a, M> {
    pub(super) name: &'a ClusterName,
    /// `None` if this process no longer serves it.
    pub(super) in_member: Option<&'a Api<M>>,
    /// Whether this process has seen it as a member. Otherwise, the accounts in it may belong to somebody else.
    pub(super) was_ours: bool,
}

// === impl Leaver ===

impl<M: Route> Leaver<'_, M> {
    /// Completes when the cluster is no longer a member, or after a time limit.
    pub(super) async fn leave<P: Route>(self, plane: &Plane<P>, kept_by: &str) {
        info!("leaving Karmada");
        let end = Instant::now() + LEAVE_TIMEOUT;
        let Some(was_ours) = self.deleted(plane, kept_by, end).await else { return };
        if !was_ours {
            return info!("not joined to Karmada by this proxy-server, so its objects stay");
        }
        let Some(in_member) = self.in_member else {
            return info!("left Karmada; Karmada's accounts in the cluster stay: this proxy-server does not serve it");
        };
        loop {
            match member::clean(in_member, self.name).await {
                Ok(()) => return info!("left Karmada"),
                Err(error) if Instant::now() >= end => {
                    let error: &dyn std::error::Error = &error;
                    return warn!(error, "left Karmada, but cannot delete Karmada's accounts in the cluster");
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Waits until Karmada has deleted the Cluster. Returns whether it was ours, or `None` after the time limit.
    async fn deleted<P: Route>(&self, plane: &Plane<P>, kept_by: &str, end: Instant) -> Option<bool> {
        let mut was_ours = self.was_ours;
        loop {
            match plane.delete(self.name, kept_by).await {
                Ok(Deletion::Complete) => return Some(was_ours),
                Ok(Deletion::NotOurs) => return Some(false),
                Ok(Deletion::Pending) if Instant::now() < end => {
                    was_ours = true;
                }
                Ok(Deletion::Pending) => {
                    warn!(
                        "Karmada has not let go of its Cluster in {LEAVE_TIMEOUT:?}; what it put into the cluster may be left \
                         there"
                    );
                    return None;
                }
                Err(error) if Instant::now() >= end => {
                    let error: &dyn std::error::Error = &error;
                    warn!(error, "its Cluster could not be deleted from Karmada in {LEAVE_TIMEOUT:?}");
                    return None;
                }
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    }
}
