//! The status of a VirtualCluster, as the API server stores it.

use ops::date::Moment;
use serde::{Deserialize, Serialize};

/// The type of the condition that tells whether clients can use the cluster.
pub(super) const READY: &str = "Ready";

/// The type of the condition that tells whether the Secret has the kubeconfig that the object asks for.
pub(super) const KUBECONFIG_ISSUED: &str = "KubeconfigIssued";

/// The status of a VirtualCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// The `metadata.generation` to which the status belongs.
    pub observed_generation: i64,
    /// The URL of its endpoint, for clients of the HTTP proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The number of its nodes.
    pub nodes: usize,
    /// The number of its namespaces.
    pub namespaces: usize,
    /// The last error in a response to its clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// The Secret with its kubeconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig_secret: Option<SecretReference>,
    /// `Ready`, `Overlapping` and `KubeconfigIssued`.
    pub conditions: Vec<Condition>,
}

/// A Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A `metav1.Condition`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True` or `False`.
    pub status: String,
    /// For programs.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Moment,
    /// The generation for which it holds.
    #[serde(default)]
    pub observed_generation: i64,
}

/// An error in a response to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When it last happened.
    pub time: Moment,
    /// The status code.
    pub code: u16,
    /// For people.
    pub message: String,
}

// === impl Status ===

impl Status {
    /// The fields that earlier definitions of the kind do not have.
    pub(super) const LATER: [&'static str; 2] = ["endpoint", "kubeconfigSecret"];

    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether it tells what has become of the kubeconfig.
    pub(super) fn tells_kubeconfig(&self) -> bool {
        self.condition(KUBECONFIG_ISSUED).is_some()
    }

    /// Whether clients can use the cluster, according to this status.
    pub(super) fn is_ready(&self) -> bool {
        self.condition(READY).is_some_and(|ready| ready.status == "True")
    }
}
