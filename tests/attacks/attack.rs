//! One attack: its preparation, and what it sends.

use crate::site::AttackSite;
use crate::traffic::Traffic;

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Creates objects before the attack. The measurement includes their memory, but not the time of their creation.
    pub(crate) prepare: fn(&AttackSite) -> anyhow::Result<()>,
    pub(crate) traffic: fn() -> Traffic,
    /// The maximum ratio of the 99th percentiles of the tenant's latencies, with and without the attack.
    pub(crate) max_ratio: f64,
}

/// The maximum ratio for an attack.
const OF_ATTACK: f64 = 2.0;

/// The maximum ratio for a flood of ordinary requests.
const OF_FLOOD: f64 = 1.5;

// === impl Attack ===

impl Attack {
    /// An attack without a preparation.
    pub(crate) const fn new(name: &'static str, about: &'static str, traffic: fn() -> Traffic) -> Self {
        Self { name, about, prepare: |_| Ok(()), traffic, max_ratio: OF_ATTACK }
    }

    /// A flood of requests that are ordinary one by one, without a preparation.
    pub(crate) const fn flood(name: &'static str, about: &'static str, traffic: fn() -> Traffic) -> Self {
        Self { max_ratio: OF_FLOOD, ..Self::new(name, about, traffic) }
    }

    /// Adds a preparation.
    pub(crate) const fn after(self, prepare: fn(&AttackSite) -> anyhow::Result<()>) -> Self {
        Self { prepare, ..self }
    }
}
