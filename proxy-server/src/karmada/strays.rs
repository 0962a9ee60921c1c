//! Clusters of Karmada that carry our label and are in no configuration.
//!
//! Their entries went while no proxy-server ran, so they are there when we first look. One that appears later was made by
//! a replica with a newer configuration, and to delete it would take all that Karmada has put there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;
use tracing::info;

/// How long such a Cluster is left alone. A replica may have a newer configuration than the one we have just started with:
/// Secrets and ConfigMaps reach pods up to two minutes apart.
const PATIENCE: Duration = Duration::from_secs(150);

/// Those of one control plane.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// Since when they are known; `None` before the first look.
    since: Option<BTreeMap<ClusterName, Instant>>,
}

// === impl Strays ===

impl Strays {
    /// A look: `there` are all that carry our label and that we do not want. Returns those whose time has come.
    pub(super) fn due(&mut self, there: &BTreeSet<ClusterName>, now: Instant) -> Vec<ClusterName> {
        let since = self.since.get_or_insert_with(|| {
            for name in there {
                info!(cluster = %name, "Karmada has a Cluster of ours that is not in the configuration; it will go");
            }
            there.iter().map(|name| (name.clone(), now)).collect()
        });
        since.retain(|name, _| there.contains(name));
        since.iter().filter(|(_, since)| now >= **since + PATIENCE).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replica_makes_stays() {
        let names = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<BTreeSet<ClusterName>>();
        let mut strays = Strays::default();
        let start = Instant::now();
        assert_eq!(strays.due(&names(&["left"]), start), []);
        assert_eq!(strays.due(&names(&["left", "new"]), start + PATIENCE / 2), []);
        assert_eq!(strays.due(&names(&["left", "new"]), start + PATIENCE), ["left".parse().unwrap()]);
        // Gone, and made again by somebody.
        assert_eq!(strays.due(&names(&["new"]), start + PATIENCE), []);
        assert_eq!(strays.due(&names(&["left", "new"]), start + 4 * PATIENCE), []);
        // With nothing there at first, nothing is ours to delete.
        let mut strays = Strays::default();
        assert_eq!(strays.due(&names(&[]), start), []);
        assert_eq!(strays.due(&names(&["new"]), start + PATIENCE), []);
        assert_eq!(strays.due(&names(&["new"]), start + 3 * PATIENCE), []);
    }
}
