//! One attack: its preparation, and what it sends.

use crate::site::AttackSite;
use crate::traffic::Traffic;

/// An attack.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What the attacker's administrator creates before the attack. Its memory counts, but its time does not.
    pub(crate) prepare: fn(&AttackSite) -> anyhow::Result<()>,
    pub(crate) traffic: fn() -> Traffic,
}

// === impl Attack ===

impl Attack {
    pub(crate) const fn new(name: &'static str, about: &'static str, traffic: fn() -> Traffic) -> Self {
        Self { name, about, prepare: |_| Ok(()), traffic }
    }

    pub(crate) const fn after(self, prepare: fn(&AttackSite) -> anyhow::Result<()>) -> Self {
        Self { prepare, ..self }
    }
}
