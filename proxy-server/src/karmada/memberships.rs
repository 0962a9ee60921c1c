//! The membership of each cluster in Karmada, for `/status` and metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ops::date::Moment;
use ops::label_set;
use ops::metrics::{Counter, Family, Gauge, LabelValue, Registry};
use protocol::ClusterName;
use serde::{Deserialize, Serialize};

/// The membership of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Membership {
    /// The cluster.
    pub cluster: String,
    /// Its state.
    pub state: State,
    /// Since when it has this state.
    pub since: Moment,
    /// The last error, until the next success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is joining.
    Joining,
    /// It is a member.
    Joined,
    /// Another Cluster has its name or its id.
    Refused,
    /// It is leaving.
    Leaving,
}

/// The states of all clusters. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Memberships(Arc<Mutex<BTreeMap<String, Membership>>>);

/// The metrics.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    joined: Family<OfCluster, Gauge>,
    passes: Family<Pass, Counter>,
}

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Outcome {
    Unchanged,
    Written,
    Absent,
    Refused,
    Failed,
}

label_set! {
    struct OfCluster {
        cluster: Arc<str>,
    }
}

label_set! {
    struct Pass {
        cluster: Arc<str>,
        outcome: Outcome,
    }
}

// === impl State ===

impl State {
    /// The state as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Joined => "joined",
            Self::Refused => "refused",
            Self::Leaving => "leaving",
        }
    }
}

// === impl Memberships ===

impl Memberships {
    /// All states, by name.
    pub fn all(&self) -> Vec<Membership> {
        self.lock().values().cloned().collect()
    }

    /// Records a state. Returns whether it, or its message, has changed.
    pub(super) fn set(&self, name: &ClusterName, state: State, message: Option<String>) -> bool {
        let mut all = self.lock();
        let known = all.get(name.as_str());
        if known.is_some_and(|known| known.state == state && known.message == message) {
            return false;
        }
        let since = known.filter(|known| known.state == state).map_or_else(Moment::now, |known| known.since);
        all.insert(name.to_string(), Membership { cluster: name.to_string(), state, since, message });
        true
    }

    /// The last state that was recorded.
    pub(super) fn state(&self, name: &ClusterName) -> Option<State> {
        self.lock().get(name.as_str()).map(|known| known.state)
    }

    pub(super) fn forget(&self, name: &ClusterName) {
        self.lock().remove(name.as_str());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Membership>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Counts ===

impl Counts {
    pub(super) fn new(metrics: &Registry) -> Self {
        Self {
            joined: metrics.gauges("atoll_karmada_joined", "Whether Karmada has all that it needs of a cluster."),
            passes: metrics
                .counters("atoll_karmada_passes_total", "Looks at a cluster's membership, by their outcome."),
        }
    }

    pub(super) fn passed(&self, name: &ClusterName, outcome: Outcome, state: Option<State>) {
        let cluster: Arc<str> = name.as_str().into();
        self.passes.with(&Pass { cluster: Arc::clone(&cluster), outcome }).inc();
        self.joined.with(&OfCluster { cluster }).set(i64::from(state == Some(State::Joined)));
    }

    pub(super) fn forget(&self, name: &ClusterName) {
        let cluster: Arc<str> = name.as_str().into();
        for outcome in Outcome::ALL {
            self.passes.remove(&Pass { cluster: Arc::clone(&cluster), outcome });
        }
        self.joined.remove(&OfCluster { cluster });
    }
}

// === impl Outcome ===

impl Outcome {
    const ALL: [Self; 5] = [Self::Unchanged, Self::Written, Self::Absent, Self::Refused, Self::Failed];
}

impl LabelValue for Outcome {
    fn label(&self) -> &str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Written => "written",
            Self::Absent => "absent",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}
