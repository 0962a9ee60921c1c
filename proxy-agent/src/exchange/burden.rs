//! What a request takes of the host, of which each cluster may have only some at a time.

use std::time::Duration;

use bytes::Bytes;
use kube_wire::{Status, Target, Verb};
use tokio::sync::SemaphorePermit;

use super::Asked;
use super::body::Body;
use crate::places::Until;
use crate::refusal::Refusal;
use crate::translate::exhausted;

impl Asked<'_> {
    /// How long the response needs a place, if it streams.
    pub(super) fn occupies(&self) -> Option<Until> {
        match self.info.target() {
            Target::Resource(request) => match request.verb() {
                Verb::Watch if self.begins_at_a_version() => Some(Until::Since),
                Verb::Watch => Some(Until::Initial),
                Verb::List | Verb::DeleteCollection => Some(Until::End),
                _ => None,
            },
            Target::NonResource(request) => request.path().starts_with("/openapi/").then_some(Until::End),
        }
    }

    /// A place at the host for a large object.
    pub(super) async fn place_of(&self, body: &Body) -> Result<Option<SemaphorePermit<'_>>, Refusal> {
        let bytes = match self.info.target() {
            // The options of a deletion cost nothing, and the deletion of a collection may take a minute.
            Target::Resource(request) if matches!(request.verb(), Verb::Delete | Verb::DeleteCollection) => {
                Bytes::new()
            }
            _ => body.bytes(),
        };
        self.cluster.turns.at_host(&bytes).await.map_err(|_| exhausted())
    }

    /// Whether a watch sends only what has happened since, as `listWorkEstimator` decides it.
    fn begins_at_a_version(&self) -> bool {
        let query = self.info.query();
        let version = query.first("resourceVersion").ok().flatten();
        version.is_some_and(|version| !matches!(&*version, "" | "0")) && !query.contains("sendInitialEvents")
    }
}

/// The refusal of a [heavy](crate::heavy) body. Its cluster may send the next one after this time.
pub(super) fn too_heavy(wait: Duration) -> Refusal {
    let message = "the object consists of many small values, and this cluster has sent too many such objects";
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    Status::too_many_requests(message, seconds).into()
}
