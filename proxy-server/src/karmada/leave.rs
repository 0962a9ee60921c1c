//! How a cluster stops being a member: first in Karmada, which empties it while it can still be reached, then in it.

use std::time::Duration;

use protocol::ClusterName;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::api::{Api, Way};
use super::member;
use super::plane::{Dismissal, Plane};

/// How long an endpoint is kept for Karmada to let go. A member that cannot be reached is let go of after some 40 s.
const PATIENCE: Duration = Duration::from_secs(180);

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// A cluster that leaves.
pub(super) struct Leaver<'a, M> {
    pub(super) name: &'a ClusterName,
    /// `None` for one that is not served here any more.
    pub(super) in_member: Option<&'a Api<M>>,
    /// Whether it was a member by us. Else what is in it may be there for somebody else.
    pub(super) was_ours: bool,
}

// === impl Leaver ===

impl<M: Way> Leaver<'_, M> {
    /// Ends when the cluster is no member any more, or patience does.
    pub(super) async fn leave<P: Way>(self, plane: &Plane<P>, kept_by: &str) {
        info!("leaves Karmada");
        let end = Instant::now() + PATIENCE;
        let Some(was_ours) = self.is_let_go(plane, kept_by, end).await else { return };
        if !was_ours {
            return info!("is no member of Karmada by us; nothing is taken out of it");
        }
        let Some(in_member) = self.in_member else {
            return info!("left Karmada; Karmada's accounts in it, which is not served here, stay");
        };
        loop {
            match member::clean(in_member, self.name).await {
                Ok(()) => return info!("left Karmada"),
                Err(error) if Instant::now() >= end => {
                    let error: &dyn std::error::Error = &error;
                    return warn!(error, "left Karmada; Karmada's accounts in it could not be deleted");
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Whether it was ours; `None` if Karmada holds on to it.
    async fn is_let_go<P: Way>(&self, plane: &Plane<P>, kept_by: &str, end: Instant) -> Option<bool> {
        let mut was_ours = self.was_ours;
        loop {
            match plane.dismiss(self.name, kept_by).await {
                Ok(Dismissal::Gone) => return Some(was_ours),
                Ok(Dismissal::NotOurs) => return Some(false),
                Ok(Dismissal::Going) if Instant::now() < end => {
                    was_ours = true;
                }
                Ok(Dismissal::Going) => {
                    warn!(
                        "Karmada has not let go of its Cluster in {PATIENCE:?}; what it put into the cluster may be left \
                         there"
                    );
                    return None;
                }
                Err(error) if Instant::now() >= end => {
                    let error: &dyn std::error::Error = &error;
                    warn!(error, "its Cluster could not be deleted from Karmada in {PATIENCE:?}");
                    return None;
                }
                Err(_) => {}
            }
            sleep(PAUSE).await;
        }
    }
}
