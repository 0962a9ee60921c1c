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
}

// === impl Attack ===

impl Attack {
    /// An attack without a preparation.
    pub(crate) const fn new(name: &'static str, about: &'static str, traffic: fn() -> Traffic) -> Self {
        Self { name, about, prepare: |_| Ok(()), traffic }
    }

    /// Adds a preparation.
    pub(crate) const fn after(self, prepare: fn(&AttackSite) -> anyhow::Result<()>) -> Self {
        Self { prepare, ..self }
    }
}
