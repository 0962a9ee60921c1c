//! Clusters of Karmada that have our label and are in no configuration.
//!
//! Their entries were removed while no proxy-server ran, so they exist at the first check. A Cluster that appears later
//! was created by a replica with a newer configuration. To delete it would remove everything that Karmada has put
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use protocol::ClusterName;
use tokio::time::Instant;
use tracing::info;

/// How long such a Cluster stays. A replica may have a newer configuration than this process: Secrets and ConfigMaps
/// reach pods up to two minutes apart.
const PATIENCE: Duration = Duration::from_secs(150);

/// The strays of one control plane.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// The strays, and since when they are known. `None` before the first check.
    since: Option<BTreeMap<ClusterName, Instant>>,
}

// === impl Strays ===

impl Strays {
    /// One check. `there` are all Clusters with our label that no configuration contains. Returns those to delete now.
    pub(super) fn due(&mut self, there: &BTreeSet<ClusterName>, now: Instant) -> Vec<ClusterName> {
        let since = self.since.get_or_insert_with(|| {
            for name in there {
                info!(cluster = %name, "the configuration lacks this Cluster of ours in Karmada; it will be deleted");
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
        // It was deleted and created again.
        assert_eq!(strays.due(&names(&["new"]), start + PATIENCE), []);
        assert_eq!(strays.due(&names(&["left", "new"]), start + 4 * PATIENCE), []);
        // If there were none at first, none is ours to delete.
        let mut strays = Strays::default();
        assert_eq!(strays.due(&names(&[]), start), []);
        assert_eq!(strays.due(&names(&["new"]), start + PATIENCE), []);
        assert_eq!(strays.due(&names(&["new"]), start + 3 * PATIENCE), []);
    }
}
