//! Events about VirtualClusters and their sets.

use host_client::api::{ApiError, HostApi};
use ops::date::Moment;
use serde_json::{Value, json};

use super::API_VERSION;
use super::object::Metadata;
use super::ready::Ready;
use super::status::{Condition, READY, Status};

/// The namespace of Events for cluster-scoped objects (client-go's `tools/record`).
const PATH: &str = "/api/v1/namespaces/default/events";

/// An Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Whether somebody must act.
    pub(super) is_warning: bool,
    /// For programs.
    pub(super) reason: &'static str,
    /// For people.
    pub(super) message: String,
}

// === impl Event ===

impl Event {
    /// The Event about a change of the condition Ready. `None` if there is no change, or if it only tells that the agent has seen
    /// the object.
    pub(super) fn of_change(before: &Status, ready: &Ready) -> Option<Self> {
        let status = if ready.is_ready { "True" } else { "False" };
        let is_known = |before: &Condition| before.status == status && before.reason == ready.reason;
        if before.condition(READY).is_some_and(is_known) || ready.reason == "Pending" {
            return None;
        }
        let is_warning = !ready.is_ready && ready.reason != "Deleting";
        Some(Self { is_warning, reason: ready.reason, message: ready.message.clone() })
    }

    /// Creates the Event about an object of this kind.
    pub(super) async fn send(
        &self,
        api: &impl HostApi,
        (kind, about): (&str, &Metadata),
        now: Moment,
    ) -> Result<(), ApiError> {
        api.create(PATH, &self.object(kind, about, now, fastrand::u64(..))).await.map(drop)
    }

    fn object(&self, kind: &str, about: &Metadata, now: Moment, number: u64) -> Value {
        let (name, now) = (&about.name, now.to_string());
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{name}.{number:016x}"), "namespace": "default"},
            "involvedObject": {"apiVersion": API_VERSION, "kind": kind, "name": name, "uid": about.uid},
            "type": if self.is_warning { "Warning" } else { "Normal" },
            "reason": self.reason,
            "message": self.message,
            "source": {"component": "proxy-agent"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        })
    }
}
